"""Injects faults on a node: an actor there ends, stops or adds processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Literal

from bench.record.files import error_in_log

JOINED_STORE_BYTES = 80 * 2**20  # Ray asks for 75 MiB at least


class NodeAgent:
    """An actor on a node; its parent is the node's raylet."""

    def __init__(self) -> None:
        self._raylet = os.getppid()  # read now: after the raylet's end the parent is another process
        self._joins: list[tuple[subprocess.Popen[bytes], Path]] = []  # started nodes, with their logs

    def ready(self) -> None:
        """Return when the agent has started."""

    def workers(self, title: str, state: Literal["any", "idle"] = "any") -> list[int]:
        """Return the process ids of this node's actors of CLASS, or that execute CLASS.METHOD: Ray writes both into process titles.

        `idle`: only actors of CLASS that execute no method.
        """
        import psutil

        pids = []
        for process in psutil.Process(self._raylet).children():
            try:
                words = process.cmdline()
            except psutil.Error:  # the process has just ended
                continue
            shown = words[0] if words else ""
            if shown == f"ray::{title}" or (state == "any" and shown.startswith(f"ray::{title}.")):
                pids.append(process.pid)
        return sorted(pids)

    def kill(self, process: int) -> None:
        """Kill a process of this node."""
        os.kill(process, signal.SIGKILL)

    def kill_raylet(self) -> None:
        """Kill this node's raylet, which ends the node: its other processes end themselves then."""
        os.kill(self._raylet, signal.SIGKILL)

    def kill_head(self) -> None:
        """Kill the GCS server, which knows all nodes, and this node's raylet."""
        import psutil
        import ray

        port = ray.get_runtime_context().gcs_address.rsplit(":", 1)[1]
        for process in psutil.process_iter(["name", "cmdline"]):
            if process.info["name"] == "gcs_server" and f"--gcs_server_port={port}" in process.info["cmdline"]:
                process.kill()
        self.kill_raylet()

    def join(self) -> None:
        """Start another node beside this one, with as many CPUs and its own folder. It ends with the cluster."""
        import ray

        own = {node["NodeID"]: node["Resources"] for node in ray.nodes()}[ray.get_runtime_context().get_node_id()]
        session = Path(ray._private.worker.global_worker.node.get_session_dir_path())  # noqa: SLF001, there is no public way
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        options = {
            "address": ray.get_runtime_context().gcs_address,
            "node-ip-address": ray.util.get_node_ip_address(),
            "num-cpus": int(own["CPU"]),
            "object-store-memory": JOINED_STORE_BYTES,
            "temp-dir": session.parents[1]
            / f"j{_free_port()}",  # raylets that share a folder overwrite each other's files
            "dashboard-agent-listen-port": _free_port(),
            "metrics-export-port": _free_port(),
            "min-worker-port": 0,  # any free port: a range may overlap with the other raylet's
            "max-worker-port": 0,
        }
        log_path = session / "logs" / f"joined-{len(self._joins)}-{os.getpid()}.txt"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [*command, *(f"--{name}={value}" for name, value in options.items())],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._joins.append((process, log_path))

    def failed_joins(self) -> list[str]:
        """Return the reason for each joining node that has ended."""
        ended = [(process, log_path) for process, log_path in self._joins if process.poll() is not None]
        return [
            error_in_log(log_path) or f"exit code {process.returncode}, and its log is empty"
            for process, log_path in ended
        ]

    def pause(self, seconds: float) -> None:
        """Stop all of this node's processes except this one, including its raylet, and continue them after `seconds`."""
        import psutil

        raylet = psutil.Process(self._raylet)
        pids = [raylet.pid, *(child.pid for child in raylet.children(recursive=True) if child.pid != os.getpid())]
        # In another process, because this one may be killed before the time is over.
        wake = f"sleep {seconds:g}; kill -CONT {' '.join(map(str, pids))}"
        subprocess.Popen(["sh", "-c", wake], start_new_session=True)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
