"""The folder that a target keeps of one appliance: its ledger, written before what it tells of is made, and its lock."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec
from filelock import FileLock, Timeout
from platformdirs import user_state_dir

from bench.errors import CannotWrite, TargetFailed
from bench.model import from_json, to_json

LEDGER = "ledger.json"
_LOCK_SECONDS = 15

L = TypeVar("L")


def folder(kept_in: str) -> Path:
    """Where a target has the folders of its appliances."""
    return Path(user_state_dir("raymeter")) / kept_in


def read_ledger(path: Path, kind: type[L], *, mend: str) -> L | None:
    """The ledger in the folder `path`, or None where nothing was ever written; `mend` says what to do with a broken one."""
    try:
        return from_json((path / LEDGER).read_bytes(), kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise TargetFailed(
            f"{path / LEDGER} says what this appliance has made, and cannot be read: {error}.", mend
        ) from error


def write_ledger(path: Path, ledger: object) -> None:
    """Put the ledger on disk, whole or not at all. Nobody but its owner may read it."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path / f"{LEDGER}.new"
        new.touch(mode=0o600)
        new.write_bytes(to_json(ledger))
        new.replace(path / LEDGER)
    except OSError as error:
        raise cannot_write(path, error) from error


def lock(kept_in: str, appliance: str) -> FileLock:
    """Held by the one `up` or `down` at a time. The system lets go of it when its holder dies."""
    appliances = folder(kept_in)
    try:
        appliances.mkdir(parents=True, exist_ok=True, mode=0o700)
        return FileLock(appliances / f".{appliance}.lock", timeout=_LOCK_SECONDS).acquire().lock
    except Timeout as error:
        raise TargetFailed(
            f"Another raymeter is standing the appliance {appliance!r} up or taking it down.",
            "Wait for it, or use another --name.",
        ) from error
    except OSError as error:
        raise cannot_write(appliances, error) from error


def cannot_write(path: Path, error: OSError) -> CannotWrite:
    """It as what is raised."""
    return CannotWrite(f"Cannot write to {path}: {error.strerror}.", "Set XDG_STATE_HOME to a folder that is yours.")
