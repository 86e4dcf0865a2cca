"""Rows of what is done survive whatever ends the process that writes them, and lines of the log do not mix."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import a_journal, an_outcome

from bench.errors import RunFailed
from bench.experiments.clustering import Params, work
from bench.experiments.clustering.metrics import Account
from bench.experiments.clustering.params import job_of
from bench.record.store import DONE

EMPTY = job_of(Params(job="empty"), seed=1)


def test_a_row_is_on_the_disk_when_writing_returns_and_is_read_by_the_next_attempt(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    with a_journal(tmp_path / "1") as first:
        first.append("1/1", [an_outcome(0), an_outcome(5)])
        first.append("2/1", [an_outcome(7)])
        with a_journal(tmp_path / "2", [tmp_path / "1" / DONE]) as second:
            second.append("1/1", [an_outcome(6)])
            assert [each.part for each in second.done("1/1")] == [0, 5, 6]
            assert next(second.done("1/1")) == an_outcome(0)


def test_reading_counts_as_the_journals_time_and_what_is_done_with_a_row_does_not(tmp_path: Path) -> None:
    with a_journal(tmp_path) as journal:
        journal.append("1/1", [an_outcome(number) for number in range(200)])
        written = journal.seconds
        for _ in journal.done("1/1"):
            time.sleep(0.001)
        assert written < journal.seconds < written + 0.2


def test_what_other_work_has_done_is_refused_with_the_difference_and_not_done_again(tmp_path: Path) -> None:
    before, now = work.describe_work(EMPTY, 1000, 10), work.describe_work(EMPTY, 1000, 20)
    with a_journal(tmp_path, work=before) as journal:
        journal.append("1/1", [an_outcome(0)])
    (tmp_path / "2").mkdir()
    with pytest.raises(RunFailed, match=r"1000 jobs, 10 a part.*1000 jobs, 20 a part"):
        a_journal(tmp_path / "2", [tmp_path / DONE], work=now).__enter__()


def test_rows_of_other_work_are_none(tmp_path: Path) -> None:
    with a_journal(tmp_path) as journal:
        journal.append("1/1", [an_outcome(0)])
    with a_journal(tmp_path, work="another") as other:
        assert list(other.done("1/1")) == []


@given(st.integers(0, 600), st.integers(0, 255))
def test_a_journal_that_was_cut_short_or_bent_keeps_its_whole_rows(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    with a_journal(folder) as journal:
        journal.append("1/1", [an_outcome(number) for number in range(3)])
    path = folder / DONE
    whole = path.read_bytes()
    begins = [0, *(i + 1 for i, c in enumerate(whole) if c == ord("\n"))]
    place = min(place, len(whole) - 1)
    cut = whole[:place]
    path.write_bytes(cut)
    with a_journal(folder) as again:
        assert [each.part for each in again.done("1/1")] == list(range(cut.count(b"\n")))
        again.append("1/1", [an_outcome(9)])
        assert [each.part for each in again.done("1/1")][-1] == 9
    bent = bytearray(whole)
    hit = max(number for number, begin in enumerate(begins) if begin <= place)
    bent[place] ^= byte
    path.write_bytes(bent)
    with a_journal(folder) as after:
        found = [each.part for each in after.done("1/1")]
    glued = {hit, hit + 1} if whole[place] == ord("\n") else {hit}
    assert found == [number for number in range(3) if number not in glued or not byte]


def test_a_full_disk_ends_the_run_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_journal(tmp_path) as journal:
        journal.append("1/1", [an_outcome(0)])

        def no_room(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", no_room)
        with pytest.raises(RunFailed, match="No space left on device") as failed:
            journal.append("1/1", [an_outcome(1)])
        assert "bench resume" in failed.value.hint
    monkeypatch.undo()
    with a_journal(tmp_path) as again:
        assert next(each.part for each in again.done("1/1")) == 0


def test_a_disk_that_was_full_all_along_is_told_of_too(tmp_path: Path) -> None:
    (tmp_path / DONE).symlink_to("/dev/full")
    with pytest.raises(RunFailed, match="bench resume"), a_journal(tmp_path) as journal:
        journal.append("1/1", [an_outcome(0)])


def test_a_part_that_is_counted_twice_is_an_error() -> None:
    account = Account()
    account.add(an_outcome(3))
    with pytest.raises(ValueError, match="part 3 was counted before"):
        account.add(an_outcome(3))
