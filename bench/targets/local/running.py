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
_RECORDS, _NODE, _CGROUP = "RAYMETER_RECORDS", "RAYMETER_NODE", "RAYMETER_NODE_CGROUP"
_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, kw_only=True)
class Running:
    """What the processes of one deployment say of it."""

    name: str
    id: str
    state_folder: Path  # of this deployment: <XDG_STATE_HOME>/raymeter/local/<name>
    run_folder: Path
    nodes: int
    cgroups: tuple[str, ...]

    @property
    def is_kept(self) -> bool:
        """Whether its state is still there, so that a `down` with that state folder ends it."""
        is_a_state_folder = self.state_folder.parts[-3:] == ("raymeter", "local", self.name)
        return is_a_state_folder and (self.state_folder / STATE).is_file()

    def end(self) -> tuple[str, ...]:
        """End all of it; what was ended."""
        ended = self.remains()
        processes.end_all(self.name, self.id)
        namespaces.remove(self.id, self.nodes)
        for group in self.cgroups:
            cgroups.remove(cgroups.mounts(), group)
        if self.run_folder.name == f"rm-{self.id}":
            shutil.rmtree(self.run_folder, ignore_errors=True)
        return ended

    def remains(self) -> tuple[str, ...]:
        """Its processes, and what else `end` would take away."""
        return (
            *(f"process {process.pid} ({process.info['name']})" for process in processes.find(self.name, self.id)),
            *namespaces.existing(self.id, self.nodes),
        )


def deployments(name: str) -> tuple[Running, ...]:
    """Those called `name` of this user that run."""
    found: dict[str, list[dict[str, str]]] = {}
    for process in psutil.process_iter(["environ", "uids", "status"]):
        environment, uids = process.info["environ"] or {}, process.info["uids"]
        deployment_id = environment.get(processes.DEPLOYMENT_ID, "")
        is_ours = uids is not None and uids.real == os.getuid() and process.info["status"] != psutil.STATUS_ZOMBIE
        if is_ours and environment.get(processes.DEPLOYMENT) == name and _ID.fullmatch(deployment_id):
            found.setdefault(deployment_id, []).append(environment)
    return tuple(
        _running(name, deployment_id, environments)
        for deployment_id, environments in found.items()
        if any(_RECORDS in each for each in environments)  # others forward the ports of a Kubernetes cluster
    )


def end_orphans(name: str) -> tuple[str, ...]:
    """End the deployments called `name` whose state is gone: no `down` with another state folder would find them."""
    return tuple(each for found in deployments(name) if not found.is_kept for each in found.end())


def elsewhere(name: str) -> TargetFailed | None:
    """What is to be said where a deployment called `name` runs whose state is kept in another folder."""
    for found in deployments(name):
        if found.is_kept:
            state_home = shlex.quote(str(found.state_folder.parents[2]))
            return TargetFailed(
                f"A deployment {name!r} runs that was started with another state folder, {found.state_folder}.",
                f"End it with: XDG_STATE_HOME={state_home} bench down --name {name}",
            )
    return None


def _running(name: str, deployment_id: str, environments: Sequence[dict[str, str]]) -> Running:
    def values(variable: str) -> list[str]:
        return sorted({each[variable] for each in environments if each.get(variable)})

    return Running(
        name=name,
        id=deployment_id,
        state_folder=Path(values(_RECORDS)[0]).parent,
        run_folder=Path((values(RUN_FOLDER) or [""])[0]),
        nodes=len(values(_NODE)),
        cgroups=tuple(values(_CGROUP)),
    )
