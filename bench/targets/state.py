"""Stores the state of a deployment on disk, before anything that it names is made, with a lock beside it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from filelock import FileLock, Timeout
from platformdirs import user_state_dir

from bench.errors import CannotWrite, TargetFailed
from bench.model import from_json, to_json

STATE = "state.json"
LOCK_SECONDS = 15.0

S = TypeVar("S")


def folder(target: str) -> Path:
    """The folder of all deployments of a target."""
    return Path(user_state_dir("raymeter")) / target


@dataclass(frozen=True)
class StateFolder(Generic[S]):
    """The folder of one deployment on one target. Every method that writes raises CannotWrite."""

    target: str
    deployment: str
    kind: type[S]  # of its state
    fix: str  # what the user can do if the state cannot be read

    @property
    def path(self) -> Path:
        return folder(self.target) / self.deployment

    def log(self, process: str) -> Path:
        """The log file of `process`."""
        path = self.path / "logs" / f"{process}.log"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def read(self) -> S | None:
        """The state, or None if none was written. Raises TargetFailed if it cannot be read."""
        try:
            return from_json((self.path / STATE).read_bytes(), self.kind)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise TargetFailed(
                f"The state of this deployment, {self.path / STATE}, cannot be read: {error}.", self.fix
            ) from error

    def write(self, state: S) -> None:
        """Write the state atomically, readable by its owner only."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = self.path / f"{STATE}.new"
            new.touch(mode=0o600)
            new.write_bytes(to_json(state))
            new.replace(self.path / STATE)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def remove(self) -> None:
        """Delete the folder, the state last, so that `down` can be repeated after a crash."""
        if self.path.exists():
            self.clear()
            shutil.rmtree(self.path, ignore_errors=True)

    def clear(self, *, keep: str = "") -> None:
        """Delete everything in the folder but the state and the entry `keep`."""
        for entry in self.path.iterdir():
            if entry.name in (STATE, keep):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def lock(self) -> FileLock:
        """The lock that one `up` or `down` holds at a time; it ends with its process. Raises TargetFailed."""
        parent = folder(self.target)
        try:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return FileLock(parent / f".{self.deployment}.lock", timeout=LOCK_SECONDS).acquire().lock
        except Timeout as error:
            raise TargetFailed(
                f"Another `bench up` or `bench down` of the deployment {self.deployment!r} is running.",
                "Wait for it, or use another --name.",
            ) from error
        except OSError as error:
            raise cannot_write(parent, error) from error


def cannot_write(path: Path, error: OSError) -> CannotWrite:
    """The error for a `path` that cannot be written."""
    return CannotWrite(
        f"Cannot write to {path}: {error.strerror}.", "Set XDG_STATE_HOME to a folder that you can write to."
    )
