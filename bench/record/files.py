"""Files with a promise: written, they are there whole or not at all; read, they are files, and nothing that is waited for."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from bench.errors import BadInput, error_in_output

LOG_LINES = 20  # the end of a log, in which a failure is explained


def replace_whole(path: Path, content: bytes, *, is_lasting: bool) -> None:
    """Write `content` beside `path` and rename it there. Raises OSError.

    `is_lasting`: it is on the disk before this returns, and survives a machine that stops. That takes time, which is not
    to be had where writing is part of what is timed.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")  # two processes may be at the same file
    try:
        with beside.open("wb") as file:
            file.write(content)
            if is_lasting:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()  # half a file is of no use
        raise


def expand_home(text: str) -> str:
    """The path in `text` with the home folder in the place of its `~`. Raises BadInput where there is no such home."""
    expanded = os.path.expanduser(text)  # noqa: PTH111, Path raises RuntimeError, and drops what `text` ends in
    if expanded.startswith("~"):
        raise BadInput(
            f"{text}: the home folder {text.partition('/')[0]} is not known.", f"Write the whole path, or ./{text}."
        )
    return expanded


def open_plain(path: Path) -> BufferedReader:
    """A regular file that the user names, open for reading: a pipe would be waited for, and a device may never end.

    Raises OSError for anything else, without waiting.
    """
    refusal = OSError(errno.EINVAL, "it is no regular file", str(path))
    if not stat.S_ISREG(path.stat().st_mode):  # before it is opened, which some devices notice
        raise refusal
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise refusal
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, *, most_bytes: int = -1) -> bytes:
    """The content of a regular file, or its first `most_bytes`. Raises OSError for anything else, without waiting."""
    with open_plain(path) as file:
        return file.read(most_bytes)


def error_in_log(log: Path) -> str:
    """Why a program failed, as the end of its log says it; empty where the log is empty or missing."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return error_in_output("\n".join(lines[-LOG_LINES:]))
