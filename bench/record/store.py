"""The record on disk: appended to, never rewritten, finished by a rename. It is the truth.

results/<session>/session.json                    the plan, and why it ended early
results/<session>/runs/<run>/spec.json            what was asked
results/<session>/runs/<run>/samples.jsonl        one value a line: facts, a sample, usage, a checksum
results/<session>/runs/<run>/run.json             how it ended, written last
results/<session>/runs/<run>/prometheus.om.gz     what Prometheus had of it, where there was one
results/<session>/runs/<run>/files/               what is left beside the numbers: a profile, a journal
results/<session>/runs/<run>/files/timeline.json.gz   what each node used over the time of the run, for pictures
results/<session>/runs/<run>/job.log              the end of the driver's log
results/<session>/report.{txt,html,json}          the report: text, with pictures, for programs
results/<session>/summary.json                    what lists show of it, and which records that and report.json were made from
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
CLOCK_ERROR = timedelta(hours=1)  # that the clock of another machine may have
SAMPLES = "samples.jsonl"
SERIES = "prometheus.om.gz"
FILES = "files"
TIMELINE = "timeline.json.gz"  # among these
MOST_PROFILES = 64  # of one run
DONE = "done.jsonl"  # among these: what the next attempt at the run is given back, so that it need not be done again
DATA = "data "  # in front of a data set's name, among the checksums of a run
_OF_RAYMETER = re.compile(r"^\d{8}-\d{6}-(confirm|selfcheck)-")  # sessions that no user planned


class OtherSchema(RecordDamaged):
    """A file was written by a raymeter whose records this one cannot read. Nothing is wrong with it."""


def check_writable(folder: Path) -> None:
    """Raise CannotWrite unless `folder` can be made and written to, with a GiB to spare."""
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
    """A file that is whole or not there, and on the disk. Raises CannotWrite.

    What is there and is no file, as /dev/stdout, is written to: who may rename would put a file in its place.
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
    """Make the session's folder, with its plan in it. A folder that is there is refused."""
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
    """Write into the plan why it is complete without the runs that it lacks; the empty text: that none are left out."""
    session = load_session(folder)
    if session.ended != why:
        session = replace(session, ended=why)
        write_whole(folder / "session.json", _indented(session))
    return session


def run_folder(folder: Path, spec: Spec) -> Path:
    """Where the files of this run of `spec` are."""
    return folder / "runs" / spec.folder


def begin_run(folder: Path, spec: Spec) -> Path:
    """Make the folder of a run and write down what was asked. A folder that is there is refused."""
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
    """Add `content`, which begins at `offset`, to the end of `path`; the new length. Raises RecordDamaged on a gap."""
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
            os.truncate(path, offset)  # half a line would spoil all that is before it
        raise CannotWrite(f"{path} cannot be written: {error.strerror}.", "Make room, then `bench resume`.") from error


def close_run(folder: Path, spec: Spec, result: RunResult) -> RunResult:
    """Write how the run ended, with clean text; what was written. After this it is never touched again."""
    path = run_folder(folder, spec)
    log = clean_text(result.log_end)
    if log:
        write_whole(path / "job.log", log.encode())
    result = replace(result, reasons=tuple(map(clean_reason, result.reasons)), log_end=log[-2000:])
    write_whole(path / "run.json", msgspec.json.format(to_clean_json(result), indent=2) + b"\n")
    return result


def measure(path: Path) -> tuple[int, str]:
    """Whole lines in a samples.jsonl, and the SHA-256 of its bytes."""
    content = _content(path)
    return content.count(b"\n"), hashlib.sha256(content).hexdigest()


def find(out: Path, name: str) -> Path:
    """The session folder called `name`: a path, an id, the beginning of one, or `latest`. Raises BadInput.

    A whole name is that folder, whatever else begins with it; the beginning of an id is the session, and not a copy of it.
    The latest is the last one that the user planned: those of `compare --confirm` and `selfcheck` are found by their ids.
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
        matching = list(itertools.islice((each for each in newest(out) if not _OF_RAYMETER.search(each.name)), 1))
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
    # The beginning of an id is enough, so what is as long as that is what it is held against.
    beginnings = {
        **({} if name == "latest" else {"latest": "latest"}),
        **{folder.name[: len(name)]: folder.name for folder in folders},
    }
    close = did_you_mean(name, beginnings, meaning=beginnings)
    raise BadInput(f"There is no session {name} in {out}.", f"{close}The last ones there: {known}.")


def check_there(out: Path) -> None:
    """Raise BadInput where `out` is no folder: a slip in its name must not look like a folder without sessions."""
    if not out.is_dir() and (out.exists() or out != DEFAULT_FOLDER):  # the default one is made by the first session
        what = "is no folder" if out.exists() else "does not exist"
        raise BadInput(f"--out {out}: it {what}.", "Name the folder that has the sessions.")


def session_folders(out: Path) -> list[Path]:
    """The folders of all sessions, oldest first."""
    return sorted(path.parent for path in out.glob("*/session.json"))


def newest(out: Path) -> Iterator[Path]:
    """The folders of all sessions but copies, the newest first. Those that no clock can have dated yet come last."""
    now = f"{datetime.now(UTC) + CLOCK_ERROR:%Y%m%d-%H%M%S}"
    in_order = sorted(
        session_folders(out), key=lambda folder: (folder.name[: len(now)] <= now, folder.name), reverse=True
    )
    return (folder for folder in in_order if not _is_copy(folder))


def _is_copy(folder: Path) -> bool:
    """Whether the session in `folder` is beside it too, in the folder with its own name."""
    try:
        id_ = from_clean_json(read_plain(folder / "session.json"), _Named).id
    except (OSError, msgspec.DecodeError, ValueError):
        return False  # who reads all of it will say what is wrong
    return id_ != folder.name and (folder.parent / id_ / "session.json").is_file()


@dataclass(frozen=True)
class _Named:
    """As much of a session as tells whose copy it is."""

    id: str


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """What of a session may not be read is damage to that session alone. Raises RecordDamaged, naming the file."""
    try:
        yield
    except OSError as error:
        raise RecordDamaged(
            f"{error.filename or folder} cannot be read: {error.strerror}.", "Make it readable."
        ) from error


def load_session(folder: Path) -> Session:
    """The plan. Raises RecordDamaged."""
    return _read(folder / "session.json", Session)


def attempts(folder: Path, spec: Spec) -> Iterator[Spec]:
    """`spec` with the number of each attempt that was begun."""
    for number in itertools.count(1):
        tried = replace(spec, attempt=number)
        with readable(folder):
            is_begun = run_folder(folder, tried).is_dir()
        if not is_begun:
            return
        yield tried


def latest_attempt(folder: Path, spec: Spec) -> Spec | None:
    """The last attempt at `spec`; None if it was never begun."""
    return max(attempts(folder, spec), key=lambda tried: tried.attempt, default=None)


def check_unchanged(folder: Path, tried: Spec) -> None:
    """Raise RecordDamaged where the plan has other settings for the attempt `tried` than those that it was started with."""
    try:
        begun = _begun(folder, tried)
    except RecordDamaged:
        return  # reading the run says so
    _check_same(folder, begun, tried)


def _begun(folder: Path, tried: Spec) -> Spec | None:
    """What the attempt `tried` was started with; None: it was cut off before it was written down."""
    path = run_folder(folder, tried) / "spec.json"
    return _read(path, Spec) if path.exists() else None


def _check_same(folder: Path, begun: Spec | None, tried: Spec) -> None:
    changed = _differences(begun, tried, but=("session",)) if begun else []  # its name is no setting
    if changed:
        raise RecordDamaged(
            f"Run {tried.folder} was started with different settings ({'; '.join(changed)}).",
            f"Restore them in {folder / 'session.json'}, or start a new session.",
        )


def check_cells(session: Session) -> None:
    """Raise RecordDamaged where runs of one cell, which are compared with each other, have different settings."""
    first: dict[tuple[str, str, str], Spec] = {}
    for spec in session.specs:
        known = first.setdefault((spec.experiment, spec.cell, spec.topology.name), spec)
        if differ := _differences(known, spec, but=("id", "session", "block", "attempt")):
            raise RecordDamaged(
                f"Runs {known.id} and {spec.id} of one cell have different settings ({'; '.join(differ)}).",
                "Restore them in session.json, or start a new session.",
            )


def _differences(one: Spec, other: Spec, *, but: Collection[str]) -> list[str]:
    if one == other:
        return []
    was, now = _flat(one), _flat(other)
    return [
        f"{name} was {was.get(name)} and is {now.get(name)}"
        for name in now | was
        if name not in but and was.get(name) != now.get(name)
    ]


def _flat(spec: Spec) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in as_builtins(spec).items():
        found |= (
            {f"{name}.{each}": inner for each, inner in value.items()} if isinstance(value, dict) else {name: value}
        )
    return found


def last_attempts(runs: Iterable[Run]) -> list[Run]:
    """Of every run its last attempt, which is the one that counts."""
    return list({run.spec.id: run for run in runs}.values())


def load_run(folder: Path, spec: Spec) -> Run:
    """One run, checked line by line against how it says it ended. Raises RecordDamaged, naming file and line.

    A run without run.json was cut off: what it had measured is kept, and it is `stopped`.
    """
    path = run_folder(folder, spec)
    with readable(path):
        _check_same(folder, _begun(folder, spec), spec)
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
    )


def ending(path: Path) -> RunResult | None:
    """How the run in the folder `path` ended; None: it was cut off before it could say so. Raises RecordDamaged."""
    return _read(path / "run.json", RunResult) if (path / "run.json").exists() else None


def _check_whole(path: Path, content: bytes, result: RunResult) -> None:
    """Raise RecordDamaged where a samples.jsonl is not the one that `result` was written for, and say what became of it."""
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
    """By the names of their files, the profiles of a run. They come from a cluster: no more is read than may be there."""
    found = (path for path in sorted(folder.glob("profile.*")) if stacks.read_name(path.name))
    for path in itertools.islice(found, MOST_PROFILES):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                yield path.name, clean_text(file.read(stacks.MOST_BYTES).decode(errors="replace"))


def load_timelines(folder: Path, spec: Spec) -> tuple[Timeline, ...]:
    """What each node used over the time of a run; nothing, where that was not kept. Raises RecordDamaged."""
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
    """What a samples.jsonl says. Half a line at the end of a run that was cut off is left out. Raises RecordDamaged."""
    return _recorded(path, _content(path), is_closed=is_closed)


def _content(path: Path) -> bytes:
    return read_plain(path) if path.exists() else b""


def _recorded(path: Path, content: bytes, *, is_closed: bool) -> Recorded:
    end = content.rfind(b"\n") + 1
    if is_closed and end < len(content):
        raise RecordDamaged(f"{path} ends in half a line.")
    return line_format.read(content[:end], path)


def load_runs(folder: Path, session: Session) -> list[Run]:
    """Every attempt of every run that was begun, in the order of the plan. One whose record is damaged says so."""
    return [run_or_damage(folder, tried) for spec in session.specs for tried in attempts(folder, spec)]


def run_or_damage(folder: Path, spec: Spec) -> Run:
    """One run; where its record cannot be read it is `damaged`, with the reason, and hides no other run.

    The reason names files as they are called inside the session's folder, so that it is the same wherever that is.
    Raises OtherSchema.
    """
    try:
        return load_run(folder, spec)
    except OtherSchema:
        raise
    except RecordDamaged as error:
        what = error.what.removeprefix(f"{folder}{os.sep}")
        return Run(spec=spec, status="damaged", reasons=(clean_reason(what),))


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
    """What every file of a record has or may leave out, of whatever version it is."""

    version: int = SCHEMA_VERSION


def _check_version(path: Path, content: bytes) -> None:
    """Raise OtherSchema before anything else is looked at: what a later version writes need not be readable here."""
    version = msgspec.json.decode(content, type=_Versioned).version
    if version != SCHEMA_VERSION:
        raise OtherSchema(
            f"{path} has schema version {version}, and this raymeter reads {SCHEMA_VERSION}.",
            "Use the version of raymeter that wrote it.",
        )


def _indented(value: object) -> bytes:
    return msgspec.json.format(to_json(value), indent=2) + b"\n"
