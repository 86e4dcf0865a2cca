"""An index of all sessions in a folder: a SQLite file that is made anew from the records, which stay the truth.

A session that did not change since it was indexed is not read again: its plan and its folder of runs have the times they
had, and every run that was begun had ended. The index may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import get_args

from bench.errors import RecordDamaged
from bench.model import Session, Status
from bench.record import store
from bench.runner import session_lock

FILE = ".index.sqlite"
VERSION = 2
BUSY_SECONDS = 10.0
_TABLES = """
create table if not exists sessions (
    folder text primary key, stamp text not null, is_closed integer not null, numbered integer not null default 0,
    id text not null default '', created text not null default '', target text not null default '',
    profile text not null default '', experiments text not null default '[]', topologies text not null default '[]',
    command text not null default '', planned integer not null default 0, ok integer not null default 0,
    invalid integer not null default 0, failed integer not null default 0, stopped integer not null default 0,
    damaged integer not null default 0, damage text not null default ''
) without rowid;
create table if not exists numbers (
    folder text not null references sessions on delete cascade, experiment text, cell text, params text, metric text,
    unit text, kind text, better text, headline integer, topology text,
    value real, low real, high real, level real, n integer, verdict text not null default ''
);
create index if not exists numbers_by_metric on numbers (metric, folder);
create index if not exists numbers_by_folder on numbers (folder);
"""
# Of `sessions s`: one folder of each session, its own where it is there.
NO_COPY = """(s.folder = s.id or not exists (
    select 1 from sessions o where o.id = s.id and (o.folder = o.id or o.folder < s.folder)))"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One session as a list shows it. `damage`: why its record cannot be read."""

    folder: str
    id: str
    created: str
    target: str
    profile: str
    experiments: tuple[str, ...]
    topologies: tuple[str, ...]
    command: str
    planned: int
    ok: int
    invalid: int
    failed: int
    stopped: int
    damaged: int  # runs whose end cannot be read
    damage: str
    running: bool = False  # now; a run of it that has not ended counts as stopped until it does


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which sessions: all that is said must hold."""

    experiment: str = ""
    target: str = ""
    profile: str = ""
    since: str = ""  # the beginning of an ISO date
    status: str = ""  # at least one run of it


def entries(out: Path, filters: Filters = Filters()) -> list[Entry]:
    """The sessions in `out` that pass, oldest first."""
    with opened(out) as index:
        rows = index.execute("select * from sessions order by folder").fetchall()
    running = session_lock.running()
    found = [_entry(row, is_running=str((out / row["folder"]).resolve()) in running) for row in rows]
    return [entry for entry in found if _passes(entry, filters)]


def _entry(row: sqlite3.Row, *, is_running: bool) -> Entry:
    values = {name: row[name] for name in Entry.__dataclass_fields__ if name != "running"}
    for name in ("experiments", "topologies"):
        values[name] = _words(values[name])
    return Entry(**values, running=is_running)


@lru_cache
def _words(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _passes(entry: Entry, filters: Filters) -> bool:
    return (
        (not filters.experiment or filters.experiment in entry.experiments)
        and filters.target in ("", entry.target)
        and filters.profile in ("", entry.profile)
        and entry.created >= filters.since
        and (not filters.status or bool(getattr(entry, filters.status)))
        and not (filters.status == "stopped" and entry.running)
    )


@contextlib.contextmanager
def opened(out: Path) -> Iterator[sqlite3.Connection]:
    """The index of `out`, brought up to date. Where the folder cannot be written to it lives in memory."""
    index = _ready(out)
    try:
        yield index
        index.commit()
    finally:
        index.close()


def _ready(out: Path) -> sqlite3.Connection:
    path = out / FILE
    if out.is_dir():
        for _ in range(2):
            try:
                return _connected(str(path), out)
            except sqlite3.OperationalError:
                break  # no room, no rights, or another process has it: the records are read anew
            except sqlite3.DatabaseError:  # cut short, of another version, or not ours: what it had is in the records
                with contextlib.suppress(OSError):
                    path.unlink()
    return _connected(":memory:", out)


def _connected(place: str, out: Path) -> sqlite3.Connection:
    index = sqlite3.connect(place, timeout=BUSY_SECONDS)
    index.row_factory = sqlite3.Row
    try:
        _make(index)
        with index:
            _update(index, out)
    except sqlite3.DatabaseError:
        index.close()
        raise
    return index


def _make(index: sqlite3.Connection) -> None:
    index.execute("pragma foreign_keys = on")
    if index.execute("pragma user_version").fetchone()[0] not in (0, VERSION):
        raise sqlite3.DatabaseError("an index of another version")
    index.executescript(_TABLES)
    index.execute(f"pragma user_version = {VERSION}")


def _update(index: sqlite3.Connection, out: Path) -> None:
    known = {row["folder"]: row for row in index.execute("select folder, stamp, is_closed from sessions")}
    there = dict(_stamps(out))
    index.executemany("delete from sessions where folder = ?", [(name,) for name in known.keys() - there.keys()])
    for name, stamp in there.items():
        row = known.get(name)
        if row is None or row["stamp"] != stamp or not row["is_closed"]:
            _index(index, out / name, stamp)


def _stamps(out: Path) -> Iterator[tuple[str, str]]:
    """Each session's folder, and what changes when its plan does or a run is begun."""
    if not out.is_dir():
        return
    for found in os.scandir(out):
        with contextlib.suppress(OSError):  # thousands of them: a Path for each would take as long as the rest
            plan, runs = os.stat(f"{found.path}/session.json"), os.stat(f"{found.path}/runs")  # noqa: PTH116
            yield found.name, f"{plan.st_mtime_ns}/{plan.st_size}/{runs.st_mtime_ns}"


def _index(index: sqlite3.Connection, folder: Path, stamp: str) -> None:
    """Read a session's plan and how its runs ended; their samples are not looked at."""
    values: dict[str, object] = {"folder": folder.name, "stamp": stamp, "is_closed": False}
    try:
        with store.readable(folder):
            session = store.load_session(folder)
            values |= _about(session) | _endings(folder, session)
    except RecordDamaged as error:
        values["damage"] = str(error)
    index.execute("delete from sessions where folder = ?", (folder.name,))
    index.execute(
        f"insert into sessions ({', '.join(values)}) values ({', '.join('?' * len(values))})",  # noqa: S608, names are ours
        tuple(values.values()),
    )


def _about(session: Session) -> dict[str, object]:
    return {
        "id": session.id,
        "created": session.created,
        "target": session.target,
        "profile": session.profile,
        "experiments": json.dumps(list(session.metrics)),
        "topologies": json.dumps(list(dict.fromkeys(spec.topology.name for spec in session.specs))),
        "command": session.command,
        "planned": len(session.specs),
    }


def _endings(folder: Path, session: Session) -> dict[str, object]:
    counts: dict[str, int] = dict.fromkeys(get_args(Status), 0)
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
            counts["damaged"], is_closed = counts["damaged"] + 1, False  # it may yet be mended
            continue
        counts[found.status if found else "stopped"] += 1
        is_closed = is_closed and found is not None
    return {**counts, "is_closed": is_closed}


def unnumbered(index: sqlite3.Connection) -> list[str]:
    """Folders of sessions whose numbers are not in the index yet."""
    rows = index.execute("select folder from sessions where not numbered and damage = '' and ok > 0 order by folder")
    return [row["folder"] for row in rows]


def keep_numbers(index: sqlite3.Connection, folder: str, rows: Sequence[dict[str, object]]) -> None:
    """Put a session's numbers into the index, in place of those that it had."""
    with index:
        index.execute("delete from numbers where folder = ?", (folder,))
        for row in rows:
            values = {"folder": folder, **row}
            index.execute(
                f"insert into numbers ({', '.join(values)}) values ({', '.join('?' * len(values))})",  # noqa: S608
                tuple(values.values()),
            )
        index.execute("update sessions set numbered = 1 where folder = ?", (folder,))
