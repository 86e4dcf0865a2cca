"""What Ray is compared with: the same network on the same nodes by numpy and by multiprocessing.

Ray places one host process on each node and carries the word "go" and the answers; the work is done without it.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.context import NodeSlot
from bench.errors import RunInvalid
from bench.experiments.inference import mlp
from bench.experiments.toolkit.placement import Span, get_in_time, on, shares, spans
from bench.experiments.toolkit.spawning import THREAD_VARIABLES, environment, without_main_script

if TYPE_CHECKING:
    from bench.experiments.inference.mlp import Array, Layers

READY_SECONDS = 120.0
SLOWEST_INPUTS_PER_SECOND = 200.0  # of a host that is alive
CHUNK_SECONDS = 60.0

_layers: Layers  # in a process of the pool: what its initializer was given


class Host:
    """A process on a node that does the node's share, in itself or in a pool of its own."""

    def __init__(self, layers: Layers, vectors: Array, *, threads: int, processes: int) -> None:
        import numpy as np
        from threadpoolctl import threadpool_limits

        # Copies in ordinary memory: the peers owe nothing to Ray's object store.
        self._layers = tuple((np.array(weights), np.array(biases)) for weights, biases in layers)
        self._vectors = np.array(vectors)
        self._limits = threadpool_limits(1, user_api="blas")
        # Threads of ours, each with a batch of its own and a BLAS of one thread. The BLAS's own threads wait for each
        # other at every product: with one CPU taken by something else, two were slower than one.
        self._threads = ThreadPoolExecutor(threads)
        self._thread_count = threads
        self._pool = _start_pool(self._layers, processes)
        self._processes = processes

    def ready(self) -> dict[str, list[int]]:
        """The native threads of each thread or process, by arm; waits until all processes of the pool have the network."""
        pool = self._pool.map_async(_threads_here, range(self._processes), chunksize=1)
        threads = self._threads.map(_threads_here, range(self._thread_count))
        return {
            "numpy-one-by-one": [mlp.native_threads()],
            "numpy-all-cpus": list(threads),
            "pool": pool.get(timeout=READY_SECONDS),
        }

    def one_by_one(self, start: int, stop: int) -> bytes:
        """Each input by itself, on one thread."""
        return mlp.answer_all(self._layers, self._vectors, start, stop, 1)

    def all_cpus(self, start: int, stop: int) -> bytes:
        """Large batches, as many for each thread of the node as for the others."""
        rounds = max(1, math.ceil((stop - start) / (self._thread_count * mlp.BLOCK)))
        batch = max(1, math.ceil((stop - start) / (self._thread_count * rounds)))
        return b"".join(self._threads.map(self._answer, spans(start, stop, batch)))

    def pool(self, start: int, stop: int, batch: int) -> bytes:
        """Batches by value to the pool, whichever is ready first."""
        chunks = spans(start, stop, batch)
        tasks = ((index, mlp.rows_of(self._vectors, *chunk)) for index, chunk in enumerate(chunks))
        answers = [b""] * len(chunks)
        ready = self._pool.imap_unordered(_answer_here, tasks)
        for _ in chunks:
            index, classes = ready.next(timeout=CHUNK_SECONDS)
            answers[index] = classes
        return b"".join(answers)

    def _answer(self, span: Span) -> bytes:
        return mlp.answer(self._layers, mlp.rows_of(self._vectors, *span)).tobytes()

    def processes(self) -> list[int]:
        """The ids of the pool's processes."""
        return [process.pid for process in multiprocessing.active_children() if process.pid is not None]


@dataclass(frozen=True)
class Peers:
    """A host on each node, and each node's share of the inputs."""

    hosts: Sequence[Any]
    shares: Sequence[tuple[NodeSlot, Span]]
    batch: int

    def ready(self) -> list[dict[str, list[int]]]:
        """Wait for all hosts; gives their native threads. Raises RunInvalid where these are not the node's."""
        found: list[dict[str, list[int]]] = get_in_time(
            [host.ready.remote() for host in self.hosts], READY_SECONDS, "Peers that load the network"
        )
        for (node, _), threads in zip(self.shares, found, strict=True):
            asked = {"numpy-one-by-one": [1], "numpy-all-cpus": [1] * node.threads, "pool": [1] * node.cpus}
            if threads != asked:
                raise RunInvalid(f"The peers on {node.name} have native threads {threads}, not {asked}.")
        return found

    def one_by_one(self) -> bytes:
        """All inputs on one thread of the first node: the base case, so it is not spread."""
        inputs = self.shares[-1][1][1]
        return self._gather([self.hosts[0].one_by_one.remote(0, inputs)])

    def all_cpus(self) -> bytes:
        """All inputs on all nodes, in large batches."""
        return self._gather(
            [host.all_cpus.remote(*span) for host, (_, span) in zip(self.hosts, self.shares, strict=True)]
        )

    def pool(self) -> bytes:
        """All inputs on all nodes, through a pool of processes on each."""
        return self._gather(
            [host.pool.remote(*span, self.batch) for host, (_, span) in zip(self.hosts, self.shares, strict=True)]
        )

    @property
    def all_on_first(self) -> Mapping[str, float]:
        """Inputs done on each node when the first does all."""
        inputs = self.shares[-1][1][1]
        return {node.name: float(inputs if index == 0 else 0) for index, (node, _) in enumerate(self.shares)}

    @property
    def spread(self) -> Mapping[str, float]:
        """Inputs done on each node when each does its share."""
        return {node.name: float(stop - start) for node, (start, stop) in self.shares}

    def close(self) -> None:
        """End the hosts. The processes of their pools end too, for their queue is then closed."""
        import ray

        for host in self.hosts:
            ray.kill(host)

    def _gather(self, references: Sequence[Any]) -> bytes:
        inputs = self.shares[-1][1][1]
        return b"".join(
            get_in_time(references, READY_SECONDS + inputs / SLOWEST_INPUTS_PER_SECOND, "Peers at their work")
        )


def start_peers(nodes: Sequence[NodeSlot], layers: Layers, vectors: Array, *, inputs: int, batch: int) -> Peers:
    """Hosts on all nodes; they are not ready yet."""
    import ray

    parts = shares(inputs, nodes)
    held = ray.put(layers), ray.put(vectors)
    hosts = [
        ray.remote(Host)
        .options(num_cpus=0, scheduling_strategy=on(node))
        .remote(*held, threads=node.threads, processes=node.cpus)
        for node, _ in parts
    ]
    return Peers(hosts, parts, batch)


def _start_pool(layers: Layers, processes: int) -> Any:
    """A pool whose processes have one native thread each."""
    with environment(dict.fromkeys(THREAD_VARIABLES, "1")), without_main_script():
        return multiprocessing.get_context("spawn").Pool(processes, _load_here, (layers,))


def _load_here(layers: Layers) -> None:
    global _layers  # noqa: PLW0603 a pool's initializer has no other way to leave something behind
    _layers = layers


def _threads_here(_: int) -> int:
    import time

    time.sleep(0.05)  # so that each gets one of these
    return mlp.native_threads()


def _answer_here(task: tuple[int, Array]) -> tuple[int, bytes]:
    index, rows = task
    return index, mlp.answer(_layers, rows).tobytes()
