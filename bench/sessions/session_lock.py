"""Who has an appliance: one session at a time, known by a lock that ends with its process, however that ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from bench.errors import BadInput, DoesNotFit
from bench.model import Session


@contextmanager
def alone(session: Session) -> Iterator[None]:
    """Hold the appliance: a second session on it would take the clusters of the first one away. Raises DoesNotFit."""
    lock, holder = _files(session)
    try:
        with FileLock(lock, timeout=0):
            holder.write_text(session.id)
            try:
                yield
            finally:
                holder.unlink(missing_ok=True)
    except Timeout:
        raise DoesNotFit(
            f"Another session is running on the appliance {_appliance(session)} of target {session.target}.",
            f"Wait for it, or name another with --name; then go on with `bench resume {session.id}`.",
        ) from None


@contextmanager
def at_rest(session: Session) -> Iterator[None]:
    """Keep `session` from being run, for what takes it away. Raises BadInput where it is running."""
    lock, holder = _files(session)
    try:
        held = FileLock(lock, timeout=0).acquire()
    except Timeout:  # somebody runs there; whoever has not said yet what may be running this
        try:
            running = holder.read_text()
        except FileNotFoundError:
            running = session.id
        if running == session.id:
            raise BadInput(f"{session.id} is running.", "End it with Ctrl-C first.") from None
        yield
        return
    with held:
        yield


def _files(session: Session) -> tuple[Path, Path]:
    """The lock of the session's appliance, and the file that says which session has it."""
    base = user_state_path("raymeter", ensure_exists=True) / f"{session.target}-{_appliance(session)}"
    return base.with_name(f"{base.name}.session.lock"), base.with_name(f"{base.name}.session")


def _appliance(session: Session) -> str:
    return str(session.options.get("name", "raymeter"))
