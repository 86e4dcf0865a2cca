"""Runs a Prometheus beside local nodes; it stays until `down`, through changes of the cluster.

The program is found on PATH. It scrapes and evaluates what it does on the other targets, listens on loopback, and yields to what is
measured: it has the lowest priority, and about as much memory and CPU as in Kubernetes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import psutil

from bench.errors import CannotWrite, ProgramMissing, TargetFailed
from bench.prometheus import scraping
from bench.record.files import error_in_log
from bench.targets import free_ports, processes, readiness
from bench.targets.local import cgroups
from bench.targets.local.running import CGROUP, RECORDS
from bench.targets.local.state import PROMETHEUS, LocalFolder, Monitoring, Node, State, new_id
from bench.targets.steps import Steps

MEMORY_BYTES = 512 * 2**20  # of its control group, where one can be made
SOFT_MEMORY_BYTES = 384 * 2**20  # from here on it frees memory more often, everywhere
MOST_DISK = "1GB"
READY_SECONDS = 60.0
POLL_SECONDS = 0.1


def check() -> str:
    """The path of Prometheus. Raises ProgramMissing."""
    program = shutil.which(PROMETHEUS)
    if program is None:
        raise ProgramMissing(
            "--monitoring needs the program prometheus, which is not on PATH.",
            "Install it from https://prometheus.io/download, or leave --monitoring out.",
        )
    return program


def plan(deployment: str) -> Monitoring:
    """A Prometheus that is not started yet. Raises TargetFailed."""
    (port,), new = free_ports.find(1), new_id()
    return Monitoring(id=new, port=port, cgroup=f"raymeter/{deployment}-{new}/{PROMETHEUS}")


def is_running(state: State) -> bool:
    """Whether the Prometheus of a deployment is there."""
    return state.monitoring is not None and bool(processes.find(state.deployment, state.monitoring.id))


def end(state: State) -> None:
    """End the Prometheus of a deployment, if it has one."""
    if state.monitoring:
        processes.end_all(state.deployment, state.monitoring.id)
        cgroups.remove(cgroups.mounts(), state.monitoring.cgroup)


def wait(monitoring: Monitoring, folder: LocalFolder, raise_for_ended: Callable[[], None], steps: Steps) -> None:
    """Return once Prometheus answers. Raises TargetFailed."""
    with steps.step("waiting for Prometheus", "Prometheus ready"):
        readiness.wait_until_ready(
            lambda: readiness.missing_monitoring({PROMETHEUS: monitoring.url}),
            missing=lambda late: late,
            raise_for_failure=lambda _late, _: raise_for_ended(),
            timeout_error=lambda _late, _: TargetFailed(
                f"Prometheus does not answer after {READY_SECONDS:.0f} s:"
                f" {error_in_log(folder.log(PROMETHEUS)) or 'its log is empty'}."
            ),
            until=time.monotonic() + READY_SECONDS,
            poll_seconds=POLL_SECONDS,
        )


def ensure(state: State, monitoring: Monitoring, folder: LocalFolder) -> subprocess.Popen[bytes] | None:
    """Let Prometheus scrape the nodes of `state`. Returns its process if it was started, None if it was there.

    Raises ProgramMissing and CannotWrite.
    """
    try:
        folder.prometheus.mkdir(mode=0o700, exist_ok=True)
        (folder.prometheus / "prometheus.yml").write_text(config(state, monitoring))
        (folder.prometheus / "rules.yml").write_bytes(scraping.rules())
    except OSError as error:
        raise CannotWrite(
            f"Cannot write to {folder.prometheus}: {error.strerror}.", "Free disk space, or make it writable."
        ) from error
    if found := processes.find(state.deployment, monitoring.id):
        for process in found:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGHUP)  # it reads its configuration again
        return None
    return _start(state, monitoring, folder)


def config(state: State, monitoring: Monitoring) -> str:
    """The scrape configuration for the nodes of `state`."""
    return scraping.static_config(
        tuple(_pages(state)), cluster=f"raymeter-{state.deployment}", own_address=f"127.0.0.1:{monitoring.port}"
    )


def command(program: str, monitoring: Monitoring, folder: LocalFolder) -> list[str]:
    """The command that starts Prometheus."""
    return [
        *("nice", "-n", "19", program),
        f"--config.file={folder.prometheus / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder.prometheus / 'data'}",
        f"--storage.tsdb.retention.size={MOST_DISK}",
        f"--web.listen-address=127.0.0.1:{monitoring.port}",
    ]


def _start(state: State, monitoring: Monitoring, folder: LocalFolder) -> subprocess.Popen[bytes]:
    program, mounts = check(), cgroups.mounts()
    is_limited = cgroups.create(mounts, monitoring.cgroup, cpus=1, memory_bytes=MEMORY_BYTES)
    process = processes.start(
        command(program, monitoring, folder),
        environment={
            **os.environ,
            processes.DEPLOYMENT: state.deployment,
            processes.DEPLOYMENT_ID: monitoring.id,
            RECORDS: str(folder.records),
            CGROUP: monitoring.cgroup if is_limited else "",
            "GOMEMLIMIT": str(SOFT_MEMORY_BYTES),
            "GOMAXPROCS": "1",
        },
        cpus=(),  # the nodes' CPUs change with their cluster
        log=folder.log(PROMETHEUS),
        folder=folder.prometheus,
    )
    if is_limited:
        cgroups.enter(mounts, monitoring.cgroup, process.pid)
    return process


def _pages(state: State) -> Iterator[scraping.Page]:
    nodes = {node.name: node for node in state.nodes}
    for page in scraping.pages(tuple(nodes)):
        node = nodes[page.instance]
        yield replace(page, address=f"{node.address}:{_port(node, page.endpoint)}")


def _port(node: Node, endpoint: str) -> int:
    ports = node.ports
    return {"metrics": ports.metrics, "dash-metrics": ports.dashboard_metrics, "bench-metrics": ports.exporter}[
        endpoint
    ]
