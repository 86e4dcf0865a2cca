"""One invocation of the study: every arm's training in turn, what it came to, and what must be equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from bench.context import Context, Measured
from bench.data import images
from bench.errors import RunInvalid
from bench.experiments.parameter_server import checkpoints, models, wire
from bench.experiments.parameter_server import metrics as m
from bench.experiments.parameter_server.host import Schedule
from bench.experiments.parameter_server.learner import Learner
from bench.experiments.parameter_server.outcome import (
    Examiner,
    Reached,
    by_node,
    curves,
    reached,
    sample,
    share_apart,
    speed_ups,
    target_samples,
)
from bench.experiments.parameter_server.server import Plan
from bench.experiments.parameter_server.training import Pass, Setting, Trainers
from bench.experiments.toolkit import parts
from bench.experiments.toolkit.placement import places
from bench.model import Arm, Sample

if TYPE_CHECKING:
    from bench.experiments.parameter_server import Params
    from bench.experiments.parameter_server.server import Snapshot

SAME_WEIGHTS = 1e-3  # of their change in one iteration, by which gloo's may differ: it adds up in another order
SEEDS_APART = 1_000  # those of one block and the next
RAY_ARMS = (m.SYNC, m.ASYNC, m.ONE_WORKER)


class Study:
    """What `params` ask for, in one place."""

    def __init__(self, params: Params, context: Context) -> None:
        self.params = params
        self.context = context
        # Weights and the order of batches are drawn anew in each block, or its repeats would all need the same (R18).
        self.seed = context.seed + SEEDS_APART * (context.block - 1)
        self.seats = places(params.workers, context.nodes)
        usable = [node for node in context.nodes if node.cpus > 0]
        self.server_nodes = [usable[shard % len(usable)] for shard in range(params.servers)]
        self.cpus = sum(node.cpus for node in usable)
        self.kept: dict[str, Measured[Pass]] = {}  # the last counted turn of each arm, of which there are snapshots
        self.snapshots: dict[str, list[Snapshot]] = {}

    def run(self) -> Iterator[Sample]:
        """Start, measure in turns, then look at what came of it."""
        params, context = self.params, self.context
        held = images.load(params.data, context.seed, "uint8")
        context.data(params.data, images.checksum(params.data, context.seed))
        learner = Learner(params.model, self.seed)
        context.leaves_idle([node.name for node in context.nodes if node not in [seat.node for seat in self.seats]])
        with ExitStack() as ends:
            started = context.time_once(m.SYNC.name, partial(self._start, held, learner))
            trainers = started.results[0]
            ends.callback(trainers.close)
            yield started.sample(m.STARTUP, started.interval.seconds)
            yield started.sample(m.CROWDING, params.workers / self.cpus)
            trainers.join_peers()
            yield self._warm_up(trainers)
            work = self._work(trainers)
            for turn in context.turns():
                for arm in turn.order(m.ARMS):
                    trainers.join_peers()  # again, where a worker was replaced
                    measured = turn.measure(arm, work[arm.name], lambda done: done.samples_by_node)
                    yield from self._samples(arm, measured)
                    self.kept[arm.name] = measured
                    self.snapshots[arm.name] = measured.results[-1].snapshots()
        yield from self._outcomes(Examiner(learner, held.test_x, held.test_y))

    def _start(self, held: images.Images, learner: Learner) -> Trainers:
        """Servers and workers that are ready. Raises RunInvalid where threads are not what they should be (P03)."""
        import ray

        params = self.params
        setting = Setting(
            model=params.model,
            seed=self.seed,
            batch=params.batch,
            transport=params.transport,
            prefetch=params.prefetch,
            images=ray.put(held.train_x),
            classes=ray.put(held.train_y),
            initial=learner.state.copy(),
            shapes=learner.shapes,
            parameters=learner.parameters,
        )
        trainers = Trainers(
            setting, seats=self.seats, server_nodes=self.server_nodes, folder=self.context.folder / "checkpoints"
        )
        threads, asked = trainers.ready(), [seat.threads for seat in self.seats]
        if threads != asked:
            trainers.close()
            raise RunInvalid(f"Workers compute with {threads} threads, not {asked}.")
        return trainers

    def _warm_up(self, trainers: Trainers) -> Sample:
        """One iteration by each way that processes meet, which opens their lines; gives how far apart the weights are.

        After many iterations they may be anything: what differs in the last digit grows.
        """
        plan = replace(self._plan("sync", self.params.workers), iterations=1, checkpoint_every=0)
        once = self.context.time_once(
            m.SYNC.name,
            lambda: (trainers.train(plan, name="warm-up"), trainers.together(replace(self._schedule, iterations=1))),
        )
        ours, theirs = (done.snapshots()[-1].state[: trainers.setting.parameters] for done in once.results[0])
        if self.params.transport == "compressed":
            return once.missing(m.WEIGHTS_APART, "half precision gives other weights, as it must")
        apart = share_apart(ours, theirs, trainers.setting.initial[: trainers.setting.parameters])
        if not apart <= SAME_WEIGHTS:
            self.context.invalid(
                f"after one iteration the weights of {m.SYNC.name} and {m.GLOO.name} are {apart:.2g} of their change"
                f" apart, and {SAME_WEIGHTS:g} is allowed"
            )
        return once.sample(m.WEIGHTS_APART, apart)

    @property
    def _schedule(self) -> Schedule:
        params = self.params
        return Schedule(
            iterations=params.iterations,
            learning_rate=params.learning_rate,
            momentum=params.momentum,
            evaluate_every=params.evaluate_every,
        )

    def _work(self, trainers: Trainers) -> Mapping[str, Callable[[], Pass]]:
        """How each arm trains once."""
        params, schedule = self.params, self._schedule
        start = None
        if params.resume:
            setting = trainers.setting
            start = checkpoints.read(Path(params.resume), length=len(setting.initial), parameters=setting.parameters)
        sync = partial(
            trainers.train,
            self._plan("sync", params.workers, begin=start.iteration if start else 0),
            name=m.SYNC.name,
            progress=self.context.progress,
            start=start,
        )
        return {
            m.SYNC.name: sync,
            m.UNWATCHED.name: sync,
            m.ASYNC.name: partial(
                trainers.train,
                self._plan("async", params.workers),
                name=m.ASYNC.name,
                progress=self.context.progress,
            ),
            m.ONE_WORKER.name: partial(trainers.train, self._plan("sync", 1), name=m.ONE_WORKER.name),
            m.ONE_THREAD.name: partial(trainers.alone, schedule, 1),
            m.ALL_THREADS.name: partial(trainers.alone, schedule, self.seats[0].node.threads),
            m.GLOO.name: partial(trainers.together, schedule),
        }

    def _plan(self, mode: str, workers: int, begin: int = 0) -> Plan:
        params = self.params
        return Plan(
            mode=mode,
            workers=workers,
            begin=begin,
            # As in the study: an asynchronous iteration is one gradient, and there are twice as many of them.
            iterations=2 * params.iterations if mode == "async" else max(1, params.iterations - begin),
            learning_rate=params.learning_rate,
            momentum=params.momentum,
            staleness_bound=params.staleness_bound,
            evaluate_every=params.evaluate_every,
            checkpoint_every=params.checkpoint_every,
        )

    def _samples(self, arm: Arm, measured: Measured[Pass]) -> Iterator[Sample]:
        """What the passes of one turn say by themselves, without a look at the weights."""
        passes, seconds = measured.results, measured.interval.seconds
        yield measured.sample(m.THROUGHPUT, sum(done.samples for done in passes) / seconds)
        if arm not in RAY_ARMS:
            return
        iterations = sum(done.iterations for done in passes)
        slowest = [max(tally.update_seconds for tally in done.tallies) for done in passes]
        busiest = [max(tally.cpu_seconds for tally in done.tallies) for done in passes]
        yield measured.sample(m.SERVER_UPDATE, sum(slowest) / iterations)
        yield measured.sample(m.SERVER_SHARE, sum(busiest) / seconds)
        yield measured.sample(m.REPLACED, sum(done.replaced for done in passes) / len(passes))
        yield measured.sample(m.LOST, sum(done.lost_seconds for done in passes) / len(passes))
        yield measured.sample(parts.ROUND_TRIPS, iterations)
        yield from parts.work_samples(measured, self._rounds(arm, passes))
        yield from self._waits(measured)
        yield from self._wires(measured, iterations)
        yield from _staleness(measured)

    def _rounds(self, arm: Arm, passes: Sequence[Pass]) -> Iterator[list[parts.WorkDone]]:
        """Synchronous workers wait for each other at every step, the others at the end alone."""
        for done in passes:
            steps = zip(*(report.busy for report in done.reports), strict=False)  # a worker that died did fewer
            whole = [tuple(sum(report.busy) for report in done.reports)]
            for times in whole if arm == m.ASYNC else steps:
                yield [
                    parts.WorkDone(
                        node=self.seats[rank].node.name,
                        busy_seconds=seconds,
                        units=done.reports[rank].steps if arm == m.ASYNC else 1,
                    )
                    for rank, seconds in enumerate(times)
                ]

    def _waits(self, measured: Measured[Pass]) -> Iterator[Sample]:
        """Where the workers' time went, by node."""
        passes = measured.results
        ranks = range(len(passes[0].reports))
        barrier = {rank: sum(done.tallies[0].barrier_seconds[rank] for done in passes) for rank in ranks}
        travel = {rank: sum(done.reports[rank].travel_seconds for done in passes) for rank in ranks}
        for metric, values in ((m.BARRIER, barrier), (m.TRAVEL, travel)):
            yield measured.sample(metric, sum(values.values()) / len(values) / len(passes))
            for node, value in by_node(values, lambda rank: self.seats[rank].node.name).items():
                yield measured.sample(metric, value / len(passes), node=node)

    def _wires(self, measured: Measured[Pass], iterations: int) -> Iterator[Sample]:
        """Bytes at the first server's network interface: predicted, and counted there."""
        predicted = sum(
            report.steps * self.step_bytes(rank)
            for done in measured.results
            for rank, report in enumerate(done.reports)
        )
        predicted /= iterations
        yield measured.sample(m.WIRE_PREDICTED, predicted)
        counted = sum(done.tallies[0].network_bytes for done in measured.results) / iterations
        # Without a network of its own a node's packets take the loopback, which is not counted.
        yield sample(
            measured,
            m.WIRE,
            counted,
            "the nodes have no network of their own" if predicted and counted < predicted / 10 else None,
        )

    def step_bytes(self, rank: int) -> float:
        """For one step of one worker: what must enter and leave the first server's node."""
        params, here = self.params, self.server_nodes[0]
        length = models.PARAMETERS[params.model] + models.STATISTICS[params.model]
        return sum(
            wire.round_trip_bytes(params.transport, length=part.stop - part.start, tensors=models.TENSORS[params.model])
            for node, part in zip(self.server_nodes, wire.parts(length, params.servers), strict=True)
            if (self.seats[rank].node == here) != (node == here)
        )

    def _outcomes(self, examiner: Examiner) -> Iterator[Sample]:
        """What the last training of each arm came to: curves, the target, and whether it was one at all."""
        found: dict[str, Reached | None] = {}
        for arm in m.ARMS:
            if arm == m.UNWATCHED or arm.name not in self.kept:
                continue
            measured, snapshots = self.kept[arm.name], self.snapshots[arm.name]
            processes = self.params.workers if arm == m.GLOO else 1
            evaluated = examiner.evaluate(snapshots, processes=processes)
            if problem := examiner.fault(evaluated):
                self.context.invalid(f"{arm.name}: {problem}")
            yield from curves(measured, evaluated)
            target = self.params.target(arm)
            found[arm.name] = reached(evaluated, target, self._samples_an_iteration(arm))
            yield from target_samples(measured, evaluated, target, found[arm.name])
            if arm == m.ONE_WORKER:
                base = evaluated
        for arm in (m.SYNC, m.ASYNC):
            # The base takes this arm's target: in the study that of asynchronous training is another one.
            of_base = reached(base, self.params.target(arm), self._samples_an_iteration(m.ONE_WORKER))
            yield from speed_ups(self.kept[arm.name], of_base, found[arm.name])
        self._same_weights()

    def _samples_an_iteration(self, arm: Arm) -> int:
        is_one = arm in (m.ASYNC, m.ONE_WORKER, m.ONE_THREAD, m.ALL_THREADS)
        return self.params.batch * (1 if is_one else self.params.workers)

    def _same_weights(self) -> None:
        """Declare what synchronous training must give everywhere."""
        params, context = self.params, self.context
        way = "compressed " if params.transport == "compressed" else ""
        rest = f"batch {params.batch}, rate {params.learning_rate:g}, momentum {params.momentum:g}, seed {self.seed}"
        for arm, workers in ((m.SYNC, params.workers), (m.UNWATCHED, params.workers), (m.ONE_WORKER, 1)):
            last = self.snapshots[arm.name][-1]
            context.same_everywhere(
                f"parameter-server: weights of {params.model} after {last.iteration} {way}synchronous iterations of"
                f" {workers} workers on {params.data}, {rest}",
                sha256(last.state.tobytes()).hexdigest(),
            )


def _staleness(measured: Measured[Pass]) -> Iterator[Sample]:
    """How many updates behind the gradients were."""
    counts = sum((done.tallies[0].staleness for done in measured.results), start=Counter[int]())
    total = sum(counts.values())
    yield measured.sample(m.STALENESS_MEAN, sum(behind * count for behind, count in counts.items()) / total)
    yield measured.sample(m.REFUSED, sum(done.tallies[0].refused for done in measured.results) / len(measured.results))
    for behind, count in sorted(counts.items()):
        yield measured.sample(m.STALENESS, count / total, step=float(behind))
