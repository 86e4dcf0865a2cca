"""What `bench selfcheck` prints and how it ends, over records that were made up."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up_sessions import write_run

from bench import cli
from bench.commands import selfcheck
from bench.model import Session
from bench.record import store
from bench.runner.result import SessionResult
from tests.unit.analysis.test_selfcheck import a_run


@pytest.mark.parametrize(
    ("twin", "status", "code", "words"),
    [
        (1.0, "ok", 0, ""),
        (1.05, "ok", 13, "bench: The check of the harness failed: "),
        (1.0, "invalid", 6, "is invalid: a node was lost"),
    ],
)
def test_it_ends_with_a_code_of_its_own_where_something_fails(
    twin: float,
    status: Any,
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measured(out: Path, session: Session, _target: object, *_notes: str) -> SessionResult:
        folder = store.create(out, session)
        (spec,) = session.specs
        reasons = () if status == "ok" else ("a node was lost",)
        write_run(folder, session, replace(a_run(twin=twin), spec=spec, status=status, reasons=reasons))
        return SessionResult(folder=folder, session=session, runs=store.load_runs(folder, session))

    monkeypatch.setattr(selfcheck, "measure_new", measured)
    words_typed = ["selfcheck", "--quick", "--target", "local", "--isolation", "loopback", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench", *words_typed])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert (int(ended.value.code or 0), words in err) == (code, True)
    if status == "ok":
        assert out.startswith("Pairs: turns inside one invocation")
        assert f"{'good' if twin == 1.0 else 'bad':5} harness  false alarms" in out
        assert "good  machine  fitness: fit: differences of" in out
