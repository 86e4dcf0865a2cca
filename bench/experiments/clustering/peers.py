"""What the crew is compared with: the same parts by one process, by a pool on each node, and by Ray's tasks."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from bench.context import NodeSlot
from bench.experiments.clustering import work
from bench.experiments.clustering.split import Part
from bench.experiments.clustering.work import Job, Outcome
from bench.experiments.toolkit.placement import get_in_time, on, shares
from bench.experiments.toolkit.spawning import THREAD_VARIABLES, environment, without_main_script

READY_SECONDS = 180.0
TASKS_PER_CPU = 2  # under way at once

# In a process of the pool: what its initializer was given.
_job: Job
_folder: Path | None


class Host:
    """A process on a node that does parts in itself, or in a pool of its own. Ray carries the word "go" and the answers."""

    def __init__(self, job: Job, node: str, processes: int, folder: Path | None) -> None:
        self._job = job
        self._node = node
        self._folder = folder
        with environment(dict.fromkeys(THREAD_VARIABLES, "1")), without_main_script():
            self._pool = multiprocessing.get_context("spawn").Pool(processes, _load_here, (job, folder))
        self._processes = processes

    def ready(self) -> None:
        """Wait until every process has done a job."""
        work.warm_up(self._job)
        self._pool.map_async(_warm_up_here, range(self._processes), chunksize=1).get(timeout=READY_SECONDS)

    def serial(self, parts: Sequence[Part]) -> list[Outcome]:
        """One part after another, here."""
        return [replace(do(self._job, part, self._folder), node=self._node) for part in parts]

    def pooled(self, parts: Sequence[Part]) -> list[Outcome]:
        """Whichever process is free takes the next part."""
        return [replace(outcome, node=self._node) for outcome in self._pool.imap_unordered(_do_here, parts)]


@dataclass(frozen=True, kw_only=True)
class Peers:
    """A host on each node."""

    job: Job
    nodes: Sequence[NodeSlot]
    folders: Mapping[str, Path]  # where each node's input is, by the name of the node; empty: it is made
    hosts: Sequence[Any]

    def ready(self) -> None:
        get_in_time([host.ready.remote() for host in self.hosts], READY_SECONDS, "Peers that start")

    def serial(self, parts: Sequence[Part], seconds: float) -> list[Outcome]:
        """All parts in one process of the first node: the base case."""
        (found,) = get_in_time([self.hosts[0].serial.remote(parts)], seconds, "One process at its work")
        return list(found)

    def pooled(self, parts: Sequence[Part], seconds: float) -> list[Outcome]:
        """Each node's share, dealt out beforehand by its CPUs, in a pool of its own."""
        dealt = shares(len(parts), self.nodes)
        calls = [
            host.pooled.remote(parts[begin:end]) for host, (_, (begin, end)) in zip(self.hosts, dealt, strict=True)
        ]
        return [outcome for found in get_in_time(calls, seconds, "Pools at their work") for outcome in found]

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

    def close(self) -> None:
        """End the hosts; the processes of their pools end with them."""
        import ray

        for host in self.hosts:
            ray.kill(host)


def start(job: Job, nodes: Sequence[NodeSlot], folders: Mapping[str, Path]) -> Peers:
    """Hosts on all nodes; they are not ready yet."""
    import ray

    usable = [node for node in nodes if node.cpus > 0]
    make = ray.remote(num_cpus=0, max_restarts=0)(Host)
    hosts = [
        make.options(scheduling_strategy=on(node)).remote(job, node.name, node.cpus, folders.get(node.name))
        for node in usable
    ]
    return Peers(job=job, nodes=usable, folders=folders, hosts=hosts)


def do(job: Job, part: Part, folder: Path | None) -> Outcome:
    """A part, its vectors from this node's disk or made here."""
    return work.perform(job, part, work.vectors_of(job, part, folder), say=lambda _: None)


def do_there(job: Job, part: Part, folders: Mapping[str, Path]) -> tuple[str, Outcome]:
    """As `do`, as a task: on one thread, and the id of the node that it ran on. `folders`: of each node, by its id."""
    import ray

    work.one_thread()
    here = ray.get_runtime_context().get_node_id()
    return here, do(job, part, folders.get(here))


def _load_here(job: Job, folder: Path | None) -> None:
    global _job, _folder
    _job, _folder = job, folder


def _warm_up_here(_: int) -> None:
    import time

    work.warm_up(_job)
    time.sleep(0.05)  # so that each gets one of these


def _do_here(part: Part) -> Outcome:
    return do(_job, part, _folder)
