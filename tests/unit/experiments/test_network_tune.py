"""Tune's overhead: Ray's three tests by their own harness."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeping import SweepContext

from bench.errors import RunInvalid
from bench.experiments import tune_overhead
from bench.experiments.tune_overhead import TESTS, Done, Params


def test_the_tests_report_as_often_as_the_published_ones() -> None:
    assert [test.results(100) for test in TESTS] == [50_000, 50, 1]


@given(trial_seconds=st.integers(1, 1000))
def test_no_trial_is_too_short_to_report(trial_seconds: int) -> None:
    assert all(test.results(trial_seconds) >= 1 for test in TESTS)


def test_what_the_harness_wrote_is_read_or_refused() -> None:
    assert tune_overhead.read('{"time_taken": 3.5, "trial_states": {"TERMINATED": 4}, "last_update": 1}') == Done(
        seconds=3.5, states={"TERMINATED": 4}
    )
    for text in ("", "[]", '{"time_taken": null, "trial_states": {}}', '{"time_taken": 1}'):
        with pytest.raises(RunInvalid, match="no result that can be read"):
            tune_overhead.read(text)


def test_a_trial_that_failed_makes_the_run_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        name, cpus = "head", 2

    monkeypatch.setattr(tune_overhead, "run_test", lambda *_: Done(seconds=4.0, states={"TERMINATED": 1, "ERROR": 1}))
    context = SweepContext(nodes=[Node()])
    found = list(tune_overhead.run(Params(trial_seconds=2), context))  # type: ignore[arg-type]
    assert all(sample.value is None for sample in found)
    assert len(context.reasons) == 3


def test_overhead_is_observed_by_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        name, cpus = "head", 2

    monkeypatch.setattr(tune_overhead, "run_test", lambda *_: Done(seconds=6.0, states={"TERMINATED": 4}))
    context = SweepContext(nodes=[Node()])
    found = list(tune_overhead.run(Params(trial_seconds=2, waves=2), context))  # type: ignore[arg-type]
    assert [s.value for s in found if s.metric == "overhead_ratio" and not s.point] == [1.5]
    assert context.credits["ray-tune", "network overhead"] == {"head": 4.0}
