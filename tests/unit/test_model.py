"""The nouns: what they refuse, and that all of them can be read as they were written."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from builders import a_sample, a_spec
from hypothesis import given
from hypothesis import strategies as st
from made_up import made_up

from bench import analysis, reports
from bench.cluster.recorder import Recorder
from bench.context import Measured
from bench.model import Clock, Facts, Interval, Line, Metric, NodeUsage, Run, Sample
from bench.record import line_format, store

ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True)
SPEED = Metric(name="speed", unit="1/s", better="higher", kind="rate")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_finite_number_becomes_the_reason_that_there_is_none(value: float) -> None:
    measured = Measured(results=[None], interval=Interval(0.0, 1.0), arm="ray", turn=1, warmup=False)
    for sample in (a_sample(value), measured.sample(SPEED, value)):
        assert (sample.value, sample.reason, sample.is_not_finite) == (None, f"not a finite number: {value}", True)
    assert not a_sample(1.0).is_not_finite
    assert not a_sample(None).is_not_finite


@pytest.mark.parametrize("value", [1e308, -1e101, 5e-324])
def test_a_value_that_no_statistic_can_be_computed_of_becomes_a_reason_too(value: float) -> None:
    assert a_sample(value).reason == f"not a number from 1e-100 to 1e+100: {value}"
    assert a_sample(value).is_not_finite
    assert [a_sample(each).value for each in (0.0, 1e-99, -1e99)] == [0.0, 1e-99, -1e99]


@pytest.mark.parametrize(
    ("value", "is_everywhere"), [(1e100, True), (1e-100, True), (-1e100, False), (1e308, False), (math.nan, True)]
)
def test_every_report_is_made_whatever_the_values_are(value: float, is_everywhere: bool) -> None:
    session, runs = made_up(cells=1, blocks=6)

    def changed(run: Run, sample: Sample) -> Sample:
        is_hit = sample.arm == "ray" and (is_everywhere or (run.spec.block == 2 and sample.turn == 2))
        return replace(sample, value=value) if is_hit and sample.value is not None else sample

    runs = [replace(run, samples=tuple(changed(run, sample) for sample in run.samples)) for run in runs]
    report = analysis.build(session, runs)
    for format in reports.FORMATS:
        assert reports.render(format, report, runs)


@given(value=ANY_NUMBER)
def test_every_sample_is_read_as_it_was_written(value: float) -> None:
    line = Line(seq=1, sample=a_sample(value))
    assert line_format.decode(line_format.encode(line)) == line


@given(seconds=ANY_NUMBER, mhz=ANY_NUMBER)
def test_usage_that_is_no_finite_number_is_read_as_not_counted(seconds: float, mhz: float) -> None:
    usage = NodeUsage(
        node="head", arm="ray", turn=1, warmup=False, interval=Interval(0.0, 1.0), cpu_seconds=seconds, cpu_mhz=mhz
    )
    found = line_format.decode(line_format.encode(Line(seq=1, usage=usage))).usage
    assert found
    assert (found.cpu_seconds, found.cpu_mhz) == tuple(n if math.isfinite(n) else None for n in (seconds, mhz))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_step_along_a_curve_must_be_finite(bad: float) -> None:
    with pytest.raises(ValueError, match="must have a finite step"):
        a_sample(1.0, step=bad)


def test_a_line_that_could_not_be_read_back_is_refused_and_the_record_stays_whole(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", a_spec())
    recorder.sample(a_sample(1.0))
    with pytest.raises(ValueError, match="float"):
        recorder.progress(math.nan, 1.0)
    with pytest.raises(ValueError, match="float"):
        recorder.facts(
            Facts(
                nodes=(),
                cluster="",
                ray_config={},
                data={},
                link="",
                same_host=True,
                clock=Clock(step_seconds=math.nan, empty_sample_seconds=0.0),
            )
        )
    with pytest.raises(ValueError, match="float"):
        recorder.sample(a_sample(1.0, interval=Interval(0.0, math.inf)))
    recorder.sample(a_sample(math.inf))
    recorder.close("ok", ())
    found = store.read_samples(tmp_path / "run" / store.SAMPLES, is_closed=True)
    assert [sample.value for sample in found.samples] == [1.0, None]


def test_a_percentile_says_of_which_distribution_it_is() -> None:
    whole = {"name": "wait_p99_seconds", "unit": "s", "better": "lower", "kind": "time"}
    Metric(**whole, distribution="wait", percentile=99)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="both distribution and percentile"):
        Metric(**whole, percentile=99)  # type: ignore[arg-type]
