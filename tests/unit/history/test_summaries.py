"""The summary of a session says what its records say, and is made anew when they change."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from made_up import made_up
from made_up_sessions import a_session_on_disk, many_sessions_on_disk, write_run

from bench.history import past_runs, summaries
from bench.history.summaries import Filters
from bench.planning.plan import NOTHING_KNOWN
from bench.record import store

FIRST, SECOND = "20260105-100000-inference-lab-0001", "20260206-100000-inference-lab-0002"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    a_session_on_disk(tmp_path, FIRST)
    a_session_on_disk(tmp_path, SECOND, blocks=1)
    return tmp_path


def ids(out: Path, **filters: str) -> list[str]:
    return [entry.id for entry in summaries.entries(out, Filters(**filters))]


def test_every_session_is_listed_with_how_its_runs_ended(out: Path) -> None:
    first, second = summaries.entries(out)
    assert (first.id, first.planned, first.ok, first.invalid) == (FIRST, 4, 4, 0)
    assert (second.id, second.planned, second.ok) == (SECOND, 2, 2)
    assert first.experiments == ("inference",)
    assert set(first.topologies) == {"single", "multi"}


def test_filters_hold_together(out: Path) -> None:
    assert ids(out, since="2026-02") == [SECOND]
    assert ids(out, experiment="inference", target="local", profile="lab", status="ok") == [FIRST, SECOND]
    assert ids(out, experiment="tune") == ids(out, target="k8s") == ids(out, status="failed") == []


def test_a_session_that_is_closed_is_not_read_again(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summaries.entries(out)
    monkeypatch.setattr(store, "load_session", lambda folder: pytest.fail(f"{folder} was read again"))
    assert ids(out) == [FIRST, SECOND]


def test_a_list_of_many_opens_one_small_file_of_each_session(tmp_path: Path) -> None:
    many_sessions_on_disk(tmp_path, 300)
    assert len(summaries.entries(tmp_path)) == 300
    opened: list[Path] = []
    is_watched = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:  # a hook stays for ever: it looks away at the end
        if is_watched and event == "open" and str(arguments[0]).startswith(str(tmp_path)):
            opened.append(Path(str(arguments[0])))

    sys.addaudithook(watch)
    listed = summaries.entries(tmp_path)
    assert sorted(opened) == [tmp_path / entry.folder / summaries.FILE for entry in listed]
    assert max(path.stat().st_size for path in opened) < 1000
    opened.clear()
    (tmp_path / listed[7].folder / "session.json").write_bytes(b"{")
    summaries.entries(tmp_path)
    is_watched = False
    others = {path.parent.name for path in opened if path.name != summaries.FILE}
    assert others == {listed[7].folder}, "what changed is read, by the same watch"


def test_a_run_that_goes_on_is_seen_to_end(tmp_path: Path) -> None:
    session, runs = made_up(cells=1, blocks=1)
    folder = store.create(tmp_path, session)
    write_run(folder, session, runs[0], is_closed=False)
    assert [(entry.ok, entry.stopped) for entry in summaries.entries(tmp_path)] == [(0, 1)]
    shutil.rmtree(store.run_folder(folder, runs[0].spec))
    write_run(folder, session, runs[0])
    assert [(entry.ok, entry.stopped) for entry in summaries.entries(tmp_path)] == [(1, 0)]


def test_a_session_that_is_gone_is_forgotten(out: Path) -> None:
    summaries.entries(out)
    shutil.rmtree(out / FIRST)
    assert ids(out) == [SECOND]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\0\xff" * 100,
        b"[" * 60_000,
        b'{"stamp": "", "entry": {}}',
        b'{"stamp": "1/2/3", "entry": {"ok": 99}}',
        b'{"entry": {"ok": 99}, "stamp": 1}',
        b" " * (summaries.MOST_BYTES + 1),
    ],
)
def test_a_spoilt_or_foreign_summary_is_made_anew(out: Path, content: bytes) -> None:
    before = summaries.entries(out)
    kept = (out / FIRST / summaries.FILE).read_bytes()
    (out / FIRST / summaries.FILE).write_bytes(content)
    assert summaries.entries(out) == before
    assert (out / FIRST / summaries.FILE).read_bytes() == kept


@pytest.mark.parametrize("change", [{"version": 99}, {"stamp": "1/2/3"}, {"entry": {"folder": FIRST, "ok": "many"}}])
def test_a_summary_of_another_version_or_of_other_records_is_made_anew(out: Path, change: dict[str, object]) -> None:
    before = summaries.entries(out)
    path = out / FIRST / summaries.FILE
    kept = path.read_bytes()
    path.write_text(json.dumps(json.loads(kept) | change))
    assert summaries.entries(out) == before
    assert path.read_bytes() == kept


def test_a_folder_or_a_pipe_in_the_place_of_a_summary_is_not_waited_for(out: Path) -> None:
    (out / FIRST / summaries.FILE).mkdir()
    os.mkfifo(out / SECOND / summaries.FILE)
    assert ids(out) == [FIRST, SECOND]


def test_a_copy_with_the_times_of_its_files_is_listed_by_its_own_folder(out: Path) -> None:
    ids(out)
    shutil.copytree(out / FIRST, out / "a copy")
    for name in ("session.json", "runs"):
        shutil.copystat(out / FIRST / name, out / "a copy" / name)
    assert [entry.folder for entry in summaries.entries(out)] == [FIRST, SECOND, "a copy"]
    assert ids(out) == [FIRST, SECOND, FIRST]


def test_a_session_in_a_folder_that_cannot_be_written_to_is_listed(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, content: bytes, *, is_lasting: bool) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(summaries, "replace_whole", refused)
    assert ids(out) == [FIRST, SECOND]
    assert not (out / FIRST / summaries.FILE).exists()


def test_runs_that_were_added_to_a_session_are_counted(out: Path) -> None:
    assert [entry.ok for entry in summaries.entries(out)] == [4, 2]
    shutil.rmtree(next((out / FIRST / "runs").iterdir()))
    assert [entry.ok for entry in summaries.entries(out)] == [3, 2]


def test_a_damaged_session_is_listed_with_its_damage(out: Path) -> None:
    (out / FIRST / "session.json").write_text("{")
    first, second = summaries.entries(out)
    assert "session.json is not valid" in first.damage
    assert second.damage == ""


def test_a_session_that_may_not_be_read_hides_no_other(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_dir = Path.is_dir

    def refused(path: Path) -> bool:
        if FIRST in path.parts and path.parent.name == "runs":
            raise PermissionError(13, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    first, second = summaries.entries(out)
    assert "cannot be read: Permission denied" in first.damage
    assert (second.damage, second.ok) == ("", 2)
    assert past_runs.known(out, "local") == NOTHING_KNOWN  # whose made-up runs were not timed: it was read all the same


def test_a_folder_that_is_not_there_has_no_sessions_and_is_not_made(tmp_path: Path) -> None:
    assert summaries.entries(tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
