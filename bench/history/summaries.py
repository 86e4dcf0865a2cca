"""Summarises each session for lists, in a small file beside its records.

A summary names the state of the records that it was made from, and is renewed when they change. It is stored only after every
started run has ended; until then it is made anew each time.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import msgspec

from bench.errors import RecordDamaged
from bench.model import Session, Status, to_json
from bench.record import store
from bench.record.files import read_plain, replace_whole
from bench.sanitize import from_clean_json

FILE = "summary.json"
VERSION = 1
MOST_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A session's line in a list. `damage` is the reason why its record cannot be read."""

    folder: str = ""
    id: str = ""
    created: str = ""
    target: str = ""
    profile: str = ""
    experiments: tuple[str, ...] = ()
    topologies: tuple[str, ...] = ()
    command: str = ""
    planned: int = 0
    ok: int = 0
    invalid: int = 0
    failed: int = 0
    stopped: int = 0
    damaged: int = 0  # runs whose run.json cannot be read
    damage: str = ""
    running: bool = False  # at present; its unfinished run is counted as stopped


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A session's entry, the state of the records that it was made from, and the report made from the same state."""

    stamp: str  # empty while the records may still change
    entry: Entry
    report_sha256: str = ""
    report_code: str = ""  # hash of the analysis that made the report
    version: int = VERSION


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions that a listed session must meet; empty ones are ignored."""

    experiment: str = ""
    target: str = ""
    profile: str = ""
    since: str = ""  # the beginning of an ISO date
    status: str = ""  # of at least one run


def entries(out: Path, filters: Filters = Filters(), running: Collection[str] = ()) -> list[Entry]:
    """Return the sessions in `out` that pass `filters`, oldest first. `running`: resolved folders of the running sessions."""
    marked = (
        replace(summary.entry, running=True) if running and str((out / name).resolve()) in running else summary.entry
        for name, summary in read_all(out)
    )
    return [entry for entry in marked if _passes(entry, filters)]


def _passes(entry: Entry, filters: Filters) -> bool:
    return (
        (not filters.experiment or filters.experiment in entry.experiments)
        and filters.target in ("", entry.target)
        and filters.profile in ("", entry.profile)
        and entry.created >= filters.since
        and (not filters.status or bool(getattr(entry, filters.status)))
        and not (filters.status == "stopped" and entry.running)
    )


def read_all(out: Path) -> Iterator[tuple[str, Summary]]:
    """Yield the folder's name and the summary of each session in `out`."""
    for name in sorted(entry.name for entry in os.scandir(out)) if out.is_dir() else ():
        try:
            summary = read(out / name)
        except OSError:  # not a session, or removed meanwhile
            continue
        yield name, summary


def read(folder: Path) -> Summary:
    """Return the summary of the session in `folder`, renewed if it is stale. Raises OSError if there is no session."""
    stamp = _stamp(folder)
    stored = _read_stored(folder)
    if stored is not None and (stored.stamp, stored.entry.folder) == (stamp, folder.name):
        return stored
    summary = _summarise(folder, stamp)
    keep(folder, summary)
    return summary


def keep(folder: Path, summary: Summary) -> None:
    """Store the summary in its session's folder, unless the records may still change. Ignores OSError."""
    if summary.stamp:
        with suppress(OSError):
            replace_whole(folder / FILE, to_json(summary), is_lasting=False)


def _stamp(folder: Path) -> str:
    """Return a text that changes when the plan of a session changes or a run is started."""
    plan, runs = (folder / "session.json").stat(), ""
    with suppress(OSError):
        runs = f"{(folder / 'runs').stat().st_mtime_ns}"
    return f"{plan.st_mtime_ns}/{plan.st_size}/{runs}"


def _read_stored(folder: Path) -> Summary | None:
    try:
        summary = from_clean_json(read_plain(folder / FILE, most_bytes=MOST_BYTES), Summary)
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return None
    return summary if summary.version == VERSION else None


def _summarise(folder: Path, stamp: str) -> Summary:
    """Read a session's plan and how its runs ended, but not their samples."""
    try:
        with store.readable(folder):
            session = store.load_session(folder)
            counts, is_closed = _endings(folder, session)
    except RecordDamaged as error:
        return Summary(stamp="", entry=Entry(folder=folder.name, damage=str(error)))
    entry = Entry(
        folder=folder.name,
        id=session.id,
        created=session.created,
        target=session.target,
        profile=session.profile,
        experiments=tuple(session.metrics),
        topologies=tuple(dict.fromkeys(spec.topology.name for spec in session.specs)),
        command=session.command,
        planned=len(session.specs),
        **counts,
    )
    return Summary(stamp=stamp if is_closed else "", entry=entry)


def _endings(folder: Path, session: Session) -> tuple[dict[str, Any], bool]:
    """Count the runs by how they ended, and tell whether all started runs have ended."""
    counts: dict[str, Any] = dict.fromkeys(get_args(Status), 0)
    is_closed = True
    for spec in session.specs:
        attempt = store.latest_attempt(folder, spec)
        if attempt is None:
            continue
        try:
            result = store.ending(store.run_folder(folder, attempt))
        except store.OtherSchema:
            raise
        except RecordDamaged:
            counts["damaged"], is_closed = counts["damaged"] + 1, False  # it may still be repaired
            continue
        counts[result.status if result else "stopped"] += 1
        is_closed = is_closed and result is not None
    return counts, is_closed
