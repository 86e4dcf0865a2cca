"""Defines the expected failures: one class and one exit code for each cause. docs/troubleshooting.md has the table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# Of a sentence that ends in another one; no `..` of a path, no ellipsis.
_TWO_STOPS = re.compile(r"(?<=[^\s./`])\.\.(?=\s|$)|(?<=[?!])\.(?=\s|$)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LOG_PREFIX = re.compile(
    r"^(?:[IWEF]\d{4} [\d:.]+ +\d+ \S+:\d+\] |[\d-]{10} [\d:,]+\s+(?:ERROR|CRITICAL) \S+:\d+ --\s*)"
)  # of kubectl, and of all that logs as it does; of Ray, at an error
_STACK = re.compile(r"^Stack Trace:", re.MULTILINE)
_EMPTY = re.compile(
    r"^[\W\d_]*$|^: exit status \d+$|^Remaining processes will be killed\.?$|Error should be written to 'dashboard\.log'"
)
_WARNING = re.compile(r"^(warn(ing)?\b|W\d{4} )", re.IGNORECASE)
_ERROR = re.compile(r"^(error|fatal)\b", re.IGNORECASE)
_MENTIONS_ERROR = re.compile(
    r"error|exception|fatal|fail|denied|refused|cannot|can't|could not|unable|no such|not found|invalid|exit code"
    r"|exited|in use|no space",
    re.IGNORECASE,
)
_MOST_CHARACTERS = 800


class BenchError(Exception):
    """A failure that the user can fix: what happened and what to do, in one line."""

    exit_code = 1

    def __init__(self, what: str, hint: str = "", *, details: tuple[str, ...] = ()) -> None:
        what = _TWO_STOPS.sub(lambda stops: "." if stops[0] == ".." else "", what)
        super().__init__(" ".join(part for part in (what, hint) if part))
        self.what = what
        self.hint = hint
        self.details = details  # lines that the command line prints below the message


class BadInput(BenchError):
    """An unknown name, or a value or option that is not allowed."""

    exit_code = 2


class DoesNotFit(BenchError):
    """The request needs more than this machine or this cluster has."""

    exit_code = 3


class TargetFailed(BenchError):
    """A cluster could not be started, did not stay up, or its clocks are more than a second apart."""

    exit_code = 4


class AuthFailed(BenchError):
    """The cluster refused the token."""

    exit_code = 5


class RunFailed(BenchError):
    """A run failed, lost its driver, or passed its deadline."""

    exit_code = 6


class RunInvalid(BenchError):
    """A run ended, and its numbers cannot be trusted."""

    exit_code = 7


class RecordDamaged(BenchError):
    """A file of a session is missing, incomplete, not valid, or was changed after runs had started."""

    exit_code = 8


class DataMissing(BenchError):
    """A data set is missing, or is not the pinned one."""

    exit_code = 9


class CannotWrite(BenchError):
    """A folder is not writable, or the disk is full."""

    exit_code = 10


class NotComparable(BenchError):
    """Two sessions were measured under different conditions, or have no cell in common."""

    exit_code = 11


class RegressionFound(BenchError):
    """A comparison has a verdict that `--fail-on` names."""

    exit_code = 12


class SelfcheckFailed(BenchError):
    """`bench selfcheck` failed: numbers from this machine cannot be trusted."""

    exit_code = 13


class NothingMeasured(BenchError):
    """Every run ended, and none has a value of its experiment's headline metric."""

    exit_code = 14


class ProgramMissing(BenchError):
    """A program that an option needs is not on PATH."""

    exit_code = 15


class Stopped(BenchError):
    """The user stopped it; what was measured is kept."""

    exit_code = 130


def did_you_mean(name: str, known: Iterable[str], *, meaning: Mapping[str, str] | None = None) -> str:
    """The beginning of a hint about an unknown name: the known one that is most like it, if any is.

    `meaning`: what each is called in full, where `known` has parts of names.
    """
    from difflib import get_close_matches  # only where something is wrong

    close = get_close_matches(name, list(known), n=1)
    return f"Did you mean {(meaning or {}).get(close[0], close[0])}? " if close else ""


def error_in_output(output: str) -> str:
    """The part of a failed program's output that says why it failed, in one line without its full stop.

    The last line alone may be a bracket, a line of a stack trace or "Remaining processes will be killed." Taken are, in this
    order: git's `fatal:` wherever it stands, as kubectl wraps it; the last lines that begin with "error", with all that follows
    them; the last line that mentions an error, with the one that introduces it; a line that introduces another, with that
    one; the last line.
    """
    text = _STACK.split(_COLOUR.sub("", output))[0]
    stripped = [line.strip() for line in text.splitlines()]
    said = [_LOG_PREFIX.sub("", line) for line in stripped if not _EMPTY.search(line) and not _WARNING.search(line)]
    lines = [line for line in said if line]
    chosen = lines[-1:]
    if fatal := [line[at:] for line in lines if (at := line.find("fatal: ")) >= 0]:
        chosen = fatal[-1:]
    elif errors := [number for number, line in enumerate(lines) if _ERROR.search(line)]:
        first = errors[-1]
        while first - 1 in errors:
            first -= 1
        chosen = lines[first:]
    elif mentions := [number for number, line in enumerate(lines) if _MENTIONS_ERROR.search(line)]:
        last = next((number for number in reversed(mentions) if not lines[number].endswith(":")), mentions[-1])
        if lines[last].endswith(":"):  # which introduces what does not mention an error itself
            chosen = lines[last : last + 2]
        else:
            introduced = last > 0 and lines[last - 1].endswith(":")
            chosen = lines[last - introduced : last + 1]
    reason = " ".join(" ".join(chosen).split())
    if len(reason) > _MOST_CHARACTERS:
        half = _MOST_CHARACTERS // 2
        reason = f"{reason[:half]} … {reason[-half:]}"
    return reason.rstrip(".")
