"""The kept report of a session is read while it is what the records and the analysis make of it, and else made anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.analysis import Report
from bench.history import report_file, summaries
from bench.model import from_json
from bench.record import store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return a_session_on_disk(tmp_path, blocks=6)


def load(folder: Path) -> Report:
    return report_file.load(folder, summaries.read(folder))


def built(folder: Path) -> Report:
    session = store.load_session(folder)
    return analysis.build(session, store.load_runs(folder, session))


def test_a_report_is_kept_as_json_and_not_made_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(folder)
    assert from_json((folder / report_file.FILE).read_bytes(), Report) == first == built(folder)
    monkeypatch.setattr(report_file, "build", lambda *_: pytest.fail("it was made again"))
    assert load(folder) == first


def _other_code(folder: Path) -> None:
    summary = json.loads((folder / summaries.FILE).read_text())
    (folder / summaries.FILE).write_text(json.dumps(summary | {"report_code": "0123456789abcdef"}))


def _changed_number(folder: Path) -> None:
    text = (folder / report_file.FILE).read_text()
    (folder / report_file.FILE).write_text(text.replace('"n":6', '"n":7'))


def _pipe(folder: Path) -> None:
    (folder / report_file.FILE).unlink()
    os.mkfifo(folder / report_file.FILE)


def _changed_plan(folder: Path) -> None:
    os.utime(folder / "session.json", ns=(0, 0))


SPOILERS: list[Callable[[Path], object]] = [
    _other_code,
    _changed_number,
    _changed_plan,
    _pipe,
    lambda folder: (folder / report_file.FILE).write_bytes(b"["),
    lambda folder: (folder / report_file.FILE).unlink(),
    lambda folder: (folder / summaries.FILE).unlink(),
]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_stale_changed_or_spoilt_report_is_made_anew(
    folder: Path, spoil: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(folder)
    spoil(folder)
    made = []
    monkeypatch.setattr(report_file, "build", lambda *given: made.append(given) or analysis.build(*given))
    assert load(folder) == first
    assert len(made) == 1
    assert load(folder) == first
    assert len(made) == 1, "it was kept"


def test_a_report_whose_text_is_hostile_is_read_with_clean_text(folder: Path) -> None:
    report = load(folder)
    summary = summaries.read(folder)
    hostile = report.__class__(**{**vars(report), "created": "a\x1b[31mb"})
    report_file.keep(folder, summary, hostile)
    assert load(folder).created == "ab"


def test_the_report_of_a_session_that_goes_on_is_not_taken_for_the_whole(folder: Path) -> None:
    last = max((folder / "runs").iterdir())
    (last / "run.json").rename(folder / "run.json")
    assert load(folder) == built(folder)
    (folder / "run.json").rename(last / "run.json")
    assert load(folder) == built(folder)
