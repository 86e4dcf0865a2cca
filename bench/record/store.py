"""Reads and writes the record of a session: runs are appended to, never rewritten, and finished by a rename.

results/<session>/session.json                    the plan, and why it ended early
results/<session>/runs/<run>/spec.json            the Spec that the run was started with
results/<session>/runs/<run>/samples.jsonl        one value a line: facts, a sample, usage, a checksum
results/<session>/runs/<run>/run.json             how the run ended, written last
results/<session>/runs/<run>/prometheus.om.gz     the series that Prometheus had of the run, if it was monitored
results/<session>/runs/<run>/files/               files written beside the samples: profiles, a journal
results/<session>/runs/<run>/files/timeline.json.gz   resource use of each node during the run, for pictures
results/<session>/runs/<run>/job.log              the end of the driver's log
results/<session>/report.{txt,html,json}          the report: text, HTML with pictures, JSON for programs
results/<session>/summary.json                    the session's line in lists, and which records it and report.json were made from
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec

from bench import stacks, timeline
from bench.errors import BadInput, CannotWrite, RecordDamaged, did_you_mean
from bench.model import SCHEMA_VERSION, Run, RunResult, Session, Spec, as_builtins, to_json
from bench.record import line_format
from bench.record.files import read_plain, replace_whole
from bench.record.line_format import Recorded
from bench.sanitize import clean_reason, clean_text, from_clean_json, to_clean_json
from bench.timeline import Timeline

T = TypeVar("T")

DEFAULT_FOLDER = Path("results")
LEAST_FREE_BYTES = 2**30
LOG_END_BYTES = 20_000
CLOCK_ERROR = timedelta(hours=1)  # how far the clock of another machine may be ahead
SAMPLES = "samples.jsonl"
SERIES = "prometheus.om.gz"
FILES = "files"
TIMELINE = "timeline.json.gz"  # in FILES
MOST_PROFILES = 64  # per run
ENDED = ("ok", "invalid")  # statuses of runs that came to their end, and are not done again by themselves
DONE = "done.jsonl"  # in FILES: the items that are done, which the run's next attempt does not repeat
DATA = "data "  # prefix of a data set's name among the checksums of a run
_OF_RAYMETER = re.compile(r"^\d{8}-\d{6}-(confirm|selfcheck)-")  # sessions that no user planned


class OtherSchema(RecordDamaged):
    """A file has another schema version, which this raymeter cannot read. The file itself is not damaged."""


def check_writable(folder: Path) -> None:
    """Raise CannotWrite unless `folder` exists or can be created, is writable, and has 1 GiB free."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".write-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        raise CannotWrite(
            f"{folder} cannot be written to: {error.strerror}.", "Name another folder with --out."
        ) from error
    if free_bytes < LEAST_FREE_BYTES:
        raise CannotWrite(
            f"{folder} has {free_bytes / 2**20:.0f} MiB free, and 1024 MiB are needed.",
            "Make room, or name another folder with --out.",
        )


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically and sync it to disk. Raises CannotWrite.

    A path that exists and is not a regular file, like /dev/stdout, is written to directly: a rename would replace it.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            replace_whole(path, content, is_lasting=True)
    except OSError as error:
        raise CannotWrite(
            f"{path} cannot be written: {error.strerror}.", "Free disk space, or make it writable."
        ) from error


def create(out: Path, session: Session) -> Path:
    """Create the session's folder with its plan in it. Raises CannotWrite if the folder exists."""
    check_writable(out)
    folder = out / session.id
    try:
        (folder / "runs").mkdir(parents=True)
    except FileExistsError:
        raise CannotWrite(f"{folder} is there already.", "A session is never written over.") from None
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be made: {error.strerror}.", "Name another folder with --out.") from error
    write_whole(folder / "session.json", _indented(session))
    return folder


def end_early(folder: Path, why: str) -> Session:
    """Write into the plan why the session ends without its remaining runs, and return the plan. An empty `why` reopens it."""
    session = load_session(folder)
    if session.ended != why:
        session = replace(session, ended=why)
        write_whole(folder / "session.json", _indented(session))
    return session


def run_folder(folder: Path, spec: Spec) -> Path:
    """Return the folder of the run of `spec`."""
    return folder / "runs" / spec.folder


def begin_run(folder: Path, spec: Spec) -> Path:
    """Create the folder of a run, with its Spec in it. Raises CannotWrite if the folder exists."""
    path = run_folder(folder, spec)
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        raise CannotWrite(f"{path} is there already.", "Continue the session with `bench resume`.") from None
    except OSError as error:
        raise CannotWrite(f"{path} cannot be made: {error.strerror}.", "Make room, then `bench resume`.") from error
    write_whole(path / "spec.json", _indented(spec))
    return path


def append(path: Path, *, offset: int, content: bytes) -> int:
    """Append `content`, which starts at byte `offset`, to `path`; return the new length. Raises RecordDamaged on a gap."""
    try:
        with path.open("ab") as file:
            if file.tell() != offset:
                raise RecordDamaged(f"{path} has {file.tell()} bytes where {offset} were expected.")
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            return file.tell()
    except OSError as error:
        with suppress(OSError):
            os.truncate(path, offset)  # half a line would make all lines before it unreadable
        raise CannotWrite(f"{path} cannot be written: {error.strerror}.", "Make room, then `bench resume`.") from error


def close_run(folder: Path, spec: Spec, result: RunResult) -> RunResult:
    """Write how the run ended, as the last file of the run, and return it as written: with clean text."""
    path = run_folder(folder, spec)
    log = clean_text(result.log_end)
    if log:
        write_whole(path / "job.log", log.encode())
    result = replace(result, reasons=tuple(map(clean_reason, result.reasons)), log_end=log[-2000:])
    write_whole(path / "run.json", msgspec.json.format(to_clean_json(result), indent=2) + b"\n")
    return result


def measure(path: Path) -> tuple[int, str]:
    """Return the number of complete lines in a samples.jsonl, and the SHA-256 of its bytes."""
    content = _content(path)
    return content.count(b"\n"), hashlib.sha256(content).hexdigest()


def find(out: Path, name: str) -> Path:
    """Return the folder of the session called `name`: a path, an id, the beginning of an id, or `latest`. Raises BadInput.

    A complete name takes precedence over names that only begin with it, and a session over its copies. `latest` is the
    newest session that the user planned: sessions of `compare --confirm` and `selfcheck` are found by their ids only.
    """
    if not name.strip():
        raise BadInput("The name of a session cannot be empty.", "See the names with `bench list sessions`.")
    direct = Path(name)
    if (direct / "session.json").is_file():
        return direct
    check_there(out)
    folders = session_folders(out)
    if not folders:
        raise BadInput(
            f"There is no session {name} in {out}, nor any other.",
            "Measure one with `bench run`, or name the folder that has them with --out.",
        )
    if name == "latest":
        matching = list(itertools.islice((path for path in newest(out) if not _OF_RAYMETER.search(path.name)), 1))
    else:
        matching = [folder for folder in folders if folder.name == name]
        matching = matching or [folder for folder in folders if folder.name.startswith(name)]
    if len(matching) > 1:
        matching = [folder for folder in matching if not _is_copy(folder)] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise BadInput(f"{name} could be any of {len(matching)} sessions.", f"Such as {matching[0].name}.")
    known = ", ".join(folder.name for folder in folders[-3:])
    # The beginning of an id is enough, so `name` is compared with as much of each id.
    beginnings = {
        **({} if name == "latest" else {"latest": "latest"}),
        **{folder.name[: len(name)]: folder.name for folder in folders},
    }
    close = did_you_mean(name, beginnings, meaning=beginnings)
    raise BadInput(f"There is no session {name} in {out}.", f"{close}The last ones there: {known}.")


def check_there(out: Path) -> None:
    """Raise BadInput if `out` is not a folder: a mistyped name must not look like a folder without sessions."""
    if not out.is_dir() and (out.exists() or out != DEFAULT_FOLDER):  # the first session creates the default folder
        what = "is no folder" if out.exists() else "does not exist"
        raise BadInput(f"--out {out}: it {what}.", "Name the folder that has the sessions.")


def session_folders(out: Path) -> list[Path]:
    """The folders of all sessions, oldest first."""
    return sorted(path.parent for path in out.glob("*/session.json"))


def newest(out: Path) -> Iterator[Path]:
    """Yield the folders of all sessions that are no copies, newest first. Those dated in the future come last."""
    now = f"{datetime.now(UTC) + CLOCK_ERROR:%Y%m%d-%H%M%S}"
    in_order = sorted(
        session_folders(out), key=lambda folder: (folder.name[: len(now)] <= now, folder.name), reverse=True
    )
    return (folder for folder in in_order if not _is_copy(folder))


def _is_copy(folder: Path) -> bool:
    """Whether `folder` is a copy of a session that is beside it, in the folder with the session's id."""
    try:
        id_ = from_clean_json(read_plain(folder / "session.json"), _Named).id
    except (OSError, msgspec.DecodeError, ValueError):
        return False  # reading the whole file reports the reason
    return id_ != folder.name and (folder.parent / id_ / "session.json").is_file()


@dataclass(frozen=True)
class _Named:
    """The one field of a session that tells a copy from the original."""

    id: str


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Turn an OSError while reading a session into RecordDamaged with the file's name, so that other sessions stay readable."""
    try:
        yield
    except OSError as error:
        raise RecordDamaged(
            f"{error.filename or folder} cannot be read: {error.strerror}.", "Make it readable."
        ) from error


def load_session(folder: Path) -> Session:
    """Return the plan of the session in `folder`. Raises RecordDamaged."""
    return _read(folder / "session.json", Session)


def attempts(folder: Path, spec: Spec) -> Iterator[Spec]:
    """Yield `spec` with the number of each attempt that was started."""
    for number in itertools.count(1):
        attempt = replace(spec, attempt=number)
        with readable(folder):
            is_started = run_folder(folder, attempt).is_dir()
        if not is_started:
            return
        yield attempt


def latest_attempt(folder: Path, spec: Spec) -> Spec | None:
    """Return the last attempt at `spec`; None if it was never started."""
    return max(attempts(folder, spec), key=lambda attempt: attempt.attempt, default=None)


def check_unchanged(folder: Path, attempt: Spec) -> None:
    """Raise RecordDamaged if the plan has other settings for `attempt` than those that it was started with."""
    try:
        started = _started_with(folder, attempt)
    except RecordDamaged:
        return  # reading the run reports the damage
    _check_same(folder, started, attempt)


def _started_with(folder: Path, attempt: Spec) -> Spec | None:
    """Return the Spec that `attempt` was started with; None if the attempt was cut off before it was written."""
    path = run_folder(folder, attempt) / "spec.json"
    return _read(path, Spec) if path.exists() else None


def _check_same(folder: Path, started: Spec | None, attempt: Spec) -> None:
    changed = _differences(started, attempt, ignoring=("session",)) if started else []  # a copy may have another name
    if changed:
        raise RecordDamaged(
            f"Run {attempt.folder} was started with different settings ({'; '.join(changed)}).",
            f"Restore them in {folder / 'session.json'}, or start a new session.",
        )


def check_cells(session: Session) -> None:
    """Raise RecordDamaged if two runs of one cell, which will be compared with each other, have different settings."""
    first: dict[tuple[str, str, str], Spec] = {}
    for spec in session.specs:
        known = first.setdefault((spec.experiment, spec.cell, spec.topology.name), spec)
        if different := _differences(known, spec, ignoring=("id", "session", "block", "attempt")):
            raise RecordDamaged(
                f"Runs {known.id} and {spec.id} of one cell have different settings ({'; '.join(different)}).",
                "Restore them in session.json, or start a new session.",
            )


def _differences(one: Spec, other: Spec, *, ignoring: Collection[str]) -> list[str]:
    if one == other:
        return []
    was, now = _flat(one), _flat(other)
    return [
        f"{name} was {was.get(name)} and is {now.get(name)}"
        for name in now | was
        if name not in ignoring and was.get(name) != now.get(name)
    ]


def _flat(spec: Spec) -> dict[str, object]:
    settings: dict[str, object] = {}
    for name, value in as_builtins(spec).items():
        settings |= (
            {f"{name}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
        )
    return settings


def last_attempts(runs: Iterable[Run]) -> list[Run]:
    """Return the last attempt of every run, which is the one that counts."""
    return list({run.spec.id: run for run in runs}.values())


def load_run(folder: Path, spec: Spec) -> Run:
    """Read one run, and check each line against run.json. Raises RecordDamaged with file and line.

    A run without run.json was cut off: its samples are kept, and its status is `stopped`.
    """
    path = run_folder(folder, spec)
    with readable(path):
        _check_same(folder, _started_with(folder, spec), spec)
        result = ending(path)
        content = _content(path / SAMPLES)
        recorded = _recorded(path / SAMPLES, content, is_closed=result is not None)
        if result is not None:
            _check_whole(path / SAMPLES, content, result)
        profiles = dict(_profiles(path / FILES))
    digests, facts = recorded.digests, recorded.facts
    data = {name.removeprefix(DATA): digest for name, digest in digests.items() if name.startswith(DATA)}
    return Run(
        spec=spec,
        status=result.status if result else "stopped",
        reasons=tuple(map(clean_reason, result.reasons)) if result else ("it was cut off before it ended",),
        facts=replace(facts, data=data) if facts else None,
        samples=recorded.samples,
        usage=recorded.usage,
        digests={name: digest for name, digest in digests.items() if not name.startswith(DATA)},
        reconciled=result.reconciled if result else None,
        alerts=result.alerts if result else (),
        log_end=result.log_end if result else "",
        quiet_check=result.quiet_check if result else None,
        clock_offsets_seconds=result.clock_offsets_seconds if result else {},
        extract=result.extract if result else None,
        idle_load=result.idle_load if result else None,
        seconds=result.seconds if result else None,
        cluster_seconds=result.cluster_seconds if result else None,
        profiles=profiles,
        monitored=result.monitored if result else None,
    )


def ending(path: Path) -> RunResult | None:
    """Return how the run in the folder `path` ended; None if it was cut off before run.json. Raises RecordDamaged."""
    return _read(path / "run.json", RunResult) if (path / "run.json").exists() else None


def _check_whole(path: Path, content: bytes, result: RunResult) -> None:
    """Raise RecordDamaged if a samples.jsonl is not the one that `result` was written for, with what happened to it."""
    count = content.count(b"\n")
    if (count, hashlib.sha256(content).hexdigest()) == (result.lines, result.sha256):
        return
    if count != result.lines:
        raise RecordDamaged(f"{path} has {count} of {result.lines} lines.")
    if hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() == result.sha256:
        raise RecordDamaged(
            f"{path} has CRLF line ends, to which something converted it, as git may.",
            f"`dos2unix {path}` restores it.",
        )
    raise RecordDamaged(f"{path} was changed: its checksum is not the one in run.json.")


def _profiles(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each profile of a run. A cluster wrote them, so number and size of what is read are limited."""
    paths = (path for path in sorted(folder.glob("profile.*")) if stacks.read_name(path.name))
    for path in itertools.islice(paths, MOST_PROFILES):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                yield path.name, clean_text(file.read(stacks.MOST_BYTES).decode(errors="replace"))


def load_timelines(folder: Path, spec: Spec) -> tuple[Timeline, ...]:
    """Return the timelines of each node's resource use during a run; none if they were not recorded. Raises RecordDamaged."""
    path = run_folder(folder, spec) / FILES / TIMELINE
    with readable(path.parent):
        if not path.is_file() or path.is_symlink():
            return ()
        content = read_plain(path, most_bytes=timeline.MOST_BYTES)
    try:
        return tuple(timeline.decode(content))
    except ValueError as error:
        raise RecordDamaged(f"{path} is no timeline: {error}.", "Delete it: a report is made without it.") from error


def read_samples(path: Path, *, is_closed: bool) -> Recorded:
    """Decode a samples.jsonl. Half a line at the end of a run that was cut off is left out. Raises RecordDamaged."""
    return _recorded(path, _content(path), is_closed=is_closed)


def _content(path: Path) -> bytes:
    return read_plain(path) if path.exists() else b""


def _recorded(path: Path, content: bytes, *, is_closed: bool) -> Recorded:
    end = content.rfind(b"\n") + 1
    if is_closed and end < len(content):
        raise RecordDamaged(f"{path} ends in half a line.")
    return line_format.read(content[:end], path)


def load_runs(folder: Path, session: Session) -> list[Run]:
    """Read every attempt of every run that was started, in the order of the plan. Damaged runs have the status `damaged`."""
    return [run_or_damage(folder, attempt) for spec in session.specs for attempt in attempts(folder, spec)]


def run_or_damage(folder: Path, spec: Spec) -> Run:
    """Read one run. A run whose record is damaged becomes a run with the status `damaged` and the reason.

    The reason names files relative to the session's folder, so that it does not depend on where that is. Raises OtherSchema.
    """
    try:
        return load_run(folder, spec)
    except OtherSchema:
        raise
    except RecordDamaged as error:
        reason = error.what.removeprefix(f"{folder}{os.sep}")
        return Run(spec=spec, status="damaged", reasons=(clean_reason(reason),))


def _read(path: Path, kind: type[T]) -> T:
    try:
        content = read_plain(path)
        _check_version(path, content)
        return from_clean_json(content, kind)
    except OSError as error:
        raise RecordDamaged(f"{path} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise RecordDamaged(f"{path} is not valid: {error}.") from error


@dataclass(frozen=True)
class _Versioned:
    """The schema version of a record's file; the other fields depend on it."""

    version: int = SCHEMA_VERSION


def _check_version(path: Path, content: bytes) -> None:
    """Raise OtherSchema for another schema version, before the other fields are decoded."""
    version = msgspec.json.decode(content, type=_Versioned).version
    if version != SCHEMA_VERSION:
        raise OtherSchema(
            f"{path} has schema version {version}, and this raymeter reads {SCHEMA_VERSION}.",
            "Use the version of raymeter that wrote it.",
        )


def _indented(value: object) -> bytes:
    return msgspec.json.format(to_json(value), indent=2) + b"\n"
