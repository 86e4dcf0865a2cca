"""Which parts are done: a row each, on the disk before it counts, and home as it grows. The next attempt does the others.

A row holds its part's results too, so that a head that takes its disk along takes nothing along that was done. It is one
line with its own checksum; a line that was cut short, or bent, is no row, and its part is done again.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from bench.errors import RunFailed
from bench.experiments.clustering.work import Job, Outcome
from bench.model import from_json, to_json

HALF_A_ROW_BYTES = 100
NAME = "done.jsonl"  # what the next attempt is given


@dataclass(frozen=True, kw_only=True)
class Row:
    """A part that is done, and what it was a part of."""

    key: str  # of the work as a whole
    round: str  # "2/1": turn and pass
    outcome: Outcome


def key_of(job: Job, jobs: int, jobs_per_part: int) -> str:
    """What two pieces of work have in common whose parts are the same."""
    return f"{jobs} jobs, {jobs_per_part} a part, {sha256(repr(job).encode()).hexdigest()[:16]}"


class Ledger:
    """The rows of this attempt, and those of the attempts before."""

    def __init__(self, folder: Path, earlier: Sequence[Path], key: str) -> None:
        self._path = folder / NAME
        self._earlier = earlier
        self._key = key
        self._file: BinaryIO = io.BytesIO()  # until it is opened
        self.seconds = 0.0  # that writing took, and reading
        self._most_bytes: int | None = None

    def __enter__(self) -> Self:
        self._refuse_other_work()
        is_cut_short = _ends_in_a_line_cut_short(self._path)
        self._file = self._path.open("ab")
        if is_cut_short:
            self._file.write(b"\n")  # a row glued to half a row would be lost with it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What could not be written cannot be at the end either.
        with suppress(OSError) if error else nullcontext(), _files_of_at_most(self._most_bytes):
            self._file.close()

    def kept(self, round_: str) -> Iterator[Outcome]:
        """What earlier attempts, or this one, have done of a round: each part once."""
        seen: set[int] = set()
        begun = perf_counter()
        for path in (*self._earlier, self._path):
            for row in _rows(path):
                if (row.key, row.round) == (self._key, round_) and row.outcome.part not in seen:
                    seen.add(row.outcome.part)
                    self.seconds += perf_counter() - begun
                    yield row.outcome
                    begun = perf_counter()
        self.seconds += perf_counter() - begun

    def _refuse_other_work(self) -> None:
        for path in self._earlier:
            first = next(_rows(path), None)
            if first is not None and first.key != self._key:
                raise RunFailed(
                    f"An earlier attempt did other work: {first.key}; this is {self._key}. None of it would count.",
                    "Start a new session, or resume with the code and params of the earlier attempt.",
                )

    def fill_up(self) -> None:
        """From now on the ledger's disk has room for half a row. The limit is this process's own: no disk is filled."""
        self._most_bytes = self._path.stat().st_size + HALF_A_ROW_BYTES

    def write(self, round_: str, outcomes: Sequence[Outcome]) -> None:
        """Note that these parts are done. They are on the disk when this returns. Raises RunFailed where they cannot be."""
        begun = perf_counter()
        try:
            with _files_of_at_most(self._most_bytes):
                self._file.write(b"".join(_line(Row(key=self._key, round=round_, outcome=each)) for each in outcomes))
                self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunFailed(
                f"The ledger could not be written: {error.strerror}. What it holds is whole.",
                "Make room on the head's disk, and go on with `bench resume`.",
            ) from error
        self.seconds += perf_counter() - begun


@contextmanager
def _files_of_at_most(size: int | None) -> Iterator[None]:
    """No file that this process writes grows beyond so many bytes meanwhile: what does is cut off there (`setrlimit(2)`)."""
    if size is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))  # Python ignores SIGXFSZ: the write fails instead
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _ends_in_a_line_cut_short(path: Path) -> bool:
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _line(row: Row) -> bytes:
    text = to_json(row)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _rows(path: Path) -> Iterator[Row]:
    """The whole rows of a ledger, read a line at a time: there may be more of them than memory holds."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            check, _, text = line.rstrip(b"\n").partition(b" ")
            try:
                if line.endswith(b"\n") and check == b"%08x" % zlib.crc32(text):
                    yield from_json(text, Row)
            except (ValueError, msgspec.MsgspecError):
                continue
