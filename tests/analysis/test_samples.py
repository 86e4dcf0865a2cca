"""What is read of many runs at once is what each of them says by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.made_up import LATENCIES, RATE, SINGLE, made_up
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.comparison import outcome
from bench.analysis.samples import Samples
from bench.model import Interval, Sample

_, (RUN,) = made_up(cells=1, blocks=1, topologies=(SINGLE,))


def a_sample(value, begin, seconds, turn, warmup):
    return Sample(
        metric=RATE.name,
        value=value,
        reason="lost" if value is None else None,
        interval=Interval(begin, begin + seconds),
        arm="ray",
        turn=turn,
        warmup=warmup,
    )


SAMPLES = st.lists(
    st.builds(
        a_sample,
        st.none() | st.floats(0.001, 1e9),
        st.integers(0, 100),
        st.sampled_from([0.0, 0.1, 0.5, 3.0]),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=6,
).map(tuple)


@given(st.lists(SAMPLES, max_size=5), st.sampled_from(["rate", "time"]))
def test_every_run_has_the_value_or_the_reason_that_it_has_by_itself(every, kind):
    runs = [replace(RUN, samples=samples) for samples in every]
    metric = replace(RATE, kind=kind)
    alone = [outcome(run, metric, "ray") for run in runs]
    for found, expected in zip(Samples(runs).outcomes(metric, "ray"), alone, strict=True):
        assert found == (expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-15))


@given(st.lists(SAMPLES, max_size=5), st.booleans())
def test_a_series_has_each_turn_once_in_the_order_of_turns(every, warmups):
    found = Samples([replace(RUN, samples=samples) for samples in every]).series(RATE, "ray", warmups=warmups)
    for samples, values in zip(every, found, strict=True):
        counted = [s for s in samples if s.turn and s.value is not None and (warmups or not s.warmup)]
        by_turn = {turn: [s.value for s in counted if s.turn == turn] for turn in sorted({s.turn for s in counted})}
        assert values == pytest.approx([sum(those) / len(those) for those in by_turn.values()], rel=1e-12)


def test_what_no_run_has_was_not_measured():
    samples = Samples([RUN, RUN])
    assert samples.outcomes(replace(RATE, name="never"), "ray") == ["not measured"] * 2
    assert samples.outcomes(LATENCIES[2], "ray") == ["p99 needs 1,000 calls"] * 2
    assert samples.series(replace(RATE, name="never"), "ray") == [[], []]
