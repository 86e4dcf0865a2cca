"""Keeps the workspace of an invocation: on every node a folder, workers that do parts, and a server of the node's files.

A part's results are written beside and renamed, so that a file that is there is whole.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.context import NodeSlot
from bench.errors import BadInput, DataMissing
from bench.experiments.clustering import work
from bench.experiments.clustering.inputs import checksum
from bench.experiments.clustering.log import Log
from bench.experiments.clustering.split import Part
from bench.experiments.clustering.work import Given, Job, Outcome
from bench.experiments.toolkit.placement import Place, on
from bench.record.files import replace_whole

if TYPE_CHECKING:
    from bench.experiments.clustering.points import Points

Source = Literal["made", "local", "pulled"]
LOG_NAME = "log.txt"
READY_SECONDS = 180.0


def folder_of(base: str, node: str) -> Path:
    """Of an invocation on a node: several of these may be on one host."""
    return Path(base) / node


class Worker:
    """Does parts, on one thread."""

    def __init__(self, job: Job, *, name: str, node: str, folder: str, source: Source, server: Any) -> None:
        self._job = job
        self._name = name
        self._node = node
        self._folder = folder_of(folder, node)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._source = source
        self._server = server  # of the node that has the input
        self._log = Log(self._folder / LOG_NAME, name)

    def ready(self) -> int:
        """The id of this process, which has done a job by now: what is imported is no part of the first one's time."""
        work.warm_up(self._job)
        return os.getpid()

    def do(self, part: Part) -> Outcome:
        """All jobs of `part`."""
        began, cpu_began = time.perf_counter(), time.thread_time()
        vectors, read, pulled = self._input(part)
        outcome = work.perform(self._job, part, vectors, say=self._log.write)
        busy, cpu = time.perf_counter() - began, time.thread_time() - cpu_began  # input is work, wherever it comes from
        self._log.write(
            f"part {part.number} of {self._job.layer(part)}: {outcome.jobs} jobs in {outcome.busy_seconds:.6f} s"
        )
        if outcome.results:
            replace_whole(self._folder / f"part-{part.number:08d}", outcome.results, is_lasting=False)
        for each in outcome.aside:
            self._log.write(f"job {each.job} of {each.layer} was set aside: {each.error}")
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

        held = ray.get(self._server.read.remote(part))
        return (lambda number: held[number - part.first].copy()), 0, bytes_


class FileServer:
    """Keeps a node's files, and merges its results."""

    def __init__(self, job: Job, *, node: str, folder: str) -> None:
        self._job = job
        self._folder = folder_of(folder, node)
        self._folder.mkdir(parents=True, exist_ok=True)

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
        path = self._folder / LOG_NAME
        return path.read_text(errors="replace") if path.is_file() else ""

    def close(self) -> None:
        """Take all away."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):
            self._folder.parent.rmdir()  # only an empty one goes: the last one's


@dataclass(kw_only=True)
class Workspace:
    """The folders of an invocation on all nodes, with a file server in each, and how workers are spawned there."""

    job: Job
    folder: str
    source: Source
    first: str  # the node that has the input
    nodes: dict[str, NodeSlot]  # by name; nodes that join are added
    servers: dict[str, Any] = field(default_factory=dict)

    def add(self, node: NodeSlot) -> None:
        import ray

        self.nodes[node.name] = node
        make = ray.remote(num_cpus=0, max_restarts=0, max_concurrency=8)(FileServer)
        self.servers[node.name] = make.options(scheduling_strategy=on(node)).remote(
            self.job, node=node.name, folder=self.folder
        )

    def slots(self) -> list[Place]:
        """A slot for each CPU of the nodes that are up now."""
        import ray

        alive = {each["NodeID"]: each["Resources"] for each in ray.nodes() if each["Alive"]}
        known = {node.node_id for node in self.nodes.values()}
        for node_id, has in alive.items():
            if node_id not in known and has.get("CPU"):
                name = f"joined-{len(self.nodes)}"  # nodes are never removed from these
                self.add(NodeSlot(name=name, node_id=node_id, cpus=int(has["CPU"]), threads=1))
        up = [node for node in self.nodes.values() if node.node_id in alive]
        return [Place(node=node, cpus=0.0, threads=1) for node in up for _ in range(node.cpus)]

    def spawn(self, place: Place, name: str) -> Any:
        """A worker. It takes no CPU of Ray's: there is one for each, and the peers need them in their turn."""
        import ray

        is_new = place.node.name.startswith("joined-")
        make = ray.remote(num_cpus=0, max_restarts=0)(Worker)
        actor = make.options(scheduling_strategy=on(place.node)).remote(
            self.job,
            name=name,
            node=place.node.name,
            folder=self.folder,
            source="pulled" if is_new and self.source == "local" else self.source,
            server=self.servers[self.first],
        )
        actor.ready.remote()  # it warms up before its first part
        return actor

    def ask(self, method: str, *arguments: Any, of: Sequence[str] | None = None) -> dict[str, Any]:
        """What every file server that is still up answers, or those of these nodes."""
        import ray
        from ray.exceptions import RayActorError

        asked = self.servers if of is None else {name: self.servers[name] for name in of}
        calls = {name: getattr(server, method).remote(*arguments) for name, server in asked.items()}
        found = {}
        for name, call in calls.items():
            try:
                found[name] = ray.get(call, timeout=READY_SECONDS)
            except RayActorError:
                continue
        return found
