"""What earlier sessions took tells how long the next one will."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import a_sample, a_session, a_spec

from bench import history, store
from bench.jobs.recorder import Recorder
from bench.model import Interval
from bench.plan import JOB_SECONDS, run_key


def a_session_that_took(out: Path, name: str, seconds: float, status: str = "ok") -> None:
    spec = a_spec(session=name)
    folder = store.create(out, a_session((spec,), id=name))
    recorder = Recorder(store.run_folder(folder, spec), spec)
    recorder.sample(a_sample(interval=Interval(10.0, 11.0)))
    recorder.sample(a_sample(interval=Interval(11.0, 10.0 + seconds)))
    recorder.close(status, () if status == "ok" else ("broken",))  # type: ignore[arg-type]


def test_the_median_of_good_runs_is_what_a_run_takes(tmp_path: Path) -> None:
    for number, seconds in enumerate((5.0, 7.0, 90.0)):
        a_session_that_took(tmp_path, f"s{number}", seconds)
    a_session_that_took(tmp_path, "s9", 1.0, status="failed")
    known = history.run_seconds(tmp_path)
    assert known == {("single", run_key(a_spec())): pytest.approx(7.0 + JOB_SECONDS)}


def test_a_damaged_session_does_not_stop_a_plan(tmp_path: Path) -> None:
    a_session_that_took(tmp_path, "s1", 5.0)
    (tmp_path / "s1" / "session.json").write_text("{")
    assert history.run_seconds(tmp_path) == {}


def test_an_empty_folder_says_nothing(tmp_path: Path) -> None:
    assert history.run_seconds(tmp_path / "none") == {}
