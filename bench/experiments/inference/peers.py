"""Runs what Ray is compared with: the same network on the same nodes by numpy and by multiprocessing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.context import NodeSlot
from bench.errors import RunInvalid
from bench.experiments.inference import mlp
from bench.experiments.toolkit.placement import Span, shares, spans
from bench.experiments.toolkit.process_pool import PeerProcesses, ProcessPool

if TYPE_CHECKING:
    from bench.experiments.inference.mlp import Array, Layers

READY_SECONDS = 120.0
SLOWEST_INPUTS_PER_SECOND = 200.0  # of a peer that is alive
CHUNK_SECONDS = 60.0


@dataclass(frozen=True)
class BatchWorker:
    """The network in a process of the pool."""

    layers: Layers

    def threads(self) -> int:
        """Native threads of this process."""
        return mlp.native_threads()

    def answer(self, task: tuple[int, Array]) -> tuple[int, bytes]:
        """The number of a batch, and the classes of its inputs."""
        index, rows = task
        return index, mlp.answer(self.layers, rows).tobytes()


class InferencePeer:
    """A process on a node that does the node's share, in itself or in a pool of its own."""

    def __init__(self, layers: Layers, vectors: Array, threads: int, processes: int) -> None:
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
        self._pool = ProcessPool(BatchWorker, self._layers, processes=processes) if processes else None  # not measured

    def ready(self) -> dict[str, list[int]]:
        """The native threads of each thread or process, by arm; waits until all processes of the pool have the network."""
        return {
            "numpy-one-by-one": [mlp.native_threads()],
            "numpy-all-cpus": list(self._threads.map(_threads_here, range(self._thread_count))),
            "pool": self._pool.on_each("threads", seconds=READY_SECONDS) if self._pool else [],
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
        assert self._pool is not None  # noqa: S101, it is called where the pool is measured
        for index, classes in self._pool.results("answer", tasks, seconds=CHUNK_SECONDS):
            answers[index] = classes
        return b"".join(answers)

    def _answer(self, span: Span) -> bytes:
        return mlp.answer(self._layers, mlp.rows_of(self._vectors, *span)).tobytes()

    def processes(self) -> list[int]:
        """The ids of the pool's processes."""
        return sorted(self._pool.processes) if self._pool else []


@dataclass(frozen=True)
class InferencePeers:
    """A peer process on each node, and each node's share of the inputs."""

    processes: PeerProcesses
    shares: Sequence[tuple[NodeSlot, Span]]
    batch: int
    has_pool: bool

    def ready(self) -> list[dict[str, list[int]]]:
        """Wait for all peers; gives their native threads. Raises RunInvalid where these are not the node's."""
        found = self.processes.call("ready", [()] * len(self.shares), seconds=READY_SECONDS)
        for (node, _), threads in zip(self.shares, found, strict=True):
            asked = {
                "numpy-one-by-one": [1],
                "numpy-all-cpus": [1] * node.threads,
                "pool": [1] * node.cpus * self.has_pool,
            }
            if threads != asked:
                raise RunInvalid(f"The peers on {node.name} have native threads {threads}, not {asked}.")
        return found

    def one_by_one(self) -> bytes:
        """All inputs on one thread of the first node: the base case, so it is not spread."""
        return self._answers("one_by_one", [(0, self.inputs)])

    def all_cpus(self) -> bytes:
        """All inputs on all nodes, in large batches."""
        return self._answers("all_cpus", [span for _, span in self.shares])

    def pool(self) -> bytes:
        """All inputs on all nodes, through a pool of processes on each."""
        return self._answers("pool", [(*span, self.batch) for _, span in self.shares])

    @property
    def inputs(self) -> int:
        return self.shares[-1][1][1]

    @property
    def all_on_first(self) -> Mapping[str, float]:
        """Inputs done on each node when the first does all."""
        return {node.name: float(self.inputs if index == 0 else 0) for index, (node, _) in enumerate(self.shares)}

    @property
    def spread(self) -> Mapping[str, float]:
        """Inputs done on each node when each does its share."""
        return {node.name: float(stop - start) for node, (start, stop) in self.shares}

    def _answers(self, method: str, arguments: Sequence[Sequence[int]]) -> bytes:
        seconds = READY_SECONDS + self.inputs / SLOWEST_INPUTS_PER_SECOND
        return b"".join(self.processes.call(method, arguments, seconds=seconds))


def start_peers(
    nodes: Sequence[NodeSlot], layers: Layers, vectors: Array, *, inputs: int, batch: int, has_pool: bool = True
) -> InferencePeers:
    """Peer processes on all nodes, with a pool of their own where that is measured; they are not ready yet."""
    import ray

    parts = shares(inputs, nodes)
    held = ray.put(layers), ray.put(vectors)
    processes = PeerProcesses.start(
        InferencePeer, [node for node, _ in parts], lambda node: (*held, node.threads, node.cpus * has_pool)
    )
    return InferencePeers(processes, parts, batch, has_pool)


def _threads_here(_: int) -> int:
    import time

    time.sleep(0.05)  # so that each gets one of these
    return mlp.native_threads()
