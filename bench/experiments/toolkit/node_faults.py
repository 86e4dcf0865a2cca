"""Injects faults from inside a node: an actor that ends, stops or adds processes there."""

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
        self._raylet = os.getppid()  # once it is gone, the parent is another process
        self._joins: list[tuple[subprocess.Popen[bytes], Path]] = []  # and its log

    def ready(self) -> None:
        """Return when the agent has started."""

    def workers(self, of: str, state: Literal["any", "idle"] = "any") -> list[int]:
        """The process ids of this node's actors of a class, or at a method of it: Ray writes both into their titles.

        `idle`: only those that are at no method.
        """
        import psutil

        found = []
        for each in psutil.Process(self._raylet).children():
            try:
                title, *_ = [*each.cmdline(), ""]
            except psutil.Error:  # it has just ended
                continue
            if title == f"ray::{of}" or (state == "any" and title.startswith(f"ray::{of}.")):
                found.append(each.pid)
        return sorted(found)

    def kill(self, process: int) -> None:
        """End a process of this node at once."""
        os.kill(process, signal.SIGKILL)

    def kill_raylet(self) -> None:
        """End this node's raylet, and so the node: its processes end themselves when it is gone."""
        os.kill(self._raylet, signal.SIGKILL)

    def kill_head(self) -> None:
        """End the server that knows all nodes, and this node's raylet."""
        import psutil
        import ray

        port = ray.get_runtime_context().gcs_address.rsplit(":", 1)[1]
        for process in psutil.process_iter(["name", "cmdline"]):
            if process.info["name"] == "gcs_server" and f"--gcs_server_port={port}" in process.info["cmdline"]:
                process.kill()
        self.kill_raylet()

    def join(self) -> None:
        """Start another node beside this one, with as many CPUs and a folder of its own; it ends with the cluster."""
        import ray

        own = {each["NodeID"]: each["Resources"] for each in ray.nodes()}[ray.get_runtime_context().get_node_id()]
        session = Path(ray._private.worker.global_worker.node.get_session_dir_path())  # noqa: SLF001, there is no public way
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        options = {
            "address": ray.get_runtime_context().gcs_address,
            "node-ip-address": ray.util.get_node_ip_address(),
            "num-cpus": int(own["CPU"]),
            "object-store-memory": JOINED_STORE_BYTES,
            "temp-dir": session.parents[1] / f"j{_free_port()}",  # two raylets that share one spoil each other's files
            "dashboard-agent-listen-port": _free_port(),
            "metrics-export-port": _free_port(),
            "min-worker-port": 0,  # any: those of a range may be the other raylet's
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
        """Why each node that was to join has ended."""
        ended = [(process, log_path) for process, log_path in self._joins if process.poll() is not None]
        return [
            error_in_log(log_path) or f"exit code {process.returncode}, and its log is empty"
            for process, log_path in ended
        ]

    def pause(self, seconds: float) -> None:
        """Stop all of this node's processes but this one, its raylet too, and let them go on after so many seconds."""
        import psutil

        raylet = psutil.Process(self._raylet)
        ids = [raylet.pid, *(each.pid for each in raylet.children(recursive=True) if each.pid != os.getpid())]
        # Another process wakes them: this one may be ended while they sleep.
        wake = f"sleep {seconds:g}; kill -CONT {' '.join(map(str, ids))}"
        subprocess.Popen(["sh", "-c", wake], start_new_session=True)
        for each in ids:
            os.kill(each, signal.SIGSTOP)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
