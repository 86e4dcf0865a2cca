"""The index of sessions says what the records say, and is made anew from them."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from analysis.made_up import made_up
from made_up_sessions import a_session_on_disk, many_sessions_on_disk, write_run

from bench.history import past_runs, session_index
from bench.history.session_index import Filters
from bench.record import store

FIRST, SECOND = "20260105-100000-inference-lab-0001", "20260206-100000-inference-lab-0002"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    a_session_on_disk(tmp_path, FIRST)
    a_session_on_disk(tmp_path, SECOND, blocks=1)
    return tmp_path


def ids(out: Path, **filters: str) -> list[str]:
    return [entry.id for entry in session_index.entries(out, Filters(**filters))]


def test_every_session_is_listed_with_how_its_runs_ended(out: Path) -> None:
    first, second = session_index.entries(out)
    assert (first.id, first.planned, first.ok, first.invalid) == (FIRST, 4, 4, 0)
    assert (second.id, second.planned, second.ok) == (SECOND, 2, 2)
    assert first.experiments == ("inference",)
    assert set(first.topologies) == {"single", "multi"}


def test_filters_hold_together(out: Path) -> None:
    assert ids(out, since="2026-02") == [SECOND]
    assert ids(out, experiment="inference", target="local", profile="lab", status="ok") == [FIRST, SECOND]
    assert ids(out, experiment="tune") == ids(out, target="k8s") == ids(out, status="failed") == []


def test_a_session_that_is_closed_is_not_read_again(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session_index.entries(out)
    monkeypatch.setattr(store, "load_session", lambda folder: pytest.fail(f"{folder} was read again"))
    assert ids(out) == [FIRST, SECOND]


def test_a_list_of_many_opens_no_file_of_any_session(tmp_path: Path) -> None:
    many_sessions_on_disk(tmp_path, 300)
    assert len(session_index.entries(tmp_path)) == 300
    opened: list[str] = []
    is_watched = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:  # a hook stays for ever: it looks away at the end
        if is_watched and event == "open" and str(arguments[0]).startswith(str(tmp_path)):
            opened.append(str(arguments[0]))

    sys.addaudithook(watch)
    listed = session_index.entries(tmp_path)
    assert (len(listed), opened) == (300, [])
    (tmp_path / listed[7].folder / "session.json").write_bytes(b"{")
    session_index.entries(tmp_path)
    is_watched = False
    assert {Path(each).parent.name for each in opened} == {listed[7].folder}, "what changed is read, by the same watch"


def test_a_run_that_goes_on_is_seen_to_end(tmp_path: Path) -> None:
    session, runs = made_up(cells=1, blocks=1)
    folder = store.create(tmp_path, session)
    write_run(folder, session, runs[0], is_closed=False)
    assert [(entry.ok, entry.stopped) for entry in session_index.entries(tmp_path)] == [(0, 1)]
    shutil.rmtree(store.run_folder(folder, runs[0].spec))
    write_run(folder, session, runs[0])
    assert [(entry.ok, entry.stopped) for entry in session_index.entries(tmp_path)] == [(1, 0)]


def test_a_session_that_is_gone_is_forgotten(out: Path) -> None:
    session_index.entries(out)
    shutil.rmtree(out / FIRST)
    assert ids(out) == [SECOND]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"", b"SQLite format 3\x00 cut short"])
def test_a_spoilt_index_is_made_anew(out: Path, content: bytes) -> None:
    session_index.entries(out)
    (out / session_index.FILE).write_bytes(content)
    assert ids(out) == [FIRST, SECOND]
    assert ids(out) == [FIRST, SECOND]


def test_an_index_of_another_version_is_made_anew(out: Path) -> None:
    other = sqlite3.connect(out / session_index.FILE)
    other.executescript("create table sessions (folder text); pragma user_version = 99;")
    other.close()
    assert ids(out) == [FIRST, SECOND]


def test_a_damaged_session_is_listed_with_its_damage(out: Path) -> None:
    (out / FIRST / "session.json").write_text("{")
    first, second = session_index.entries(out)
    assert "session.json is not what it should be" in first.damage
    assert second.damage == ""


def test_a_session_that_may_not_be_read_hides_no_other(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_dir = Path.is_dir

    def refused(path: Path) -> bool:
        if FIRST in path.parts and path.parent.name == "runs":
            raise PermissionError(13, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    first, second = session_index.entries(out)
    assert "cannot be read: Permission denied" in first.damage
    assert (second.damage, second.ok) == ("", 2)
    assert past_runs.known(out, "local").runs


def test_a_folder_that_is_not_there_has_no_sessions_and_is_not_made(tmp_path: Path) -> None:
    assert session_index.entries(tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
