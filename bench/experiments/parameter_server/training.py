"""One training from the driver's side: servers and workers in their places, faults that are got over, checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from bench.context import NodeSlot
from bench.errors import RunFailed
from bench.experiments.parameter_server import checkpoints, models
from bench.experiments.parameter_server.host import Host, Report, Schedule, Task
from bench.experiments.parameter_server.lines import Address
from bench.experiments.parameter_server.server import Checkpoint, Plan, Server, Snapshot, Tally
from bench.experiments.parameter_server.wire import Transport, parts
from bench.experiments.toolkit.placement import Place, get_in_time, on

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

READY_SECONDS = 180.0
ANSWER_SECONDS = 60.0
TICK_SECONDS = 0.5  # between two looks at how far a training is
REPLACEMENTS_PER_WORKER = 3


@dataclass(frozen=True, kw_only=True)
class Setting:
    """All that servers and workers are made from."""

    model: models.Name
    seed: int
    batch: int
    transport: Transport
    prefetch: bool
    images: Any  # references to the training set in Ray's object store
    classes: Any
    initial: Vector
    shapes: Sequence[tuple[int, ...]]
    parameters: int


@dataclass(kw_only=True)
class Pass:
    """One training, done."""

    samples: int
    samples_by_node: Mapping[str, float]
    iterations: int
    reports: Sequence[Report]
    seconds: float = 0.0
    tallies: Sequence[Tally] = ()
    replaced: int = 0
    lost_seconds: float = 0.0  # from a worker's death until its successor was ready
    snapshots: Callable[[], list[Snapshot]] = field(default=list)  # asked for when the clock has stopped


class Trainers:
    """Servers and workers that stay from one training to the next."""

    def __init__(
        self, setting: Setting, *, seats: Sequence[Place], server_nodes: Sequence[NodeSlot], folder: Path | None = None
    ) -> None:
        import ray

        self._setting = setting
        self._seats = seats
        self._folder = folder
        self._done = 0  # trainings, for the names of checkpoints
        self.parts = parts(len(setting.initial), len(server_nodes))
        make = ray.remote(max_restarts=0)(Server)
        self.servers = [
            # A server has no CPU of its own: it works while the workers wait. A thread for each of them, and for us.
            make.options(num_cpus=0, scheduling_strategy=on(node), max_concurrency=len(seats) + 4).remote(
                transport=setting.transport,
                shapes=setting.shapes,
                length=part.stop - part.start,
                parameters=max(0, min(setting.parameters, part.stop) - part.start),
            )
            for node, part in zip(server_nodes, self.parts, strict=True)
        ]
        self.hosts = [self._make_host(seat) for seat in seats]
        self.addresses: Sequence[Address] = ()  # of the servers, where workers have lines of their own
        self._is_met = False  # whether all workers have met over gloo

    def ready(self) -> list[int]:
        """Wait for all; gives the threads of each worker, each of which has computed one gradient."""
        import ray

        get_in_time([server.version.remote() for server in self.servers], READY_SECONDS, "Servers that start")
        if self._setting.transport == "direct":
            self.addresses = ray.get([server.listen.remote() for server in self.servers], timeout=ANSWER_SECONDS)
        get_in_time([host.warm_up.remote() for host in self.hosts], READY_SECONDS, "Workers that start")
        return list(ray.get([host.threads.remote() for host in self.hosts], timeout=ANSWER_SECONDS))

    def train(
        self,
        plan: Plan,
        *,
        name: str,
        progress: Callable[[float, float], None] = lambda _done, _total: None,
        start: Checkpoint | None = None,
    ) -> Pass:
        """One training by `plan`. Raises RunFailed where a server died, naming the last checkpoint."""
        self._done += 1
        return _Training(self, plan, f"{name}-{self._done}", progress, start).run()

    def join_peers(self) -> None:
        """Let the workers' processes meet over gloo, also after one of those that met was replaced."""
        import ray

        if self._is_met:
            return
        meeting = ray.get(self.hosts[0].address.remote(), timeout=ANSWER_SECONDS)
        get_in_time(
            [host.join.remote(meeting, rank=rank, workers=len(self.hosts)) for rank, host in enumerate(self.hosts)],
            READY_SECONDS,
            "Processes that meet over gloo",
        )
        self._is_met = True

    def alone(self, schedule: Schedule, threads: int) -> Pass:
        """Plain torch in the first worker's process."""
        import ray

        begin = monotonic()
        report = ray.get(self.hosts[0].learn_alone.remote(schedule, threads=threads))
        return self._peer_pass(schedule, [report], monotonic() - begin)

    def together(self, schedule: Schedule) -> Pass:
        """DistributedDataParallel in all workers' processes."""
        import ray

        begin = monotonic()
        reports = ray.get([host.learn_together.remote(schedule) for host in self.hosts])
        return self._peer_pass(schedule, reports, monotonic() - begin)

    def close(self) -> None:
        """End all processes."""
        import ray

        for actor in (*self.hosts, *self.servers):
            ray.kill(actor)

    def replace(self, rank: int) -> None:
        """A new worker in the place of one that died; returns when it is ready."""
        self._is_met = False
        self.hosts[rank] = self._make_host(self._seats[rank])
        get_in_time([self.hosts[rank].warm_up.remote()], READY_SECONDS, "A worker in the place of one that died")

    def credit(self, steps: Mapping[int, int]) -> dict[str, float]:
        """Samples by node, from the steps of each rank."""
        by_node: Counter[str] = Counter()
        for rank, count in steps.items():
            by_node[self._seats[rank].node.name] += count * self._setting.batch
        return {name: float(count) for name, count in by_node.items()}

    def _peer_pass(self, schedule: Schedule, reports: Sequence[Report], seconds: float) -> Pass:
        steps = {rank: report.steps for rank, report in enumerate(reports)}
        return Pass(
            samples=sum(steps.values()) * self._setting.batch,
            samples_by_node=self.credit(steps),
            iterations=schedule.iterations,
            reports=reports,
            seconds=seconds,
            snapshots=lambda: reports[0].snapshots,
        )

    def _make_host(self, seat: Place) -> Any:
        import ray

        setting = self._setting
        return (
            ray.remote(Host)
            .options(num_cpus=seat.cpus, scheduling_strategy=on(seat.node), max_restarts=0)
            .remote(
                setting.model,
                setting.images,
                setting.classes,
                size=setting.batch,
                seed=setting.seed,
                threads=seat.threads,
            )
        )

    @property
    def setting(self) -> Setting:
        return self._setting

    @property
    def folder(self) -> Path | None:
        return self._folder


class _Training:
    """One training, with all its state, so that none of that outlives it."""

    def __init__(
        self,
        trainers: Trainers,
        plan: Plan,
        name: str,
        progress: Callable[[float, float], None],
        start: Checkpoint | None,
    ) -> None:
        self.trainers = trainers
        self.plan = plan
        self.name = name
        self.progress = progress
        self.start = start
        self.running: dict[Any, int] = {}
        self.reports: dict[int, list[Report]] = {rank: [] for rank in range(plan.workers)}
        self.replaced = 0
        self.lost_seconds = 0.0
        self.saved: Path | None = None
        self.saved_iteration = plan.begin

    def run(self) -> Pass:
        import ray

        begin = monotonic()
        self.begin()
        for rank in range(self.plan.workers):
            self.give(rank, self.plan.begin)
        while self.running:
            ready, _ = ray.wait(list(self.running), num_returns=len(self.running), timeout=TICK_SECONDS)
            for reference in ready:
                self.take(reference)
            if self.running:
                self.look()
        tallies = self.ask("tally")
        return self.finished(tallies, monotonic() - begin)

    def begin(self) -> None:
        """Give every shard its part of the weights to begin with."""
        cut = self.trainers.setting.parameters
        state = self.trainers.setting.initial if self.start is None else self.start.state
        calls = []
        for server, part in zip(self.trainers.servers, self.trainers.parts, strict=True):
            velocity = None if self.start is None else self.start.velocity[part.start : min(part.stop, cut)]
            calls.append(server.begin.remote(self.plan, state[part], velocity))
        get_in_time(calls, ANSWER_SECONDS, "Servers that are given their weights")

    def give(self, rank: int, first_batch: int) -> None:
        """Let the worker of `rank` train."""
        setting = self.trainers.setting
        task = Task(
            rank=rank,
            workers=self.plan.workers,
            is_sync=self.plan.mode == "sync",
            begin=first_batch,
            transport=setting.transport,
            prefetch=setting.prefetch,
            reset_every=self.plan.checkpoint_every,
            addresses=self.trainers.addresses,
        )
        self.running[self.trainers.hosts[rank].train.remote(self.trainers.servers, task)] = rank

    def take(self, reference: Any) -> None:
        """Keep a worker's report, or put another in its place."""
        import ray
        from ray.exceptions import RayActorError, RayTaskError

        rank = self.running.pop(reference)
        try:
            self.reports[rank].append(ray.get(reference))
        except RayTaskError:
            self.ask("version")  # a server that is dead is what is to be told
            raise
        except RayActorError as error:
            self.ask("version")
            self.succeed(rank, error)

    def succeed(self, rank: int, error: Exception) -> None:
        """Put a new worker in the place of one that died."""
        if self.replaced == REPLACEMENTS_PER_WORKER * self.plan.workers:
            raise RunFailed(f"{self.replaced} workers were replaced, and the next one died too: {error}") from error
        begin = monotonic()
        self.trainers.replace(rank)
        self.replaced += 1
        self.lost_seconds += monotonic() - begin
        (first_batch, *_) = self.ask("clock", rank)
        self.give(rank, first_batch)

    def look(self) -> None:
        """See how far it is, and keep the checkpoint that there may be."""
        done = min(self.ask("version")) - self.plan.begin
        self.progress(done, self.plan.iterations)
        every = self.plan.checkpoint_every
        if every and self.plan.begin + done >= self.saved_iteration // every * every + every:
            self.save(self.ask("checkpoint"))

    def save(self, found: Sequence[Checkpoint]) -> None:
        """Write a checkpoint, if all shards have the same one, and a new one."""
        import numpy as np

        iterations = {one.iteration for one in found}
        folder = self.trainers.folder
        if folder is None or len(iterations) > 1 or found[0].iteration == self.saved_iteration:
            return
        whole = Checkpoint(
            found[0].iteration,
            np.concatenate([one.state for one in found]),
            np.concatenate([one.velocity for one in found]),
        )
        self.saved = checkpoints.write(folder, self.name, whole)
        self.saved_iteration = whole.iteration

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """What every shard says. Raises RunFailed where one is dead."""
        import ray
        from ray.exceptions import GetTimeoutError, RayActorError

        try:
            return list(
                ray.get(
                    [getattr(server, what).remote(*arguments) for server in self.trainers.servers],
                    timeout=ANSWER_SECONDS,
                )
            )
        except (RayActorError, GetTimeoutError) as error:
            last = "no checkpoint was written" if self.saved is None else f"the last checkpoint is {self.saved}"
            raise RunFailed(f"A parameter server died, or does not answer; {last}.") from error

    def finished(self, tallies: Sequence[Tally], seconds: float) -> Pass:
        reports = [_added(reports) for _, reports in sorted(self.reports.items())]
        batch = self.trainers.setting.batch
        applied = sum(tallies[0].staleness.values())
        steps = {rank: report.steps for rank, report in enumerate(reports)}
        return Pass(
            samples=applied * batch,
            samples_by_node=self.trainers.credit(steps),
            iterations=self.plan.iterations,
            reports=reports,
            seconds=seconds,
            tallies=tallies,
            replaced=self.replaced,
            lost_seconds=self.lost_seconds,
            snapshots=self.snapshots,
        )

    def snapshots(self) -> list[Snapshot]:
        """Whole states from the shards' parts of them; times are those of the first shard."""
        import numpy as np

        return [
            snapshot[0]._replace(state=np.concatenate([one.state for one in snapshot]))
            for snapshot in zip(*self.ask("snapshots"), strict=True)
        ]


def _added(reports: Sequence[Report]) -> Report:
    """A worker's report with that of its successor."""
    whole = Report()
    for report in reports:
        whole.steps += report.steps
        whole.busy += report.busy
        whole.travel_seconds += report.travel_seconds
        whole.losses += report.losses
    return whole
