"""Files that are there whole, or are not there."""

from __future__ import annotations

import os
from pathlib import Path


def replace_whole(path: Path, content: bytes, *, is_lasting: bool) -> None:
    """Write `content` beside `path` and rename it there. Raises OSError.

    `is_lasting`: it is on the disk before this returns, and survives a machine that stops. That takes time, which is not
    to be had where writing is part of what is timed.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")  # two processes may be at the same file
    with beside.open("wb") as file:
        file.write(content)
        if is_lasting:
            file.flush()
            os.fsync(file.fileno())
    beside.replace(path)
