"""How a session ends: what is no success has an exit code of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import RATE, a_sample, a_session, a_spec

from bench import analysis
from bench.errors import NothingMeasured, RunFailed, RunInvalid
from bench.model import Run, Sample, Session
from bench.record import store
from bench.runner.result import SessionResult, announce, judge


def a_run(*samples: Sample, status: str = "ok", block: int = 1) -> Run:
    reasons = () if status == "ok" else ("its driver was stopped by SIGTERM",)
    return Run(spec=a_spec(id=f"b0{block}", block=block), status=status, samples=samples, reasons=reasons)  # type: ignore[arg-type]


MISSING = replace(a_sample(), value=None, reason="5 workers need as many CPUs")


@pytest.mark.parametrize(
    "samples",
    [(), (MISSING,), (a_sample(warmup=True),), (a_sample(metric="startup_seconds"),)],
    ids=["none", "missing", "warm-up", "other"],
)
def test_a_session_without_a_value_of_its_headline_is_no_success(samples: tuple[Sample, ...]) -> None:
    with pytest.raises(NothingMeasured, match=f"No run measured the {RATE.name} of inference"):
        judge(a_session(), [a_run(*samples), a_run(*samples, block=2)])


def test_the_reason_that_there_is_no_value_is_told() -> None:
    with pytest.raises(NothingMeasured, match=r"inference \(5 workers need as many CPUs\)"):
        judge(a_session(), [a_run(MISSING)])


def test_one_value_of_the_headline_is_a_success() -> None:
    judge(a_session(), [a_run(MISSING), a_run(a_sample(0.0), block=2)])


def test_a_run_that_somebody_else_stopped_is_no_success() -> None:
    stopped = a_run(a_sample(), status="stopped", block=2)
    with pytest.raises(RunFailed, match="1 of 1 runs failed; the first, b02: its driver was stopped by SIGTERM"):
        judge(a_session(), [a_run(a_sample()), stopped])
    judge(a_session(ended="the budget of 20 min is used"), [a_run(a_sample()), stopped])


def test_the_report_of_a_session_is_built_once_for_print_pictures_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[Session] = []
    build = analysis.build
    monkeypatch.setattr(analysis, "build", lambda session, runs: built.append(session) or build(session, runs))
    folder = store.create(tmp_path, a_session())
    for as_json in (False, True):
        announce(SessionResult(folder=folder, session=a_session(), runs=[a_run(a_sample())]), as_json=as_json)
        assert (folder / "report.html").is_file()
    assert len(built) == 2
    assert "raymeter.report" in capsys.readouterr().out


@pytest.mark.parametrize(("count", "said"), [(1, "1 of 1 runs is invalid"), (2, "2 of 2 runs are invalid")])
def test_one_invalid_run_is_said_in_the_singular(count: int, said: str) -> None:
    runs = [replace(a_run(a_sample(), block=block + 1), status="invalid", reasons=("no",)) for block in range(count)]
    with pytest.raises(RunInvalid, match=said):
        judge(a_session(specs=tuple(run.spec for run in runs)), runs)
