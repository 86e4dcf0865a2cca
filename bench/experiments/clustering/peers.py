"""What the worker pool is compared with: the same parts by one process, by a pool on each node, and by Ray's tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from bench.context import NodeSlot
from bench.experiments.clustering import work
from bench.experiments.clustering.split import Part
from bench.experiments.clustering.work import Job, Outcome
from bench.experiments.toolkit.placement import get_in_time, shares
from bench.experiments.toolkit.process_pool import PeerProcesses, ProcessPool

READY_SECONDS = 180.0
TASKS_PER_CPU = 2  # under way at once


@dataclass(frozen=True)
class PartWorker:
    """Does parts in its process; `folder` has the vectors, None: they are made."""

    job: Job
    folder: Path | None

    def warm_up(self) -> None:
        """Do a small job."""
        work.warm_up(self.job)

    def do(self, part: Part) -> Outcome:
        """All jobs of a part."""
        return do(self.job, part, self.folder)


class ClusteringPeer:
    """A process on a node that does parts in itself, or in a pool of its own, where that has processes."""

    def __init__(self, job: Job, node: str, processes: int, folder: Path | None) -> None:
        self._node = node
        self._own = PartWorker(job, folder)
        self._pool = ProcessPool(PartWorker, job, folder, processes=processes) if processes else None

    def ready(self) -> None:
        """Wait until every process has done a job."""
        self._own.warm_up()
        if self._pool:
            self._pool.on_each("warm_up", seconds=READY_SECONDS)

    def serial(self, parts: Sequence[Part]) -> list[Outcome]:
        """One part after another, here."""
        return [replace(self._own.do(part), node=self._node) for part in parts]

    def pooled(self, parts: Sequence[Part], seconds: float) -> list[Outcome]:
        """Whichever process is free takes the next part."""
        assert self._pool is not None  # noqa: S101, it is called where the pool is measured
        return [replace(outcome, node=self._node) for outcome in self._pool.results("do", parts, seconds=seconds)]


@dataclass(frozen=True, kw_only=True)
class ClusteringPeers:
    """A peer process on each node, and Ray's tasks."""

    job: Job
    nodes: Sequence[NodeSlot]
    folders: Mapping[str, Path]  # where each node's input is, by the name of the node; empty: it is made
    processes: PeerProcesses  # on all of these nodes, or on none where neither the pool nor the loop is measured

    def ready(self) -> None:
        self.processes.call("ready", [()] * len(self.processes.nodes), seconds=READY_SECONDS)

    def serial(self, parts: Sequence[Part], seconds: float) -> list[Outcome]:
        """All parts in one process of the first node: the base case."""
        (outcomes,) = self.processes.call("serial", [(parts,)], seconds=seconds)
        return list(outcomes)

    def pooled(self, parts: Sequence[Part], seconds: float) -> list[Outcome]:
        """Each node's share, dealt out beforehand by its CPUs, in a pool of its own."""
        dealt = [(parts[begin:end], seconds) for _, (begin, end) in shares(len(parts), self.nodes)]
        return list(chain(*self.processes.call("pooled", dealt, seconds=seconds)))

    def by_tasks(self, parts: Iterator[Part], seconds: float) -> list[Outcome]:
        """A task of Ray for each part, on whichever node has a CPU; a few more are under way than there are CPUs."""
        import ray

        names = {node.node_id: node.name for node in self.nodes}
        job = ray.put(self.job)
        folders = ray.put({node.node_id: self.folders[node.name] for node in self.nodes if self.folders})
        task = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(do_there)
        waiting = [
            task.remote(job, part, folders) for part in islice(parts, TASKS_PER_CPU * sum(n.cpus for n in self.nodes))
        ]
        found: list[Outcome] = []
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=seconds, fetch_local=False)
            waiting += [task.remote(job, part, folders) for part in islice(parts, len(ready))]
            for node, outcome in get_in_time(ready or waiting, seconds, "Tasks at their work"):
                found.append(replace(outcome, node=names[node]))
        return found


def start(
    job: Job, nodes: Sequence[NodeSlot], folders: Mapping[str, Path], *, has_serial: bool = True, has_pool: bool = True
) -> ClusteringPeers:
    """Peer processes on all nodes, as far as the loop or the pool is measured; they are not ready yet."""
    usable = [node for node in nodes if node.cpus > 0]
    processes = PeerProcesses.start(
        ClusteringPeer,
        usable if has_serial or has_pool else [],
        lambda node: (job, node.name, node.cpus * has_pool, folders.get(node.name)),
    )
    return ClusteringPeers(job=job, nodes=usable, folders=folders, processes=processes)


def do(job: Job, part: Part, folder: Path | None) -> Outcome:
    """A part, its vectors from this node's disk or made here."""
    return work.perform(job, part, work.vectors_of(job, part, folder), say=lambda _: None)


def do_there(job: Job, part: Part, folders: Mapping[str, Path]) -> tuple[str, Outcome]:
    """As `do`, as a task: on one thread, and the id of the node that it ran on. `folders`: of each node, by its id."""
    import ray

    work.one_thread()
    here = ray.get_runtime_context().get_node_id()
    return here, do(job, part, folders.get(here))
