"""A log that all processes of a node write: each line in one go, so that no two of them mix."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

MOST_BYTES = 4_000  # of a line: what one write puts down whole


class Journal:
    """A file that is appended to. Lines of many processes stand one after another, never inside each other."""

    def __init__(self, path: Path, who: str) -> None:
        self._who = who
        # The kernel moves to the end and writes in one step where O_APPEND is set (POSIX write), on a disk of one's own.
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(self, text: str) -> None:
        """Write one line: when, who, what."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = f"{now} {self._who} {' '.join(text.split())}".encode()[:MOST_BYTES]
        os.write(self._file, line + b"\n")

    def close(self) -> None:
        os.close(self._file)
