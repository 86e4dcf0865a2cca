"""Tells whether the driver of a run still lives: it locks a file of its record, and the kernel unlocks it when it ends.

However it ends, and whatever container asks: locks of one file meet wherever its filesystem is mounted on one machine.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import BinaryIO

LOCK = "driver.lock"


def hold(folder: Path) -> BinaryIO:
    """Lock the record in `folder` until the file that this returns is closed. The lock file appears with the lock already held."""
    path = folder / f".{LOCK}"
    file = path.open("xb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.rename(folder / LOCK)
    except OSError:  # a filesystem without locks: a lock cannot be seen, and the record is as good
        path.unlink(missing_ok=True)
    return file


def has_ended(folder: Path) -> bool:
    """Whether the driver whose record is in `folder` has ended; False where that cannot be told."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # it is held, or there is none
        return False
    return True
