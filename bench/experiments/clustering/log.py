"""Writes a log that all processes of a node share: each line in one write, so that no two of them mix."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

MAX_LINE_BYTES = 4_000  # what one write puts down whole


class Log:
    """A file that several processes append to, whole lines at a time."""

    def __init__(self, path: Path, writer: str) -> None:
        self._writer = writer
        # The kernel moves to the end and writes in one step where O_APPEND is set (POSIX write), on a disk of one's own.
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, text: str) -> None:
        """Write one line: time, writer, text."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = f"{now} {self._writer} {' '.join(text.split())}".encode()[:MAX_LINE_BYTES]
        os.write(self._file, line + b"\n")

    def close(self) -> None:
        os.close(self._file)
