"""Chooses and makes the folder of Ray's own files, with a path short enough for sockets and plain enough for a shell."""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import CannotWrite

FALLBACKS = ("/tmp", "/var/tmp")
SOCKET_BYTES = 103 if sys.platform == "darwin" else 107  # the longest path that a Unix socket may have
# Of all sockets of all nodes, the one with the longest path: of the dashboard, on the head.
_BELOW = "/rm-01234567/h/session_2026-01-01_00-00-00_000000_4194304/sockets/dash_TaskEventsHead"
MOST_BYTES = SOCKET_BYTES - len(_BELOW)
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")


@dataclass(frozen=True)
class Parent:
    """The folder in which run folders are made, with a note if it is not the first choice."""

    path: str
    note: str = ""


def choose(wanted: str | None = None, fallbacks: Sequence[str] = FALLBACKS) -> Parent:
    """The temporary folder of this process, or a short one if Ray cannot use that. Raises CannotWrite."""
    wanted = _temporary() if wanted is None else wanted
    reasons: list[str] = []
    for path in dict.fromkeys((wanted, *fallbacks)):
        reason = unfit(path)
        if not reason:
            return Parent(path, f"Ray's files go to {path}, because {'; '.join(reasons)}." if reasons else "")
        reasons.append(reason)
    raise CannotWrite(
        f"No folder can hold Ray's files: {'; '.join(reasons)}.",
        f"Set TMPDIR to a folder that you can write to, with a path of at most {MOST_BYTES} plain characters.",
    )


def unfit(path: str) -> str:
    """Why Ray's files cannot be below `path`; empty if they can."""
    if (size := len(os.fsencode(path))) > MOST_BYTES:
        return f"the path {path!r} has {size} bytes, and Ray's sockets allow {MOST_BYTES}"
    if not is_plain(path):
        return f"the path {path!r} has characters that are unsafe in a shell"
    if not Path(path).is_absolute() or not Path(path).is_dir() or not os.access(path, os.W_OK | os.X_OK):
        return f"{path!r} is not a folder that can be written to"
    return ""


def is_plain(path: str) -> bool:
    """Whether a shell takes `path` literally without quotes: Ray quotes only some of its paths."""
    return _PLAIN.fullmatch(path) is not None


def make(path: Path) -> None:
    """Make a run folder that only this user can read. Raises CannotWrite."""
    try:
        path.mkdir(mode=0o700)
        made = path.lstat()
    except OSError as error:
        raise CannotWrite(
            f"Cannot make {path}: {error.strerror}.", "Set TMPDIR to a short path that you can write to."
        ) from error
    if made.st_uid != os.geteuid() or stat.S_IMODE(made.st_mode) & 0o077 or not stat.S_ISDIR(made.st_mode):
        raise CannotWrite(f"{path} is not private to this user.", "Set TMPDIR to a short path that you can write to.")


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:  # none of them can be written to
        return os.environ.get("TMPDIR") or FALLBACKS[0]
