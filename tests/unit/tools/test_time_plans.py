"""The comparison of plans with what sessions take goes on after a failure, and ends where the user stops it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import BenchError, Stopped, TargetFailed
from bench.model import Session
from tools import time_plans


def measured(monkeypatch: pytest.MonkeyPatch, error: BenchError) -> list[str]:
    """The experiments that are measured, where each of them ends with `error`; they are filled in as it goes."""
    begun: list[str] = []

    def measure_new(_out: Path, session: Session, _target: object) -> object:
        begun.extend(session.metrics)
        raise error

    monkeypatch.setattr(time_plans, "measure_new", measure_new)
    monkeypatch.setattr(time_plans.calibration, "slowness", lambda: 1.0)
    return begun


def test_an_experiment_that_fails_is_a_line_and_the_next_one_follows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = measured(monkeypatch, TargetFailed("The head ended."))
    time_plans.main(["granularity", "core-rates"])
    assert begun == ["granularity", "core-rates"]
    assert capsys.readouterr().out.count("The head ended.") == 2


def test_a_stop_ends_it_before_the_next_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = measured(monkeypatch, Stopped("Stopped; finished runs are kept."))
    with pytest.raises(Stopped, match=r"^Stopped in granularity; later experiments were not timed\.$"):
        time_plans.main(["granularity", "core-rates"])
    assert begun == ["granularity"]
