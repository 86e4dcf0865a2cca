"""The record: whole or refused, appended to and never rewritten."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from builders import a_sample, a_session, a_spec

from bench.cluster.recorder import Recorder
from bench.errors import BadInput, CannotWrite, RecordDamaged
from bench.model import Sample, Spec
from bench.record import store
from bench.timeline import Timeline, encode


def a_recorded_run(out: Path, *samples: Sample, spec: Spec | None = None) -> Path:
    """A session with one run, recorded as the driver does it; gives the session's folder."""
    spec = spec or a_spec()
    folder = store.create(out, a_session((spec,)))
    recorder = Recorder(store.run_folder(folder, spec), spec)
    for sample in samples or (a_sample(),):
        recorder.sample(sample)
    recorder.close("ok", ())
    return folder


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    samples = (a_sample(1000.5), a_sample(None), a_sample(3.0, warmup=True, node="head"))
    folder = a_recorded_run(tmp_path, *samples)
    run = store.load_run(folder, a_spec())
    assert run.samples == samples
    assert run.status == "ok"
    assert store.load_session(folder) == a_session()


def test_timelines_are_read_where_they_are_asked_for_and_nothing_else_is_taken_for_one(tmp_path: Path) -> None:
    folder, spec = a_recorded_run(tmp_path), a_spec()
    assert store.load_timelines(folder, spec) == ()
    path = store.run_folder(folder, spec) / store.FILES / store.TIMELINE
    kept = Timeline(node="head")
    kept.add(1.0, 0.1, {"cpus": 1.5})
    path.write_bytes(encode([kept]))
    (found,) = store.load_timelines(folder, spec)
    assert (found.node, found.ends.tolist(), found.mean["cpus"].tolist()) == ("head", [1.0], [1.5])
    assert store.load_run(folder, spec).timelines == ()  # most reports draw none
    path.write_bytes(b"no timeline")
    with pytest.raises(RecordDamaged, match=rf"{store.TIMELINE} is no timeline"):
        store.load_timelines(folder, spec)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert store.load_timelines(folder, spec) == ()


def test_a_moved_folder_reads_the_same(tmp_path: Path) -> None:
    folder = a_recorded_run(tmp_path / "a")
    moved = folder.rename(tmp_path / "elsewhere")
    assert store.load_runs(moved, store.load_session(moved))[0].status == "ok"


def test_one_flipped_byte_is_found_and_the_file_named(tmp_path: Path) -> None:
    folder = a_recorded_run(tmp_path)
    path = store.run_folder(folder, a_spec()) / store.SAMPLES
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1000.0", b"1000.1"))
    with pytest.raises(RecordDamaged, match=r"samples\.jsonl"):
        store.load_run(folder, a_spec())


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("session.json", b""),
        ("session.json", b"{"),
        ("runs/b01-single-inference-c01/run.json", b"[]"),
        ("runs/b01-single-inference-c01/run.json", b'{"status":"superb","lines":1,"sha256":""}'),
        ("runs/b01-single-inference-c01/samples.jsonl", b'{"seq":1}\n{"seq":3}\n'),
        ("runs/b01-single-inference-c01/samples.jsonl", b'{"seq":1}\n{"se'),
        ("runs/b01-single-inference-c01/samples.jsonl", b"\xff\xfe\n"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, name: str, damage: bytes) -> None:
    folder = a_recorded_run(tmp_path)
    (folder / name).write_bytes(damage)
    with pytest.raises(RecordDamaged, match=name.rpartition("/")[2]):
        store.load_run(folder, store.load_session(folder).specs[0])


@pytest.mark.parametrize("name", ["run.json", "samples.jsonl"])
def test_a_file_that_may_not_be_read_is_damage_with_its_name(tmp_path: Path, name: str) -> None:
    folder = a_recorded_run(tmp_path)
    path = store.run_folder(folder, a_spec()) / name
    path.unlink()
    path.mkdir()  # rights do not keep root out; that it is no file does
    with pytest.raises(RecordDamaged, match=f"{name} cannot be read: it is not a regular file"):
        store.load_run(folder, a_spec())


def test_a_run_that_was_cut_off_keeps_its_whole_lines_and_is_stopped(tmp_path: Path) -> None:
    folder = a_recorded_run(tmp_path, a_sample(1.0), a_sample(2.0))
    path = store.run_folder(folder, a_spec())
    (path / "run.json").unlink()
    (path / store.SAMPLES).write_bytes((path / store.SAMPLES).read_bytes()[:-10])
    run = store.load_run(folder, a_spec())
    assert (run.status, [sample.value for sample in run.samples]) == ("stopped", [1.0])


def test_another_schema_is_refused_by_its_number(tmp_path: Path) -> None:
    folder = store.create(tmp_path, a_session(version=99))
    with pytest.raises(RecordDamaged, match="schema version 99"):
        store.load_session(folder)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    folder = store.create(tmp_path, a_session())
    with pytest.raises(CannotWrite, match="there already"):
        store.create(tmp_path, a_session())
    store.begin_run(folder, a_spec())
    with pytest.raises(CannotWrite, match="resume"):
        store.begin_run(folder, a_spec())


def test_a_gap_is_not_glued_over(tmp_path: Path) -> None:
    path = tmp_path / store.SAMPLES
    assert store.append(path, offset=0, content=b"abc\n") == 4
    with pytest.raises(RecordDamaged, match="4 bytes where 7"):
        store.append(path, offset=7, content=b"def\n")
    assert path.read_bytes() == b"abc\n"


def test_the_last_attempt_counts(tmp_path: Path) -> None:
    folder = store.create(tmp_path, a_session())
    assert store.latest_attempt(folder, a_spec()) is None
    store.begin_run(folder, a_spec())
    store.begin_run(folder, replace(a_spec(), attempt=2))
    last = store.latest_attempt(folder, a_spec())
    assert last is not None
    assert last.attempt == 2


def test_a_session_is_found_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    for name in ("2026-a", "2026-b"):
        store.create(tmp_path, a_session(id=name))
    assert store.find(tmp_path, "2026-a").name == "2026-a"
    assert store.find(tmp_path, "latest").name == "2026-b"
    for name in ("20270101-120000-confirm-00ff", "20270102-120000-selfcheck-quick-00ff"):
        store.create(tmp_path, a_session(id=name))
        assert store.find(tmp_path, name[:16]).name == name
    assert store.find(tmp_path, "latest").name == "2026-b"
    with pytest.raises(BadInput, match="any of 2"):
        store.find(tmp_path, "2026")
    with pytest.raises(BadInput, match="no session 1999"):
        store.find(tmp_path, "1999")


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_no_session_even_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(store.create(tmp_path, a_session(id="2026-a")))
    with pytest.raises(BadInput, match="cannot be empty"):
        store.find(tmp_path, name)


def test_a_session_is_named_beside_its_copies_and_they_by_their_whole_names(tmp_path: Path) -> None:
    folder = store.create(tmp_path, a_session(id="2026-a"))
    for name in ("2026-a (copy)", "2026-a (another copy)", "best"):
        shutil.copytree(folder, tmp_path / name)
    for name in ("2026-a", "2026", "latest"):
        assert store.find(tmp_path, name) == folder
    for name in ("2026-a (copy)", "2026-a (another copy)", "best"):
        assert store.find(tmp_path, name).name == name
    assert store.find(tmp_path, "2026-a (c").name == "2026-a (copy)"
    assert list(store.newest(tmp_path)) == [folder]
    shutil.rmtree(folder)
    with pytest.raises(BadInput, match="any of 2"):
        store.find(tmp_path, "2026-a")


def test_one_whose_name_is_the_beginning_of_another_is_found_by_its_whole_name(tmp_path: Path) -> None:
    folders = [store.create(tmp_path, a_session(id=name)) for name in ("2026-a", "2026-a-2")]
    assert [store.find(tmp_path, folder.name) for folder in folders] == folders


def test_a_session_that_a_wrong_clock_has_dated_is_not_the_latest(tmp_path: Path) -> None:
    ahead = store.create(tmp_path, a_session(id="29990101-120000-inference-tiny-00ff"))
    assert store.find(tmp_path, "latest") == ahead  # there is no other
    (older, newer) = (store.create(tmp_path, a_session(id=f"20200{month}01-120000-x-00ff")) for month in (1, 2))
    assert store.find(tmp_path, "latest") == newer
    assert list(store.newest(tmp_path)) == [newer, older, ahead]


def test_a_latest_session_that_is_damaged_is_not_passed_over(tmp_path: Path) -> None:
    store.create(tmp_path, a_session(id="20200101-120000-x-00ff"))
    damaged = store.create(tmp_path, a_session(id="20200201-120000-x-00ff"))
    (damaged / "session.json").write_text("{")
    assert store.find(tmp_path, "latest") == damaged


def test_a_folder_that_cannot_be_made_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="--out"):
        store.check_writable(tmp_path / "file" / "results")


def test_a_full_disk_is_refused_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LEAST_FREE_BYTES", 2**62)
    with pytest.raises(CannotWrite, match="MiB free"):
        store.check_writable(tmp_path)


def test_an_attempt_that_was_cut_off_before_it_said_what_it_is_has_changed_nothing(tmp_path: Path) -> None:
    folder = a_recorded_run(tmp_path)
    with pytest.raises(RecordDamaged, match=f"seed was {a_spec().seed} and is 8"):
        store.check_unchanged(folder, replace(a_spec(), seed=8))
    (store.run_folder(folder, a_spec()) / "spec.json").unlink()
    store.check_unchanged(folder, replace(a_spec(), seed=8))


def test_a_device_is_written_to_and_no_file_takes_its_place(tmp_path: Path) -> None:
    pipe = tmp_path / "like a device"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    store.write_whole(pipe, b"a report")
    assert os.read(reading, 100) == b"a report"
    os.close(reading)
    assert pipe.is_fifo()
    with pytest.raises(CannotWrite, match="Is a directory"):
        store.write_whole(tmp_path, b"a report")


def test_a_disk_that_gets_full_while_a_file_is_written_keeps_the_old_one_and_no_half_of_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.txt"
    store.write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotWrite, match="No space left on device"):
        store.write_whole(path, b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("report.txt", b"old")]
