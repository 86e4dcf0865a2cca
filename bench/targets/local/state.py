"""Describes everything that a local deployment makes; written to disk before any of it exists.

Every name in a state follows from its id, so that `down` finds everything that was made, even if `up` was killed at any moment.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.model import Topology
from bench.targets.state import StateFolder, cannot_write

PROMETHEUS = "prometheus"  # the program, and its folder in that of the deployment


@dataclass(frozen=True, kw_only=True)
class Ports:
    """The ports of one node's processes. 0: any free port."""

    gcs: int = 6379
    dashboard: int = 8265
    exporter: int = 8090
    metrics: int = 8080
    agent: int = 52365
    agent_grpc: int = 0
    dashboard_metrics: int = 44227
    node_manager: int = 0
    object_manager: int = 0
    runtime_env_agent: int = 0
    workers: tuple[int, int] = (10002, 19999)


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node: its name, its address and what it may use."""

    name: str  # head, worker-1
    index: int
    address: str
    cpus: tuple[int, ...]  # empty if this system cannot pin processes to CPUs
    ports: Ports
    cgroup: str = ""


@dataclass(frozen=True, kw_only=True)
class Monitoring:
    """Prometheus beside the nodes. It outlives their cluster, so it has an id of its own."""

    id: str
    port: int
    cgroup: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that one `up` makes, by name."""

    id: str
    deployment: str
    boot_id: str
    created: float  # seconds since the epoch
    isolation: Literal["namespace", "loopback"]
    link: str
    link_rate: str | None
    subnet: str | None
    run_folder: str  # see local/run_folders.py
    topology: Topology
    nodes: tuple[Node, ...]
    ray_settings: Mapping[str, str] = field(default_factory=dict)  # Ray's own, without the RAY_ before them
    monitoring: Monitoring | None = None  # None: none was asked for

    @property
    def head(self) -> Node:
        return self.nodes[0]

    @property
    def process_ids(self) -> tuple[str, ...]:
        """The ids by which the processes of the deployment are found."""
        return (self.id, *([self.monitoring.id] if self.monitoring else []))

    @property
    def dashboard_url(self) -> str:
        return f"http://{self.head.address}:{self.head.ports.dashboard}"

    @property
    def exporter_url(self) -> str:
        return f"http://{self.head.address}:{self.head.ports.exporter}"


def new_id() -> str:
    """An id that is unique on this machine."""
    return secrets.token_hex(4)


def run_folder(deployment_id: str, parent: str) -> str:
    """The folder of Ray's own files."""
    return str(Path(parent) / f"rm-{deployment_id}")


def boot_id() -> str:
    """An id that changes when the machine boots, which ends every process and link."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class LocalFolder(StateFolder[State]):
    """The folder of a local deployment: state, token, records, Ray's home, and what Prometheus has and writes."""

    @property
    def token_path(self) -> Path:
        return self.path / "token"

    @property
    def records(self) -> Path:
        return self.path / "records"

    @property
    def ray_home(self) -> Path:
        return self.path / "home"

    @property
    def prometheus(self) -> Path:
        return self.path / PROMETHEUS

    def log(self, process: str) -> Path:
        """The log file of `process`. That of Prometheus is beside its data, which outlives a cluster."""
        return self.prometheus / "log" if process == PROMETHEUS else super().log(process)

    def token(self) -> str:
        """The token; empty before one was made."""
        try:
            return self.token_path.read_text().strip()
        except OSError:
            return ""

    def write(self, state: State) -> None:
        """Write the state, and make the folders and the token that its processes need."""
        try:
            for folder in (self.records, self.ray_home):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_private(self.token_path, secrets.token_hex(32))
        except OSError as error:
            raise cannot_write(self.path, error) from error
        super().write(state)


def folder_of(deployment: str) -> LocalFolder:
    """The folder of a deployment on this machine."""
    fix = f"If no process has RAYMETER_DEPLOYMENT={deployment} in its environment, delete that folder."
    return LocalFolder("local", deployment, State, fix)


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
