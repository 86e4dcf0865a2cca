"""Locks a deployment while a session runs on it or a command changes it; the lock ends with the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout
from platformdirs import user_state_path

from bench.errors import BadInput, DoesNotFit
from bench.model import Session, from_json, to_json
from bench.record import store

PATIENCE_SECONDS = 1.0  # wait for the lock: `running` holds it for a moment
_LOCK, _HOLDER = ".session.lock", ".session"  # file name suffixes


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The process that holds a deployment, as recorded when it took the lock."""

    pid: int
    command: str
    since: str
    session: str = ""  # its id; empty: a command changes the deployment
    folder: str = ""  # of that session


def describe(holder: Holder | None) -> str:
    """Describe the holder of a deployment: `session X, process 123, since 12:00: bench run inference`."""
    if holder is None:
        return "an unknown process"
    session = f"session {holder.session}, " if holder.session else ""
    command = f": {holder.command}" if holder.command else ""  # a session that no command line started has none
    return f"{session}process {holder.pid}, since {holder.since}{command}"


@contextmanager
def alone(session: Session, folder: Path, command: str) -> Iterator[None]:
    """Lock the deployment of `session`: another session would replace its clusters. Raises DoesNotFit."""
    holder = _holder(command, session=session.id, folder=str(folder.resolve()))
    fix = "Wait for it, or use another deployment with --name."
    with _held(session.target, _name(session), holder, fix=fix):
        yield


@contextmanager
def changing(target: str, name: str, command: str, *, force: bool = False) -> Iterator[str]:
    """Lock the deployment `name` while it is started or taken down. Raises DoesNotFit if a session runs on it.

    With `force` nothing is raised. Yields an empty text, or with `force` the reason why the deployment is not locked.
    """
    fix = "Wait for it or end it with Ctrl-C; --force does not wait."
    with ExitStack() as stack:
        reason = ""
        try:
            stack.enter_context(_held(target, name, _holder(command), fix=fix))
        except DoesNotFit as error:
            if not force:
                raise
            reason = error.what
        yield reason


@contextmanager
def at_rest(session: Session) -> Iterator[None]:
    """Prevent `session` from being run while it is removed. Raises BadInput if it is running."""
    lock, path = _files(session.target, _name(session))
    try:
        file_lock = FileLock(lock, timeout=PATIENCE_SECONDS).acquire()
    except Timeout:  # a holder that has not written its session's id yet may be this session
        holder = _read(path)
        if holder is None or holder.session == session.id:
            raise BadInput(f"{session.id} is running: {describe(holder)}.", "End it with Ctrl-C first.") from None
        yield
        return
    with file_lock:
        yield


def running() -> dict[str, Holder]:
    """Return the holders of the sessions that run now, by the sessions' resolved folders. Changes nothing."""
    holders = {}
    for path in user_state_path("raymeter").glob(f"*{_HOLDER}"):
        holder = _read(path)
        if holder and holder.session and _is_held(path.with_name(path.name.removesuffix(_HOLDER) + _LOCK)):
            holders[holder.folder] = holder
    return holders


def _is_held(lock: Path) -> bool:
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True


@contextmanager
def _held(target: str, name: str, holder: Holder, *, fix: str) -> Iterator[None]:
    lock, path = _files(target, name)
    try:
        file_lock = FileLock(lock, timeout=PATIENCE_SECONDS).acquire()
    except Timeout:
        raise DoesNotFit(
            f"The deployment {name} on target {target} is in use by {describe(_read(path))}.", fix
        ) from None
    with file_lock:
        store.write_whole(path, to_json(holder))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _holder(command: str, *, session: str = "", folder: str = "") -> Holder:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return Holder(pid=os.getpid(), command=command, since=since, session=session, folder=folder)


def _read(path: Path) -> Holder | None:
    try:
        return from_json(path.read_bytes(), Holder)
    except (OSError, msgspec.MsgspecError):
        return None


def _files(target: str, name: str) -> tuple[Path, Path]:
    """Return the paths of a deployment's lock and of the file with its holder."""
    base = user_state_path("raymeter", ensure_exists=True) / f"{target}-{name}"
    return base.with_name(base.name + _LOCK), base.with_name(base.name + _HOLDER)


def _name(session: Session) -> str:
    return str(session.options.get("name", "raymeter"))
