"""What there is on a node: the folder of this invocation, workers that do parts, and a depot that keeps the node's files.

A part's results are written beside and renamed, so that a file that is there is whole.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.errors import BadInput, DataMissing
from bench.experiments.clustering import work
from bench.experiments.clustering.inputs import checksum
from bench.experiments.clustering.journal import Journal
from bench.experiments.clustering.split import Part
from bench.experiments.clustering.work import Given, Job, Outcome

if TYPE_CHECKING:
    from bench.experiments.clustering.points import Points

Source = Literal["made", "local", "pulled"]
LOG = "log.txt"
JOINED_STORE_BYTES = 80 * 2**20  # Ray asks for 75 MiB at least


def folder_of(base: str, node: str) -> Path:
    """Of an invocation on a node: several of these may be on one host."""
    return Path(base) / node


class Worker:
    """Does parts, on one thread."""

    def __init__(self, job: Job, *, name: str, node: str, folder: str, source: Source, depot: Any) -> None:
        self._job = job
        self._name = name
        self._node = node
        self._folder = folder_of(folder, node)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._source = source
        self._depot = depot  # of the node that has the input
        self._journal = Journal(self._folder / LOG, name)

    def ready(self) -> int:
        """The id of this process, which has done a job by now: what is imported is no part of the first one's time."""
        work.warm_up(self._job)
        return os.getpid()

    def do(self, part: Part) -> Outcome:
        """All jobs of `part`."""
        began, cpu_began = time.perf_counter(), time.thread_time()
        vectors, read, pulled = self._input(part)
        outcome = work.perform(self._job, part, vectors, say=self._journal.say)
        busy, cpu = time.perf_counter() - began, time.thread_time() - cpu_began  # input is work, wherever it comes from
        self._journal.say(
            f"part {part.number} of {self._job.layer(part)}: {outcome.jobs} jobs in {outcome.busy_seconds:.6f} s"
        )
        if outcome.results:
            work.write_whole(self._folder / f"part-{part.number:08d}", outcome.results)
        for each in outcome.aside:
            self._journal.say(f"job {each.job} of {each.layer} was set aside: {each.error}")
        return replace(
            outcome,
            worker=self._name,
            node=self._node,
            read_bytes=read,
            pulled_bytes=pulled,
            written_bytes=len(outcome.results),
            busy_seconds=busy,
            cpu_seconds=cpu,
        )

    def _input(self, part: Part) -> tuple[Callable[[int], Any], int, int]:
        """A job's vectors by its number; the bytes read from this node's disk, and those pulled from another process."""
        import ray

        bytes_ = part.jobs * self._job.bytes
        if self._source == "made" or not bytes_:
            return work.vectors_of(self._job, part, None), 0, 0
        if self._source == "local":
            return work.vectors_of(self._job, part, self._folder), bytes_, 0

        held = ray.get(self._depot.read.remote(part))
        return (lambda number: held[number - part.first].copy()), 0, bytes_


class Depot:
    """Keeps a node's files, and merges its results."""

    def __init__(self, job: Job, *, node: str, folder: str) -> None:
        self._job = job
        self._folder = folder_of(folder, node)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._raylet = os.getppid()  # once it is gone, the parent is somebody else

    def has(self, given: Given) -> bool:
        """Whether this node has that very file."""
        try:
            return checksum(Path(given.path)) == given.sha256
        except (BadInput, DataMissing):
            return False

    def write_input(self, parts: Iterable[Part]) -> int:
        """The vectors of all these parts, a file each; the bytes."""
        return sum(work.write_block(self._folder, self._job, part) for part in parts)

    def read(self, part: Part) -> Points:
        """The vectors of a part, shape (jobs, points, dimensions), for a worker elsewhere."""
        return work.read_block(self._folder, self._job, part)

    def merge(self) -> Mapping[int, bytes]:
        """The results that this node's workers have written, by the number of the part."""
        files = sorted(self._folder.glob("part-????????"))
        return {int(path.name.removeprefix("part-")): path.read_bytes() for path in files}

    def forget_results(self) -> None:
        """Take the results away: the next round writes its own."""
        for path in self._folder.glob("part-*"):
            path.unlink(missing_ok=True)

    def log(self) -> str:
        """What this node's workers have written so far."""
        path = self._folder / LOG
        return path.read_text(errors="replace") if path.is_file() else ""

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
        base = Path(ray._private.worker.global_worker.node.get_session_dir_path()).parents[1]  # noqa: SLF001, there is no public way
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        options = {
            "address": ray.get_runtime_context().gcs_address,
            "node-ip-address": ray.util.get_node_ip_address(),
            "num-cpus": int(own["CPU"]),
            "object-store-memory": JOINED_STORE_BYTES,
            "temp-dir": base / f"j{_free_port()}",  # two raylets that share one spoil each other's files
            "dashboard-agent-listen-port": _free_port(),
            "metrics-export-port": _free_port(),
            "min-worker-port": 0,  # any: those of a range may be the other raylet's
            "max-worker-port": 0,
        }
        with (self._folder / "joined.txt").open("ab") as log:
            subprocess.Popen(
                [*command, *(f"--{name}={value}" for name, value in options.items())],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

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

    def close(self) -> None:
        """Take all away."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):
            self._folder.parent.rmdir()  # only an empty one goes: the last one's


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
