"""Writes files atomically, and reads regular files without ever blocking."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from bench.errors import BadInput, error_in_output

LOG_LINES = 60  # a failed program explains itself in the last lines of its log; Ray then repeats 20 of another one


def replace_whole(path: Path, content: bytes, *, is_lasting: bool) -> None:
    """Write `content` to a temporary file beside `path` and rename it to `path`. Raises OSError.

    `is_lasting`: sync the file to disk before returning, so that it survives a crash of the machine. A sync takes time:
    leave it out where the write itself is timed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # one per process: two may write the same file
    try:
        with temporary.open("wb") as file:
            file.write(content)
            if is_lasting:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def expand_home(text: str) -> str:
    """Replace the `~` or `~user` that `text` begins with by the home folder. Raises BadInput if it is unknown."""
    expanded = os.path.expanduser(text)  # noqa: PTH111, Path raises RuntimeError, and drops a trailing slash
    if expanded.startswith("~"):
        raise BadInput(
            f"{text}: the home folder {text.partition('/')[0]} is not known.", f"Write the whole path, or ./{text}."
        )
    return expanded


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file for reading. Raises OSError for everything else, without blocking.

    A pipe would block, and reading a device may never end.
    """
    refusal = OSError(errno.EINVAL, "it is not a regular file", str(path))
    if not stat.S_ISREG(path.stat().st_mode):  # before it is opened: some devices react to that
        raise refusal
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise refusal
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, *, most_bytes: int = -1) -> bytes:
    """Return the content of a regular file, or its first `most_bytes`. Raises OSError for everything else, without blocking."""
    with open_plain(path) as file:
        return file.read(most_bytes)


def error_in_log(log: Path) -> str:
    """Return the reason of a failure from the end of a program's log; empty if the log is empty or missing."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return error_in_output("\n".join(lines[-LOG_LINES:]))
