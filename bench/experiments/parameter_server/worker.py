"""Trains in one process: with the servers, by itself, or with the other workers over gloo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

from bench.experiments.parameter_server.connections import Address, Connection
from bench.experiments.parameter_server.learner import Batch, Batches, Learner
from bench.experiments.parameter_server.memory import keep_freed_memory
from bench.experiments.parameter_server.params import Params
from bench.experiments.parameter_server.server import OVER, TrainingPlan
from bench.experiments.parameter_server.snapshots import Mark, SnapshotFile, count_of
from bench.experiments.parameter_server.wire import Codec, Transport, codec, parts
from bench.experiments.toolkit import gloo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

GLOO_SECONDS = 120.0


@dataclass(kw_only=True)
class WorkerReport:
    """What a worker, or a peer, did in one training."""

    steps: int = 0
    busy: list[float] = field(default_factory=list)  # seconds of each step: its gradient, and the batch made in it
    travel_seconds: float = 0.0  # from a gradient sent to weights in place, the barrier with it
    losses: list[float] = field(default_factory=list)
    marks: list[Mark] = field(
        default_factory=list
    )  # of a peer, by the first of its processes: of the states that it kept

    def add(self, successor: WorkerReport) -> None:
        """Count what the successor of this worker did, too."""
        self.steps += successor.steps
        self.busy += successor.busy
        self.travel_seconds += successor.travel_seconds
        self.losses += successor.losses


class TrainingWorker:
    """One process with a network of its own, on as many threads as it has CPUs."""

    def __init__(self, params: Params, seed: int, images: Any, classes: Any, *, threads: int) -> None:
        keep_freed_memory()
        self._params, self._seed, self._threads = params, seed, threads
        self._learner = Learner(params.model, seed, threads=threads)
        self._batches = Batches(images, classes, size=params.batch, seed=seed)
        self._initial = self._learner.state.copy()
        self._kept = SnapshotFile(len(self._initial), 0)

    def threads(self) -> int:
        """Threads that torch computes with; the answer also says that the worker lives."""
        import torch

        return torch.get_num_threads()

    def meeting(self) -> str:
        """A free address on this node, for the processes of gloo to meet at."""
        import ray

        return gloo.free_meeting(ray.util.get_node_ip_address())

    def warm_up(self) -> None:
        """One gradient that is thrown away: what torch does once is done then."""
        self._learner.state[:] = self._initial
        self._learner.compute(self._batches.take(0))

    # with the servers

    def train(
        self, servers: Sequence[Any], addresses: Sequence[Address], plan: TrainingPlan, rank: int, first: int
    ) -> WorkerReport:
        """Send gradients, from batch `first` of its own on, and take weights until all servers say that it is over."""
        params = self._params
        with closing(Shards(servers, addresses, self._learner, plan, rank, params.transport)) as shards:
            shards.collect(shards.pull())
            report, step = WorkerReport(), first
            while not shards.is_over:
                if plan.is_sync:
                    step = shards.version  # the successor of a worker that died begins where the others are
                begin = monotonic()
                if not report.steps or not params.prefetch:
                    batch = self._batches.take(step * plan.workers + rank)
                report.losses.append(self._learner.compute(batch))
                if plan.checkpoint_every and step % plan.checkpoint_every == 0:
                    shards.forget_error()
                sent = monotonic()
                answers = shards.push()
                step += 1
                making = monotonic()
                if params.prefetch:
                    batch = self._batches.take(step * plan.workers + rank)
                report.busy.append(sent - begin + monotonic() - making)
                shards.collect(answers)
                report.travel_seconds += monotonic() - sent
                report.steps += 1
        return report

    # without Ray

    def learn_alone(self, plan: TrainingPlan, *, threads: int) -> WorkerReport:
        """Plain torch in this one process, a batch an iteration."""
        import torch

        torch.set_num_threads(threads)
        try:
            return self._learn(self._learner.compute, self._learner, plan, range(plan.iterations), keeps=True)
        finally:
            torch.set_num_threads(self._threads)

    def join(self, meeting: str, *, rank: int, workers: int) -> None:
        """Meet the others at an address, with a second network for torch's DistributedDataParallel over gloo."""
        import ray
        from torch.nn.parallel import DistributedDataParallel

        own = ray.util.get_node_ip_address()
        gloo.join(meeting, own_address=own, rank=rank, processes=workers, seconds=GLOO_SECONDS)
        # Its hooks stay with the parameters for good, so that they are not those of the other trainings.
        learner = Learner(self._params.model, self._seed, threads=self._threads)
        module = DistributedDataParallel(learner.module, forward_sync_buffers=False)
        self._together = learner, module, rank, workers

    def learn_together(self, plan: TrainingPlan) -> WorkerReport:
        """DistributedDataParallel, with the batches that synchronous workers have."""
        from torch.nn.functional import cross_entropy

        learner, module, rank, workers = self._together

        def compute(batch: Batch) -> float:
            learner.message[: learner.parameters] = 0.0
            loss = cross_entropy(module(batch.images), batch.classes)
            loss.backward()  # type: ignore[no-untyped-call]
            return float(loss.detach())

        numbers = range(rank, plan.iterations * workers, workers)
        return self._learn(compute, learner, plan, numbers, keeps=rank == 0)

    def state(self, number: int) -> Vector:
        """One of the states that were kept of the last training without Ray."""
        return self._kept.state(number)

    def _learn(
        self,
        compute: Callable[[Batch], float],
        learner: Learner,
        plan: TrainingPlan,
        batches: Sequence[int],
        *,
        keeps: bool,
    ) -> WorkerReport:
        """Gradient descent by torch's own optimiser; `keeps` the states that are to be evaluated."""
        import torch

        learner.state[:] = self._initial
        optimizer = torch.optim.SGD(learner.module.parameters(), lr=plan.learning_rate, momentum=plan.momentum)
        self._kept.close()
        self._kept = SnapshotFile(len(learner.state), count_of(len(batches), plan.evaluate_every) if keeps else 0)
        report = WorkerReport(steps=len(batches), marks=self._kept.marks)
        started, cpu = monotonic(), process_time()
        for iteration, number in enumerate(batches, start=1):
            report.losses.append(compute(self._batches.take(number)))
            optimizer.step()
            if keeps and (iteration % plan.evaluate_every == 0 or iteration == len(batches)):
                mark = Mark(iteration, monotonic() - started, process_time() - cpu)
                self._kept.add(mark, learner.state)
        return report


class Shards:
    """All shards, as a worker reaches them; each has a version of its own."""

    def __init__(
        self,
        servers: Sequence[Any],
        addresses: Sequence[Address],
        learner: Learner,
        plan: TrainingPlan,
        rank: int,
        transport: Transport,
    ) -> None:
        import numpy as np

        self._learner, self._plan, self._rank = learner, plan, rank
        self._parts = parts(len(learner.state), len(servers))
        self._codecs = [codec(transport, learner.shapes, part.stop - part.start) for part in self._parts]
        self._ends: Sequence[Connection | _Calls] = (
            [Connection(address) for address in addresses]
            if addresses
            else [_Calls(server, form) for server, form in zip(servers, self._codecs, strict=True)]
        )
        self._versions = [0] * len(servers)
        self._error = np.zeros_like(learner.message) if transport == "compressed" else None

    @property
    def version(self) -> int:
        """Of the shard that has got least far."""
        return min((version for version in self._versions if version != OVER), default=OVER)

    @property
    def is_over(self) -> bool:
        return self.version == OVER

    def forget_error(self) -> None:
        """Begin anew with what half precision lost: a training that is resumed here has no more than that."""
        if self._error is not None:
            self._error[:] = 0.0

    def pull(self) -> list[tuple[int, Any]]:
        """Ask for the weights as they are."""
        return [(shard, end.pull(self._rank, process_time())) for shard, end in enumerate(self._ends)]

    def push(self) -> list[tuple[int, Any]]:
        """Send the message that the learner has made, and ask for the weights after it.

        Shards are at different versions where a worker died between two of its calls: those that are ahead have had
        this gradient.
        """
        message, cut = self._learner.message, self._learner.parameters
        if self._error is not None:
            message[:cut] += self._error[:cut]  # of a running average nothing need be made good
        cpu_seconds, least = process_time(), self.version
        answers = []
        for shard, (end, form, part) in enumerate(zip(self._ends, self._codecs, self._parts, strict=True)):
            version = self._versions[shard]
            if version == OVER or (self._plan.is_sync and version != least):
                continue
            pieces = form.encode(message[part])
            if self._error is not None:
                form.decode(pieces, self._error[part])
            answers.append((shard, end.push(self._rank, version, cpu_seconds, pieces)))
        if self._error is not None:
            self._error[:] = message - self._error
        return answers

    def collect(self, answers: Sequence[tuple[int, Any]]) -> None:
        """Wait for the weights, and put them in their place."""
        for shard, answer in answers:
            self._versions[shard] = self._ends[shard].take(answer, self._learner.state[self._parts[shard]])

    def close(self) -> None:
        """Hang up."""
        for end in self._ends:
            end.close()


class _Calls:
    """Ray's calls of one server: what a Connection does, past them."""

    def __init__(self, server: Any, form: Codec) -> None:
        self._form = form
        self._pull = server.pull.options(num_returns=1 + form.pieces)
        self._push = server.push.options(num_returns=1 + form.pieces)

    def pull(self, rank: int, cpu_seconds: float) -> Any:
        return self._pull.remote(rank, cpu_seconds)

    def push(self, rank: int, version: int, cpu_seconds: float, pieces: Sequence[Any]) -> Any:
        return self._push.remote(rank, version, cpu_seconds, *pieces)

    def take(self, answer: Any, out: Vector) -> int:
        import ray

        version, *pieces = ray.get(answer)
        self._form.decode(pieces, out)
        return int(version)

    def close(self) -> None:
        """Nothing to do: Ray keeps the connections."""
