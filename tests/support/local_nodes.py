"""Topologies that fit on any machine, and what is left of a deployment on it."""

from dataclasses import replace
from pathlib import Path

import psutil
from builders import a_topology

from bench.targets import processes
from bench.targets.local import namespaces, run_folders
from bench.targets.local.state import folder_of, run_folder

ONE_NODE = replace(a_topology(cpus=1), memory_bytes_per_node=2 * 2**30, object_store_bytes_per_node=100 * 2**20)

TWO_NODES = replace(ONE_NODE, name="multi", nodes=2)


def of_deployment(deployment: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["environ", "status"])
        if (process.info["environ"] or {}).get(processes.DEPLOYMENT) == deployment
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def assert_nothing_left(deployment: str, deployment_id: str | None) -> None:
    assert not of_deployment(deployment)
    assert not folder_of(deployment).path.exists()
    if deployment_id is not None:
        assert not namespaces.existing(deployment_id, 2)
        assert not Path(run_folder(deployment_id, run_folders.choose().path)).exists()
        for controller in ("cpu", "cpuacct", "memory", "."):
            assert f"{deployment}-{deployment_id}" not in listing(f"/sys/fs/cgroup/{controller}/raymeter")


def listing(folder: str) -> list[str]:
    return [entry.name for entry in Path(folder).iterdir()] if Path(folder).is_dir() else []
