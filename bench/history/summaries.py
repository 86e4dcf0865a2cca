"""Summarises each session for lists, in a small file beside its records.

A summary says which state of the records it was made from, and is made anew when they changed. A session is summarised in
its folder only once every run that was begun has ended; until then it is read at each look.
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
    """One session as a list shows it. `damage`: why its record cannot be read."""

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
    damaged: int = 0  # runs whose end cannot be read
    damage: str = ""
    running: bool = False  # now; a run of it that has not ended counts as stopped until it does


@dataclass(frozen=True, kw_only=True)
class Summary:
    """An entry, the state of the records that it was made from, and which report was made from the same state."""

    stamp: str  # empty: the records may still change
    entry: Entry
    report_sha256: str = ""
    report_code: str = ""  # hash of the analysis that made the report
    version: int = VERSION


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which sessions to list: all conditions that are given must hold."""

    experiment: str = ""
    target: str = ""
    profile: str = ""
    since: str = ""  # the beginning of an ISO date
    status: str = ""  # at least one run of it


def entries(out: Path, filters: Filters = Filters(), running: Collection[str] = ()) -> list[Entry]:
    """The sessions in `out` that pass, oldest first. `running`: the resolved folders of those that run now."""
    found = (
        replace(summary.entry, running=True) if running and str((out / name).resolve()) in running else summary.entry
        for name, summary in read_all(out)
    )
    return [entry for entry in found if _passes(entry, filters)]


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
    """The summary of each session in `out`, by the name of its folder."""
    for name in sorted(each.name for each in os.scandir(out)) if out.is_dir() else ():
        try:
            summary = read(out / name)
        except OSError:  # no session, or it was removed meanwhile
            continue
        yield name, summary


def read(folder: Path) -> Summary:
    """The summary of the session in `folder`, made anew where the kept one is stale. Raises OSError where there is none."""
    stamp = _stamp(folder)
    kept = _kept(folder)
    if kept is not None and (kept.stamp, kept.entry.folder) == (stamp, folder.name):
        return kept
    made = _made(folder, stamp)
    keep(folder, made)
    return made


def keep(folder: Path, summary: Summary) -> None:
    """Write the summary into its session's folder, where it can be written and the records are not going to change."""
    if summary.stamp:
        with suppress(OSError):
            replace_whole(folder / FILE, to_json(summary), is_lasting=False)


def _stamp(folder: Path) -> str:
    """What changes when the plan of a session does, or a run is begun."""
    plan, runs = (folder / "session.json").stat(), ""
    with suppress(OSError):
        runs = f"{(folder / 'runs').stat().st_mtime_ns}"
    return f"{plan.st_mtime_ns}/{plan.st_size}/{runs}"


def _kept(folder: Path) -> Summary | None:
    try:
        found = from_clean_json(read_plain(folder / FILE, most_bytes=MOST_BYTES), Summary)
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return None
    return found if found.version == VERSION else None


def _made(folder: Path, stamp: str) -> Summary:
    """Read a session's plan and how its runs ended; their samples are not read."""
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
    """How many runs ended in each way, and whether all that were begun have."""
    counts: dict[str, Any] = dict.fromkeys(get_args(Status), 0)
    is_closed = True
    for spec in session.specs:
        tried = store.latest_attempt(folder, spec)
        if tried is None:
            continue
        try:
            found = store.ending(store.run_folder(folder, tried))
        except store.OtherSchema:
            raise
        except RecordDamaged:
            counts["damaged"], is_closed = counts["damaged"] + 1, False  # it may yet be repaired
            continue
        counts[found.status if found else "stopped"] += 1
        is_closed = is_closed and found is not None
    return counts, is_closed
