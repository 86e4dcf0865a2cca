"""Finds the deployments of this user by their processes, whatever state folder they were started with."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.errors import TargetFailed
from bench.targets import processes
from bench.targets.local import cgroups, namespaces
from bench.targets.state import STATE

RUN_FOLDER = "RAYMETER_RUN_FOLDER"
RECORDS, NODE, CGROUP = "RAYMETER_RECORDS", "RAYMETER_NODE", "RAYMETER_NODE_CGROUP"
_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, kw_only=True)
class Running:
    """A deployment, as the environment of its processes describes it."""

    name: str
    id: str
    state_folder: Path  # of this deployment: <XDG_STATE_HOME>/raymeter/local/<name>
    run_folder: Path
    nodes: int
    cgroups: tuple[str, ...]

    @property
    def is_kept(self) -> bool:
        """Whether its state exists, so that `down` with that state folder ends it."""
        is_a_state_folder = self.state_folder.parts[-3:] == ("raymeter", "local", self.name)
        return is_a_state_folder and (self.state_folder / STATE).is_file()

    def end(self) -> tuple[str, ...]:
        """Remove all of it. Returns what was removed."""
        ended = self.remains()
        processes.end_all(self.name, self.id)
        namespaces.remove(self.id, self.nodes)
        for group in self.cgroups:
            cgroups.remove(cgroups.mounts(), group)
        if self.run_folder.name == f"rm-{self.id}":
            shutil.rmtree(self.run_folder, ignore_errors=True)
        return ended

    def remains(self) -> tuple[str, ...]:
        """Everything that `end` would remove."""
        return (
            *(f"process {process.pid} ({process.info['name']})" for process in processes.find(self.name, self.id)),
            *namespaces.existing(self.id, self.nodes),
        )


def deployments(name: str) -> tuple[Running, ...]:
    """This user's running deployments called `name`."""
    environments_by_id: dict[str, list[dict[str, str]]] = {}
    for process in psutil.process_iter(["environ", "uids", "status"]):
        environment, uids = process.info["environ"] or {}, process.info["uids"]
        deployment_id = environment.get(processes.DEPLOYMENT_ID, "")
        is_ours = uids is not None and uids.real == os.getuid() and process.info["status"] != psutil.STATUS_ZOMBIE
        if is_ours and environment.get(processes.DEPLOYMENT) == name and _ID.fullmatch(deployment_id):
            environments_by_id.setdefault(deployment_id, []).append(environment)
    return tuple(
        _running(name, deployment_id, environments)
        for deployment_id, environments in environments_by_id.items()
        if any(
            RECORDS in environment for environment in environments
        )  # others forward the ports of a Kubernetes cluster
    )


def end_orphans(name: str) -> tuple[str, ...]:
    """End the deployments called `name` whose state is gone, as no other `down` would find them."""
    return tuple(ended for deployment in deployments(name) if not deployment.is_kept for ended in deployment.end())


def elsewhere(name: str) -> TargetFailed | None:
    """The error for a running deployment called `name` whose state is in another folder; None if there is none."""
    for deployment in deployments(name):
        if deployment.is_kept:
            state_home = shlex.quote(str(deployment.state_folder.parents[2]))
            return TargetFailed(
                f"The deployment {name!r} was started with another state folder, {deployment.state_folder}.",
                f"End it with: XDG_STATE_HOME={state_home} bench down --name {name}",
            )
    return None


def _running(name: str, deployment_id: str, environments: Sequence[dict[str, str]]) -> Running:
    def values(variable: str) -> list[str]:
        return sorted({environment[variable] for environment in environments if environment.get(variable)})

    return Running(
        name=name,
        id=deployment_id,
        state_folder=Path(values(RECORDS)[0]).parent,
        run_folder=Path((values(RUN_FOLDER) or [""])[0]),
        nodes=len(values(NODE)),
        cgroups=tuple(values(CGROUP)),
    )
