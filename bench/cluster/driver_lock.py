"""Tells whether the driver of a run still runs, by a lock on a file of its record that the kernel releases when it ends.

This works however the driver ends, and from other containers: a lock is seen wherever the filesystem is mounted on the machine.
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
    except OSError:  # the filesystem has no locks: the record is complete without
        path.unlink(missing_ok=True)
    return file


def has_ended(folder: Path) -> bool:
    """Whether the driver whose record is in `folder` has ended; False if that is unknown."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # the lock is held, or there is no lock file
        return False
    return True
