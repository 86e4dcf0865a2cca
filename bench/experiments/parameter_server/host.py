"""A worker: a process that learns, with the servers, by itself, or with the others over gloo."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

from bench.experiments.parameter_server import models
from bench.experiments.parameter_server.learner import Batch, Batches, Learner
from bench.experiments.parameter_server.lines import Address, Line
from bench.experiments.parameter_server.memory import keep_freed_memory
from bench.experiments.parameter_server.server import OVER, Snapshot
from bench.experiments.parameter_server.wire import Codec, Transport, codec, parts
from bench.experiments.toolkit.interfaces import interface_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

GLOO_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Task:
    """What one worker is to do in one training."""

    rank: int
    workers: int
    is_sync: bool
    begin: int  # its first batch is this one of its own
    transport: Transport
    prefetch: bool
    reset_every: int  # the error of half precision is forgotten after so many of its steps; 0: never
    addresses: Sequence[Address] = ()  # of all servers, where there are lines past Ray's calls


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What a peer is to do: as a Plan, without servers."""

    iterations: int
    learning_rate: float
    momentum: float
    evaluate_every: int


@dataclass(kw_only=True)
class Report:
    """What a worker, or a peer, did in one training."""

    steps: int = 0
    busy: list[float] = field(default_factory=list)  # seconds of each step: its gradient, and the batch made in it
    travel_seconds: float = 0.0  # from a gradient sent to weights in place, the barrier with it
    losses: list[float] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)


class Host:
    """One process with a network of its own, on as many threads as it has CPUs."""

    def __init__(self, name: models.Name, images: Any, classes: Any, *, size: int, seed: int, threads: int) -> None:
        keep_freed_memory()
        self._learner = Learner(name, seed, threads=threads)
        self._batches = Batches(images, classes, size=size, seed=seed)
        self._initial = self._learner.state.copy()
        self._threads = threads
        self._name, self._seed = name, seed

    def threads(self) -> int:
        """Threads that torch computes with; the answer also says that the worker lives."""
        import torch

        return torch.get_num_threads()

    def address(self) -> str:
        """A free address on this node, for the processes of gloo to meet at."""
        import socket

        import ray

        node = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((node, 0))
            return f"tcp://{node}:{free.getsockname()[1]}"

    def warm_up(self) -> None:
        """One gradient that nobody gets: what torch does once is done then."""
        self._learner.state[:] = self._initial
        self._learner.compute(self._batches.take(0))

    # with the servers

    def train(self, servers: Sequence[Any], task: Task) -> Report:
        """Send gradients and take weights until all servers say that it is over."""
        with closing(_Link(servers, self._learner, task)) as link:
            link.collect(link.pull())
            return self._train(link, task)

    def _train(self, link: _Link, task: Task) -> Report:
        report, step = Report(), task.begin
        while not link.is_over:
            if task.is_sync:
                step = link.version  # the successor of a worker that died begins where the others are
            begin = monotonic()
            if not report.steps or not task.prefetch:
                batch = self._take(task, step)
            report.losses.append(self._learner.compute(batch))
            if task.reset_every and step % task.reset_every == 0:
                link.forget()
            sent = monotonic()
            answers = link.push()
            step += 1
            making = monotonic()
            if task.prefetch:
                batch = self._take(task, step)
            report.busy.append(sent - begin + monotonic() - making)
            link.collect(answers)
            report.travel_seconds += monotonic() - sent
            report.steps += 1
        return report

    def _take(self, task: Task, step: int) -> Batch:
        return self._batches.take(step * task.workers + task.rank)

    # without Ray

    def learn_alone(self, schedule: Schedule, *, threads: int) -> Report:
        """Plain torch in this one process, a batch an iteration."""
        import torch

        torch.set_num_threads(threads)
        try:
            return self._loop(self._learner.compute, self._learner, schedule, range(schedule.iterations))
        finally:
            torch.set_num_threads(self._threads)

    def join(self, meeting: str, *, rank: int, workers: int) -> None:
        """Meet the others at an address, with a second network for torch's DistributedDataParallel over gloo."""
        import ray
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        if dist.is_initialized():
            dist.destroy_process_group()  # one of those that met has died
        os.environ["GLOO_SOCKET_IFNAME"] = interface_of(ray.util.get_node_ip_address())
        dist.init_process_group(
            "gloo", init_method=meeting, rank=rank, world_size=workers, timeout=timedelta(seconds=GLOO_SECONDS)
        )
        # Its hooks stay with the parameters for good, so that they are not those of the other trainings.
        learner = Learner(self._name, self._seed, threads=self._threads)
        module = DistributedDataParallel(learner.module, forward_sync_buffers=False)
        self._together = learner, module, rank, workers

    def learn_together(self, schedule: Schedule) -> Report:
        """DistributedDataParallel, with the batches that synchronous workers have."""
        from torch.nn.functional import cross_entropy

        learner, module, rank, workers = self._together

        def compute(batch: Batch) -> float:
            learner.message[: learner.parameters] = 0.0
            loss = cross_entropy(module(batch.images), batch.classes)
            loss.backward()  # type: ignore[no-untyped-call]
            return float(loss.detach())

        return self._loop(compute, learner, schedule, range(rank, schedule.iterations * workers, workers))

    def _loop(
        self, compute: Callable[[Batch], float], learner: Learner, schedule: Schedule, numbers: Sequence[int]
    ) -> Report:
        """Gradient descent by torch's own optimiser; keeps the states that are to be evaluated."""
        import torch

        learner.state[:] = self._initial
        optimizer = torch.optim.SGD(learner.module.parameters(), lr=schedule.learning_rate, momentum=schedule.momentum)
        report = Report()
        started, cpu = monotonic(), process_time()
        for iteration, number in enumerate(numbers, start=1):
            report.losses.append(compute(self._batches.take(number)))
            optimizer.step()
            if iteration % schedule.evaluate_every == 0 or iteration == len(numbers):
                state = learner.state.copy()
                report.snapshots.append(Snapshot(iteration, monotonic() - started, process_time() - cpu, state))
        report.steps = len(numbers)
        return report


class _Link:
    """A worker's end of the lines to all shards, each of which has a version of its own."""

    def __init__(self, servers: Sequence[Any], learner: Learner, task: Task) -> None:
        import numpy as np

        self._learner = learner
        self._task = task
        self._parts = parts(len(learner.state), len(servers))
        self._codecs = [codec(task.transport, learner.shapes, part.stop - part.start) for part in self._parts]
        self._ends: Sequence[Line | _Calls] = (
            [Line(address) for address in task.addresses]
            if task.addresses
            else [_Calls(server, form) for server, form in zip(servers, self._codecs, strict=True)]
        )
        self._versions = [0] * len(servers)
        self._error = np.zeros_like(learner.message) if task.transport == "compressed" else None

    @property
    def version(self) -> int:
        """Of the shard that has got least far."""
        return min((version for version in self._versions if version != OVER), default=OVER)

    @property
    def is_over(self) -> bool:
        return self.version == OVER

    def forget(self) -> None:
        """Begin anew with what half precision lost: a training that is resumed here has no more than that."""
        if self._error is not None:
            self._error[:] = 0.0

    def pull(self) -> list[tuple[int, Any]]:
        """Ask for the weights as they are."""
        return [(shard, end.pull(self._task.rank, process_time())) for shard, end in enumerate(self._ends)]

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
            if version == OVER or (self._task.is_sync and version != least):
                continue
            pieces = form.encode(message[part])
            if self._error is not None:
                form.decode(pieces, self._error[part])
            answers.append((shard, end.push(self._task.rank, version, cpu_seconds, pieces)))
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
    """Ray's calls of one server: what a Line does, past them."""

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
        """Nothing to do: Ray keeps the lines."""
