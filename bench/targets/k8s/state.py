"""What an appliance in a Kubernetes cluster has made, written to disk before it is made.

Most of it is in its namespace and needs no list. This has what is not: the cluster itself, and the processes on this
machine that forward ports. The operator is everybody's, and labelled where raymeter installed it.
"""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from bench.model import IdleLoad, Topology
from bench.targets import Options, state_folder

KEPT_IN = "k8s"


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All that `down` must know."""

    context: str
    kubeconfig: str | None  # KUBECONFIG as it was: the context is found there and nowhere else
    kind_cluster: str | None = None  # that we have made
    options: Options | None = None  # what was said when Ray was stood up
    topology: Topology | None = None
    settled: str = ""  # the hash of the manifests that were applied, Ray's own left out
    ports: dict[str, int] = field(default_factory=dict)  # local ones, by what they lead to
    pods: str = ""  # marks the processes that forward to pods of the Ray cluster that there is
    services: str = ""  # and those that forward to what stays
    idle_load: IdleLoad | None = None  # measured once, after the first Ray cluster was ready


@dataclass(frozen=True)
class Home:
    """The folder of one appliance."""

    appliance: str

    @property
    def path(self) -> Path:
        return state_folder.folder(KEPT_IN) / self.appliance

    def log(self, what: str) -> Path:
        """Where what a process prints goes."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.path / f"{what}.log"

    def read(self) -> Ledger | None:
        """The ledger, or None where nothing was ever written."""
        mend = f"Delete the namespace {self.appliance} in its cluster, and then {self.path}."
        return state_folder.read_ledger(self.path, Ledger, mend=mend)

    def write(self, ledger: Ledger) -> None:
        """Put the ledger on disk."""
        state_folder.write_ledger(self.path, ledger)

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)

    def lock(self) -> FileLock:
        """Held by the one `up` or `down` at a time."""
        return state_folder.lock(KEPT_IN, self.appliance)


def new_mark() -> str:
    """What the processes of one `up` are found by."""
    return secrets.token_hex(4)
