"""Replaces standard output and error by streams that discard what is no longer read, so that the work goes on."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Collection
from typing import Any, TextIO

READER_GONE = frozenset({errno.EPIPE, errno.EIO, errno.ENXIO})  # a pipe without a reader; a terminal that was closed


def outlive_readers() -> None:
    """Replace both streams of this process. Progress is never worth a failure; an answer is where its disk is full."""
    for descriptor in (0, 1, 2):
        _open_if_closed(descriptor)
    sys.stdout = _outliving(sys.stdout, 1, READER_GONE)
    sys.stderr = _outliving(sys.stderr, 2, None)


def _open_if_closed(descriptor: int) -> None:
    """Open a closed descriptor on the null device: the next file would become standard error, and be written to."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


def _outliving(stream: TextIO | None, descriptor: int, ignored: Collection[int] | None) -> TextIO:
    if stream is not None:
        stream.flush()
    if not isinstance(stream, io.TextIOWrapper):  # None: it was closed when Python started
        return io.TextIOWrapper(io.BufferedWriter(_Outliving(descriptor, ignored)), line_buffering=True)
    return io.TextIOWrapper(
        io.BufferedWriter(_Outliving(descriptor, ignored)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _Outliving(io.FileIO):
    """Writes to a descriptor until that fails, and then to nowhere. Raises the first error unless it is one of `ignored`.

    None: all errors are ignored.
    """

    def __init__(self, descriptor: int, ignored: Collection[int] | None) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._ignored = ignored

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())  # for libraries and child processes too, and for what is still buffered
            os.close(nowhere)
            if self._ignored is not None and error.errno not in self._ignored:
                raise
            return memoryview(data).nbytes
