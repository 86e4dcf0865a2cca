"""What an appliance in a Kubernetes cluster has made, written to disk before it is made.

Most of it is in its namespace and needs no list. This has what is not: the cluster itself, the operator, and the
processes on this machine that forward ports.
"""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout
from platformdirs import user_state_dir

from bench.errors import CannotWrite, TargetFailed
from bench.model import Topology, from_json, to_json
from bench.targets import Options


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All that `down` must know."""

    context: str
    kubeconfig: str | None  # KUBECONFIG as it was: the context is found there and nowhere else
    kind_cluster: str | None = None  # that we have made
    operator: str | None = None  # "pinned", or the folder that it was installed from: by us
    options: Options | None = None  # what was said when Ray was stood up
    topology: Topology | None = None
    settled: str = ""  # the hash of the manifests that were applied, Ray's own left out
    ports: dict[str, int] = field(default_factory=dict)  # local ones, by what they lead to
    pods: str = ""  # marks the processes that forward to pods of the Ray cluster that there is
    services: str = ""  # and those that forward to what stays


@dataclass(frozen=True)
class Home:
    """The folder of one appliance."""

    appliance: str

    @property
    def path(self) -> Path:
        return _folder() / self.appliance

    def log(self, what: str) -> Path:
        """Where what a process prints goes."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.path / f"{what}.log"

    def read(self) -> Ledger | None:
        """The ledger, or None where nothing was ever written."""
        path = self.path / "ledger.json"
        try:
            return from_json(path.read_bytes(), Ledger)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise TargetFailed(
                f"{path} says what this appliance has made, and cannot be read: {error}.",
                f"Delete the namespace {self.appliance} in its cluster, and then {self.path}.",
            ) from error

    def write(self, ledger: Ledger) -> None:
        """Put the ledger on disk."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = self.path / "ledger.json.new"
            new.write_bytes(to_json(ledger))
            new.replace(self.path / "ledger.json")
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)

    def lock(self) -> FileLock:
        """Held by the one `up` or `down` at a time. The system lets go of it when its holder dies."""
        try:
            _folder().mkdir(parents=True, exist_ok=True, mode=0o700)
            return FileLock(_folder() / f".{self.appliance}.lock", timeout=15).acquire().lock
        except Timeout as error:
            raise TargetFailed(
                f"Another raymeter is standing the appliance {self.appliance!r} up or taking it down.",
                "Wait for it, or use another --name.",
            ) from error
        except OSError as error:
            raise _cannot_write(_folder(), error) from error


def new_mark() -> str:
    """What the processes of one `up` are found by."""
    return secrets.token_hex(4)


def _cannot_write(path: Path, error: OSError) -> CannotWrite:
    return CannotWrite(f"Cannot write to {path}: {error.strerror}.", "Set XDG_STATE_HOME to a folder that is yours.")


def _folder() -> Path:
    return Path(user_state_dir("raymeter")) / "k8s"
