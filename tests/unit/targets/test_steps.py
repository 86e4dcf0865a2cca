"""The steps of standing a cluster up, as a listener hears of them."""

from __future__ import annotations

import pytest

from bench.targets.steps import SILENT, Steps


def test_a_step_is_reported_when_it_starts_as_it_progresses_and_when_it_is_done() -> None:
    started: list[str] = []
    finished: list[tuple[str, bool]] = []
    steps = Steps(started=started.append, finished=lambda done, seconds: finished.append((done, 0 <= seconds < 30)))
    with steps.step("making the cluster", "cluster made"):
        assert finished == []
    with steps.step("waiting for the nodes,", "nodes registered") as report:
        for progress in ("0 of 2", "0 of 2", "2 of 2"):  # one that is not new is not reported again
            report(progress)
    assert started == [
        "making the cluster",
        "waiting for the nodes,",
        "waiting for the nodes, 0 of 2",
        "waiting for the nodes, 2 of 2",
    ]
    assert finished == [("cluster made", True), ("nodes registered 2 of 2", True)]


def test_a_step_that_fails_is_not_reported_as_done() -> None:
    finished: list[str] = []
    steps = Steps(finished=lambda done, _: finished.append(done))
    with pytest.raises(ValueError, match="broken"), steps.step("making it", "made"):
        raise ValueError("broken")
    assert finished == []


def test_a_caller_that_wants_no_reports_gets_none() -> None:
    with SILENT.step("making it", "made") as report:
        report("1 of 2")
