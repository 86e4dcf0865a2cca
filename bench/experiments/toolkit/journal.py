"""Records the done items of a run, one row each, so that the next attempt does only the rest. A row is on disk when `append` returns.

A row is a line with a checksum of its own. A line that was cut short or damaged is ignored, and its item is done again. A row also
holds the item's results: the file is transferred while it grows, so that they survive the loss of the head's disk.
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
    """One done item, and the work and group that it belongs to."""

    work: str
    group: str  # turn and pass, e.g. "2/1"
    item: msgspec.Raw


class Journal(Generic[Item]):
    """The items of type `item` that this attempt and earlier ones have done.

    `work` identifies the whole work: rows of other work are refused. Of items with the same `identity`, the first counts.

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
        self._file: BinaryIO = io.BytesIO()  # replaced when the journal is opened
        self._max_bytes: int | None = None
        self.seconds = 0.0  # spent on writing and reading

    def __enter__(self) -> Self:
        """Open the journal. Raises RunFailed if an earlier attempt did other work."""
        self._refuse_other_work()
        is_cut_short = _ends_in_partial_line(self._path)
        self._file = self._path.open("ab")
        if is_cut_short:
            self._file.write(b"\n")  # otherwise the next row would continue the partial one and be lost with it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error, the rest of the buffer cannot be written either.
        with suppress(OSError) if error else nullcontext(), _file_size_limit(self._max_bytes):
            self._file.close()

    def done(self, group: str) -> Iterator[Item]:
        """Yield each item of a group that earlier attempts or this one have done, once."""
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
        """Record that `items` are done. They are on disk when this returns. Raises RunFailed if they cannot be written."""
        begin = perf_counter()
        rows = [Row(work=self._work, group=group, item=msgspec.Raw(to_json(item))) for item in items]
        try:
            with _file_size_limit(self._max_bytes):
                self._file.write(b"".join(map(_line, rows)))
                self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunFailed(
                f"The journal of done work could not be written: {error.strerror}. Its earlier rows are complete.",
                "Make room on the head's disk, then `bench resume`.",
            ) from error
        self.seconds += perf_counter() - begin

    def fill_disk(self) -> None:
        """Leave room for half a row from now on. The limit applies to this process only: the disk itself is not filled."""
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
    """Limit the files that this process writes to `size` bytes: a longer write is cut off there (`setrlimit(2)`)."""
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
    """Yield the complete rows of a journal, a line at a time: it may be larger than memory."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            check, _, text = line.rstrip(b"\n").partition(b" ")
            if line.endswith(b"\n") and check == b"%08x" % zlib.crc32(text):
                with suppress(msgspec.MsgspecError, ValueError):
                    yield from_json(text, Row)
