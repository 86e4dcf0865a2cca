"""Holds the weights, or one shard of them, in an actor, and applies what the workers send.

Its calls run in threads, one for each worker, which wait for each other on one condition.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Condition
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.experiments.parameter_server.connections import Address, ShardListener
from bench.experiments.parameter_server.memory import keep_freed_memory
from bench.experiments.parameter_server.snapshots import Mark, SnapshotFile, count_of
from bench.experiments.parameter_server.wire import Transport, codec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

OVER = -1  # in place of a version: there is nothing more to do
STALL_SECONDS = 900.0  # without the others' gradients


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """One training, as the servers need to know it. An iteration is an update of the weights."""

    mode: str  # "sync" or "async"
    workers: int
    begin: int  # the iteration that the state given belongs to
    iterations: int
    learning_rate: float
    momentum: float
    staleness_bound: int  # steps that a worker may be ahead of the slowest; below 0: as many as it likes
    evaluate_every: int
    checkpoint_every: int  # 0: never

    @property
    def is_sync(self) -> bool:
        return self.mode == "sync"

    @property
    def end(self) -> int:
        """The iteration after which there is nothing more to do."""
        return self.begin + self.iterations


class Checkpoint(NamedTuple):
    """All that this shard needs to go on from an iteration as if nothing had been."""

    iteration: int
    state: Vector
    velocity: Vector


@dataclass
class ServerCounts:
    """What a shard saw of one training."""

    update_seconds: float = 0.0  # averaging, applying, copying
    cpu_seconds: float = 0.0  # of the server's process, whatever for
    barrier_seconds: defaultdict[int, float] = field(
        default_factory=lambda: defaultdict(float)
    )  # by rank: from a gradient's arrival to the update
    staleness: Counter[int] = field(default_factory=Counter)
    refused: int = 0  # gradients that came when all was done
    network_bytes: int = 0  # in and out of the server's node


class ParameterServer:
    """One shard. `parameters` of its numbers are parameters, and the rest are statistics that are averaged."""

    def __init__(
        self, *, transport: Transport, shapes: Sequence[tuple[int, ...]], length: int, parameters: int
    ) -> None:
        import numpy as np  # and no torch, which takes seconds to import

        keep_freed_memory()
        self._codec = codec(transport, shapes, length)
        self._parameters = parameters
        self._state: Vector = np.zeros(length, np.float32)
        self._velocity: Vector = np.zeros(parameters, np.float32)
        self._changed = Condition()
        self._version = OVER
        self._snapshots = SnapshotFile(length, 0)
        self._plan: TrainingPlan  # from `begin` on

    def listen(self) -> Address:
        """Take questions by connections of the workers' own from now on, beside calls; gives where."""
        import ray

        length = len(self._state)
        return ShardListener(ray.util.get_node_ip_address(), length, pull=self.pull, push=self.push).address

    def begin(self, plan: TrainingPlan, state: Vector, velocity: Vector | None = None) -> None:
        """Be ready for one training that goes on from `state`."""
        import numpy as np

        with self._changed:
            self._plan = plan
            self._state[:] = state
            self._velocity[:] = 0.0 if velocity is None else velocity
            self._version = plan.begin
            self._arrived: dict[int, Vector] = {}
            self._at_work: set[int] = set()  # asynchronous workers that have weights and owe a gradient
            self._spare = [np.empty_like(self._state) for _ in range(plan.workers)]
            self._mean = np.empty_like(self._state)
            self._clocks = dict.fromkeys(range(plan.workers), 0)
            self._worker_cpu: dict[int, float] = {}
            self._first_cpu: dict[int, float] = {}
            self._snapshots.close()
            self._snapshots = SnapshotFile(len(self._state), count_of(plan.iterations, plan.evaluate_every))
            self._counts = ServerCounts()
            self._started, self._cpu, self._bytes = monotonic(), process_time(), _network_bytes()
            self._checkpoint = Checkpoint(plan.begin, self._state.copy(), self._velocity.copy())

    def pull(self, rank: int, cpu_seconds: float) -> list[Any]:
        """The weights and their version, for a worker that begins."""
        with self._changed:
            self._first_cpu.setdefault(rank, cpu_seconds)
            return self._answer(rank)

    def push(self, rank: int, version: int, cpu_seconds: float, *pieces: Any) -> list[Any]:
        """Take the gradient that a worker made of the weights of a version; gives the weights to go on from.

        The answer is their version, and the pieces that they travel in. `cpu_seconds` are the worker's until now.
        """
        arrived = monotonic()
        with self._changed:
            self._worker_cpu[rank] = cpu_seconds
            apply = self._join if self._plan.is_sync else self._apply_one
            apply(rank, version, pieces)
            self._counts.barrier_seconds[rank] += monotonic() - arrived
            return self._answer(rank)

    def _join(self, rank: int, version: int, pieces: Sequence[Any]) -> None:
        """Wait until every worker's gradient of this version is there; the last one to come averages them."""
        import numpy as np

        plan = self._plan
        if version != self._version:  # of a worker that was given up, whose successor has sent this already
            self._counts.refused += 1
            return
        self._arrived[rank] = self._codec.read(pieces, self._spare[rank])
        if len(self._arrived) < plan.workers:
            self._wait(lambda: self._version != version)
            return
        begin = monotonic()
        # In the order of their ranks: sums of floats depend on it, and the same seed must give the same weights.
        mean = self._arrived[0]
        if plan.workers > 1:
            mean = np.add(mean, self._arrived[1], out=self._mean)
            for other in range(2, plan.workers):
                mean += self._arrived[other]
            mean /= plan.workers
        self._arrived.clear()
        self._counts.staleness[0] += plan.workers
        self._update(mean)
        self._counts.update_seconds += monotonic() - begin

    def _apply_one(self, rank: int, version: int, pieces: Sequence[Any]) -> None:
        """Apply one worker's gradient as it comes; the worker then waits while it is too far ahead."""
        if self._is_over():
            self._counts.refused += 1
            return
        begin = monotonic()
        message = self._codec.read(pieces, self._spare[rank])
        self._counts.staleness[self._version - version] += 1
        self._clocks[rank] += 1
        self._at_work.discard(rank)
        self._update(message)
        self._counts.update_seconds += monotonic() - begin
        bound = self._plan.staleness_bound
        if bound >= 0:
            self._wait(lambda: self._is_over() or self._clocks[rank] - min(self._clocks.values()) <= bound)

    def _update(self, message: Vector) -> None:
        """One step of gradient descent, and what is to be kept of the state after it. `message` may be read-only."""
        import numpy as np

        plan, cut = self._plan, self._parameters
        gradient = message[:cut]
        if plan.momentum:
            self._velocity *= plan.momentum
            self._velocity += gradient
            gradient = self._velocity
        self._state[:cut] -= np.multiply(gradient, plan.learning_rate, out=self._mean[:cut])
        self._state[cut:] = message[cut:]
        self._version += 1
        if self._version % plan.evaluate_every == 0 or self._is_over():
            self._snapshots.add(self._mark(), self._state)
        if plan.checkpoint_every and self._version % plan.checkpoint_every == 0:
            self._checkpoint = Checkpoint(self._version, self._state.copy(), self._velocity.copy())
        self._changed.notify_all()

    def _mark(self) -> Mark:
        workers = sum(cpu - self._first_cpu.get(rank, cpu) for rank, cpu in self._worker_cpu.items())
        cpu = workers + process_time() - self._cpu
        return Mark(self._version, monotonic() - self._started, cpu)

    def _answer(self, rank: int) -> list[Any]:
        # Synchronous workers read what does not change before all have it; asynchronous ones get a copy of the moment.
        state = self._state if self._plan.is_sync else self._state.copy()
        return [self._version if self._may_go_on(rank) else OVER, *self._codec.encode(state)]

    def _may_go_on(self, rank: int) -> bool:
        """Whether one more gradient of this worker's is wanted. Those that are being made already are counted on."""
        plan = self._plan
        if plan.is_sync:
            return not self._is_over()
        others = len(self._at_work - {rank})  # a worker at work that asks again is the successor of one that died
        if self._version + others >= plan.end:
            return False
        self._at_work.add(rank)
        return True

    def _wait(self, until: Any) -> None:
        if not self._changed.wait_for(until, STALL_SECONDS):
            raise TimeoutError(f"{STALL_SECONDS:g} s without the other workers' gradients")

    def _is_over(self) -> bool:
        return self._version >= self._plan.end

    def version(self) -> int:
        """Iterations done; the answer also says that the server lives."""
        return self._version

    def clock(self, rank: int) -> int:
        """Gradients of one worker that were applied."""
        with self._changed:
            return self._version if self._plan.is_sync else self._clocks[rank]

    def counts(self) -> ServerCounts:
        """What was seen of the training that has just ended."""
        self._counts.cpu_seconds = process_time() - self._cpu
        self._counts.network_bytes = _network_bytes() - self._bytes
        return self._counts

    def marks(self) -> list[Mark]:
        """Those of the states that were kept of the last training."""
        return self._snapshots.marks

    def state(self, number: int) -> Vector:
        """One of these states."""
        with self._changed:
            return self._snapshots.state(number)

    def checkpoint(self) -> Checkpoint:
        """The last one."""
        with self._changed:
            return self._checkpoint


def _network_bytes() -> int:
    """Bytes in and out of this node, its loopback left out."""
    import psutil

    counters = psutil.net_io_counters(pernic=True)
    return sum(nic.bytes_sent + nic.bytes_recv for name, nic in counters.items() if not name.startswith("lo"))
