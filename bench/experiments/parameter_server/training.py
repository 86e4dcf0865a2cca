"""Trains once from the driver's side: places servers and workers, replaces workers that die, and writes checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from bench.context import NodeSlot
from bench.counts import plural
from bench.errors import RunFailed
from bench.experiments.parameter_server import checkpoints
from bench.experiments.parameter_server.connections import Address
from bench.experiments.parameter_server.learner import Learner
from bench.experiments.parameter_server.params import Params
from bench.experiments.parameter_server.server import Checkpoint, ParameterServer, ServerCounts, TrainingPlan
from bench.experiments.parameter_server.snapshots import Snapshots
from bench.experiments.parameter_server.wire import parts
from bench.experiments.parameter_server.worker import TrainingWorker, WorkerReport
from bench.experiments.toolkit.placement import Place, get_in_time, on

READY_SECONDS = 180.0
ANSWER_SECONDS = 60.0
TICK_SECONDS = 0.5  # between two polls of the servers
REPLACEMENTS_PER_WORKER = 3


@dataclass(kw_only=True)
class TrainingPass:
    """One training, done."""

    samples: int
    samples_by_node: Mapping[str, float]
    iterations: int
    reports: Sequence[WorkerReport]
    all_counts: Sequence[ServerCounts] = ()
    replaced: int = 0
    lost_seconds: float = 0.0  # from a worker's death until its successor was ready
    snapshots: Callable[[], Snapshots]  # asked for when the clock has stopped, and before the next training


@dataclass(kw_only=True)
class Trainers:
    """Servers and workers that stay from one training to the next."""

    params: Params
    seed: int
    learner: Learner  # has the first weights
    images: Any  # references to the training set in Ray's object store
    classes: Any
    places: Sequence[Place]
    server_nodes: Sequence[NodeSlot]
    folder: Path  # for checkpoints
    addresses: Sequence[Address] = ()  # of the servers, where workers have connections of their own
    _trainings: int = 0  # for the names of checkpoints
    _is_met: bool = False  # whether all workers have met over gloo

    def __post_init__(self) -> None:
        import ray

        self.initial, self.parameters = self.learner.state.copy(), self.learner.parameters
        self.parts = parts(len(self.initial), len(self.server_nodes))
        make = ray.remote(max_restarts=0)(ParameterServer)
        self.servers = [
            # A server has no CPU of its own: it works while the workers wait. A thread for each of them, and for us.
            make.options(num_cpus=0, scheduling_strategy=on(node), max_concurrency=len(self.places) + 4).remote(
                transport=self.params.transport,
                shapes=self.learner.shapes,
                length=part.stop - part.start,
                parameters=max(0, min(self.parameters, part.stop) - part.start),
            )
            for node, part in zip(self.server_nodes, self.parts, strict=True)
        ]
        self.workers = [self._make_worker(place) for place in self.places]

    def ready(self) -> list[int]:
        """Wait for all; gives the threads of each worker, each of which has computed one gradient."""
        get_in_time([server.version.remote() for server in self.servers], READY_SECONDS, "Servers that start")
        if self.params.transport == "direct":
            listening = [server.listen.remote() for server in self.servers]
            self.addresses = get_in_time(listening, ANSWER_SECONDS, "Servers that listen")
        get_in_time([worker.warm_up.remote() for worker in self.workers], READY_SECONDS, "Workers that start")
        return get_in_time([worker.threads.remote() for worker in self.workers], ANSWER_SECONDS, "Workers")

    def train(
        self,
        plan: TrainingPlan,
        *,
        name: str,
        progress: Callable[[float, float], None] = lambda _done, _total: None,
        start: Checkpoint | None = None,
    ) -> TrainingPass:
        """One training by `plan`. Raises RunFailed where a server died, naming the last checkpoint."""
        self._trainings += 1
        return _Training(self, plan, f"{name}-{self._trainings}", progress).run(start)

    def join_peers(self) -> None:
        """Let the workers' processes meet over gloo, also after one of those that met was replaced."""
        if self._is_met:
            return
        (meeting,) = get_in_time([self.workers[0].meeting.remote()], ANSWER_SECONDS, "The first worker")
        count = len(self.workers)
        joining = [worker.join.remote(meeting, rank=rank, workers=count) for rank, worker in enumerate(self.workers)]
        get_in_time(joining, READY_SECONDS, "Processes that meet over gloo")
        self._is_met = True

    def alone(self, plan: TrainingPlan, threads: int) -> TrainingPass:
        """Plain torch in the first worker's process."""
        return self._peer_pass(plan, [self.workers[0].learn_alone.remote(plan, threads=threads)])

    def together(self, plan: TrainingPlan) -> TrainingPass:
        """DistributedDataParallel in all workers' processes."""
        return self._peer_pass(plan, [worker.learn_together.remote(plan) for worker in self.workers])

    def close(self) -> None:
        """End all processes."""
        import ray

        for actor in (*self.workers, *self.servers):
            ray.kill(actor)

    def replace(self, rank: int) -> None:
        """A new worker in the place of one that died; returns when it is ready."""
        self._is_met = False
        self.workers[rank] = self._make_worker(self.places[rank])
        get_in_time([self.workers[rank].warm_up.remote()], READY_SECONDS, "A worker in the place of one that died")

    def samples_by_node(self, reports: Sequence[WorkerReport]) -> dict[str, float]:
        """Images that the workers of each node learned from; `reports` are by rank."""
        samples: Counter[str] = Counter()
        for place, report in zip(self.places, reports, strict=False):
            samples[place.node.name] += report.steps * self.params.batch
        return {name: float(count) for name, count in samples.items()}

    def _peer_pass(self, plan: TrainingPlan, calls: Sequence[Any]) -> TrainingPass:
        import ray

        reports: list[WorkerReport] = ray.get(list(calls))
        return TrainingPass(
            samples=sum(report.steps for report in reports) * self.params.batch,
            samples_by_node=self.samples_by_node(reports),
            iterations=plan.iterations,
            reports=reports,
            snapshots=lambda: Snapshots(reports[0].marks, self._kept_by_first),
        )

    def _kept_by_first(self, number: int) -> Any:
        (state,) = get_in_time([self.workers[0].state.remote(number)], ANSWER_SECONDS, "The first worker")
        return state

    def _make_worker(self, place: Place) -> Any:
        import ray

        make = ray.remote(num_cpus=place.cpus, max_restarts=0)(TrainingWorker)
        return make.options(scheduling_strategy=on(place.node)).remote(
            self.params, self.seed, self.images, self.classes, threads=place.threads
        )


class _Training:
    """One training, with all its state, so that none of that outlives it."""

    def __init__(
        self, trainers: Trainers, plan: TrainingPlan, name: str, progress: Callable[[float, float], None]
    ) -> None:
        self.trainers, self.plan, self.name, self.progress = trainers, plan, name, progress
        self.running: dict[Any, int] = {}  # calls, and their workers' ranks
        self.reports = {rank: WorkerReport() for rank in range(plan.workers)}
        self.replaced = 0
        self.lost_seconds = 0.0
        self.saved: Path | None = None
        self.saved_iteration = plan.begin

    def run(self, start: Checkpoint | None) -> TrainingPass:
        """Train from the first weights, or from a checkpoint, until no worker has anything to do."""
        import ray

        self.begin(start)
        for rank in range(self.plan.workers):
            self.give(rank, self.plan.begin)
        while self.running:
            ready, _ = ray.wait(list(self.running), num_returns=len(self.running), timeout=TICK_SECONDS)
            for call in ready:
                self.take(call)
            if self.running:
                self.poll()
        all_counts = self.ask("counts")
        reports = list(self.reports.values())
        return TrainingPass(
            samples=sum(all_counts[0].staleness.values())
            * self.trainers.params.batch,  # of gradients that were applied
            samples_by_node=self.trainers.samples_by_node(reports),
            iterations=self.plan.iterations,
            reports=reports,
            all_counts=all_counts,
            replaced=self.replaced,
            lost_seconds=self.lost_seconds,
            snapshots=self.snapshots,
        )

    def begin(self, start: Checkpoint | None) -> None:
        """Give every shard its part of the weights to begin with."""
        trainers = self.trainers
        state = trainers.initial if start is None else start.state
        calls = []
        for server, part in zip(trainers.servers, trainers.parts, strict=True):
            velocity = None if start is None else start.velocity[part.start : min(part.stop, trainers.parameters)]
            calls.append(server.begin.remote(self.plan, state[part], velocity))
        get_in_time(calls, ANSWER_SECONDS, "Servers that are given their weights")

    def give(self, rank: int, first: int) -> None:
        """Let the worker of `rank` train, from its batch `first` on."""
        trainers = self.trainers
        call = trainers.workers[rank].train.remote(trainers.servers, trainers.addresses, self.plan, rank, first)
        self.running[call] = rank

    def take(self, call: Any) -> None:
        """Keep a worker's report, or put another in its place."""
        import ray
        from ray.exceptions import RayActorError, RayTaskError

        rank = self.running.pop(call)
        try:
            self.reports[rank].add(ray.get(call))
        except RayTaskError:
            self.ask("version")  # where a server is dead, that is what must be reported
            raise
        except RayActorError as error:
            self.ask("version")
            self.succeed(rank, error)

    def succeed(self, rank: int, error: Exception) -> None:
        """Put a new worker in the place of one that died."""
        if self.replaced == REPLACEMENTS_PER_WORKER * self.plan.workers:
            were = plural(self.replaced, "worker was", "workers were")
            raise RunFailed(f"{were} replaced, and the next one died too: {error}") from error
        begin = monotonic()
        self.trainers.replace(rank)
        self.replaced += 1
        self.lost_seconds += monotonic() - begin
        (first, *_) = self.ask("clock", rank)
        self.give(rank, first)

    def poll(self) -> None:
        """Report progress, and write a checkpoint where all shards have the same new one."""
        import numpy as np

        done = min(self.ask("version")) - self.plan.begin
        self.progress(done, self.plan.iterations)
        every = self.plan.checkpoint_every
        if not every or self.plan.begin + done < self.saved_iteration // every * every + every:
            return
        shards: list[Checkpoint] = self.ask("checkpoint")
        (iteration, *others) = {shard.iteration for shard in shards}
        if others or iteration == self.saved_iteration:
            return
        state, velocity = (np.concatenate(each) for each in zip(*(shard[1:] for shard in shards), strict=True))
        self.saved = checkpoints.write(self.trainers.folder, self.name, Checkpoint(iteration, state, velocity))
        self.saved_iteration = iteration

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """What every shard answers. Raises RunFailed where one is dead."""
        import ray
        from ray.exceptions import GetTimeoutError, RayActorError

        calls = [getattr(server, what).remote(*arguments) for server in self.trainers.servers]
        try:
            return list(ray.get(calls, timeout=ANSWER_SECONDS))
        except (RayActorError, GetTimeoutError) as error:
            last = "no checkpoint was written" if self.saved is None else f"the last checkpoint is {self.saved}"
            raise RunFailed(f"A parameter server died, or does not answer; {last}.") from error

    def snapshots(self) -> Snapshots:
        """Whole states from the shards' parts of them; times are those of the first shard."""
        import numpy as np

        marks, *_ = self.ask("marks")
        return Snapshots(marks, lambda number: np.concatenate(self.ask("state", number)))
