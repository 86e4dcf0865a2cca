"""Writes down what is done of a run, so that the next attempt does only the rest: one row for each item, durable when written.

A row is one line with its own checksum; a line that was cut short or damaged is no row, and its item is done again. A row holds
the item's results too: they survive a head that is lost together with its disk, for the file is copied out as it grows.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import BinaryIO, Generic, Self, TypeVar

import msgspec

from bench.errors import RunFailed
from bench.model import from_json, to_json
from bench.record.store import DONE

Item = TypeVar("Item")

HALF_A_ROW_BYTES = 100


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One item that is done, and what it is a part of."""

    work: str
    group: str  # turn and pass, as in "2/1"
    item: msgspec.Raw


class Journal(Generic[Item]):
    """The items of type `item` that this attempt and earlier ones did.

    `work` names the whole work: rows of other work do not count. Items with the same `identity` are the same, and one of them counts.

        with Journal(context.folder, context.earlier, work=..., item=Trial, identity=lambda trial: trial.number) as journal:
            reused = list(journal.done("1"))  # if there are any: context.reuses_work()
            journal.append("1", [trial])
    """

    def __init__(
        self,
        folder: Path,
        earlier: Sequence[Path],
        *,
        work: str,
        item: type[Item],
        identity: Callable[[Item], Hashable],
    ) -> None:
        self._path = folder / DONE
        self._earlier = earlier
        self._work = work
        self._item = item
        self._identity = identity
        self._file: BinaryIO = io.BytesIO()  # until it is opened
        self._max_bytes: int | None = None
        self.seconds = 0.0  # spent on writing and reading

    def __enter__(self) -> Self:
        """Open the journal. Raises RunFailed where an earlier attempt did other work."""
        self._refuse_other_work()
        is_cut_short = _ends_in_partial_line(self._path)
        self._file = self._path.open("ab")
        if is_cut_short:
            self._file.write(b"\n")  # a row appended to a partial row would be lost with it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What could not be written before cannot be written now either.
        with suppress(OSError) if error else nullcontext(), _file_size_limit(self._max_bytes):
            self._file.close()

    def done(self, group: str) -> Iterator[Item]:
        """The items of a group that earlier attempts, then this one, have done: each once."""
        seen: set[Hashable] = set()
        begin = perf_counter()
        for item in self._items(group):
            identity = self._identity(item)
            if identity not in seen:
                seen.add(identity)
                self.seconds += perf_counter() - begin
                yield item
                begin = perf_counter()
        self.seconds += perf_counter() - begin

    def append(self, group: str, items: Sequence[Item]) -> None:
        """Write down that `items` are done. They are on the disk when this returns. Raises RunFailed where they cannot be."""
        begin = perf_counter()
        rows = [Row(work=self._work, group=group, item=msgspec.Raw(to_json(item))) for item in items]
        try:
            with _file_size_limit(self._max_bytes):
                self._file.write(b"".join(map(_line, rows)))
                self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunFailed(
                f"The journal of done work could not be written: {error.strerror}. Its earlier rows are whole.",
                "Make room on the head's disk, and go on with `bench resume`.",
            ) from error
        self.seconds += perf_counter() - begin

    def fill_disk(self) -> None:
        """From now on leave room for half a row. The limit is this process's own: the disk itself is not filled."""
        self._max_bytes = self._path.stat().st_size + HALF_A_ROW_BYTES

    def _items(self, group: str) -> Iterator[Item]:
        for path in (*self._earlier, self._path):
            for row in _rows(path):
                if (row.work, row.group) == (self._work, group):
                    with suppress(msgspec.MsgspecError, ValueError):
                        yield from_json(bytes(row.item), self._item)

    def _refuse_other_work(self) -> None:
        for path in self._earlier:
            first = next(_rows(path), None)
            if first is not None and first.work != self._work:
                raise RunFailed(
                    f"An earlier attempt did other work: {first.work}; this is {self._work}. None of it would count.",
                    "Start a new session, or resume with the code and params of the earlier attempt.",
                )


@contextmanager
def _file_size_limit(size: int | None) -> Iterator[None]:
    """Let no file that this process writes grow beyond `size` bytes: a longer write is cut off there (`setrlimit(2)`)."""
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


def _ends_in_partial_line(path: Path) -> bool:
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _line(row: Row) -> bytes:
    text = msgspec.json.encode(row)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _rows(path: Path) -> Iterator[Row]:
    """The whole rows of a journal, read a line at a time: there may be more of them than memory holds."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            check, _, text = line.rstrip(b"\n").partition(b" ")
            if line.endswith(b"\n") and check == b"%08x" % zlib.crc32(text):
                with suppress(msgspec.MsgspecError, ValueError):
                    yield from_json(text, Row)
