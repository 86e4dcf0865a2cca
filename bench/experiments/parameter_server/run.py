"""Runs one invocation: every arm's training in turn, what it came to, and what must be equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from bench.context import Context, Measured
from bench.data import images
from bench.errors import RunInvalid
from bench.experiments.parameter_server import arms, checkpoints, models, training, wire
from bench.experiments.parameter_server import metrics as m
from bench.experiments.parameter_server.evaluation import (
    Evaluated,
    Examiner,
    TimeToTarget,
    by_node,
    curves,
    sample,
    share_apart,
    speed_ups,
    target_samples,
    time_to_target,
)
from bench.experiments.parameter_server.learner import Learner
from bench.experiments.parameter_server.params import Params
from bench.experiments.parameter_server.server import TrainingPlan
from bench.experiments.parameter_server.training import Trainers, TrainingPass
from bench.experiments.toolkit import parts
from bench.experiments.toolkit.placement import places
from bench.model import Arm, Sample

SAME_WEIGHTS = 1e-3  # of their change in one iteration, by which gloo's may differ: it adds up in another order
SEEDS_APART = 1_000  # those of one block and the next


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: servers and workers start, then every arm trains from the same weights in each turn."""
    yield from Study(params, context).run()


class Study:
    """What `params` ask for, in one place."""

    def __init__(self, params: Params, context: Context) -> None:
        self.params = params
        self.context = context
        # Weights and the order of batches are drawn anew in each block, or its repeats would all need the same (R18).
        self.seed = context.seed + SEEDS_APART * (context.block - 1)
        self.places = places(params.workers, context.nodes)
        usable = [node for node in context.nodes if node.cpus > 0]
        self.server_nodes = [usable[shard % len(usable)] for shard in range(params.servers)]
        self.cpus = sum(node.cpus for node in usable)
        # Of the last turn of each arm that counts:
        self.measured: dict[str, Measured[TrainingPass]] = {}
        self.evaluated: dict[str, Sequence[Evaluated]] = {}
        self.last: dict[str, tuple[int, str]] = {}  # its last iteration, and the checksum of the weights after it

    def run(self) -> Iterator[Sample]:
        """Start, measure in turns, then evaluate what was trained."""
        params, context = self.params, self.context
        held = images.load(params.data, context.seed, "uint8")
        context.data(params.data, images.checksum(params.data, context.seed))
        learner = Learner(params.model, self.seed)
        context.leaves_idle([node.name for node in context.nodes if node not in [place.node for place in self.places]])
        with ExitStack() as ends:
            started = context.time_once(arms.SYNC.name, partial(self._start, held, learner))
            trainers = started.results[0]
            ends.callback(trainers.close)
            yield started.sample(m.STARTUP, started.interval.seconds)
            yield started.sample(m.CROWDING, params.workers / self.cpus)
            yield from self._warm_up(trainers)
            work = self._work(trainers)
            examiner = Examiner(learner, held.test_x, held.test_y)
            for turn in context.turns():
                for arm in turn.order(arms.ARMS):
                    if arm == arms.GLOO:
                        trainers.join_peers()  # again, where a worker was replaced
                    measured = turn.measure(arm, work[arm.name], lambda done: done.samples_by_node)
                    yield from self._samples(arm, measured)
                    if not turn.warmup:
                        self._evaluate(arm, measured, examiner)
        yield from self._evaluations()

    def _start(self, held: images.Images, learner: Learner) -> Trainers:
        """Servers and workers that are ready. Raises RunInvalid where threads are not what they should be (P03)."""
        import ray

        trainers = training.Trainers(
            params=self.params,
            seed=self.seed,
            learner=learner,
            images=ray.put(held.train_x),
            classes=ray.put(held.train_y),
            places=self.places,
            server_nodes=self.server_nodes,
            folder=self.context.folder / "checkpoints",
        )
        threads, asked = trainers.ready(), [place.threads for place in self.places]
        if threads != asked:
            trainers.close()
            raise RunInvalid(f"Workers compute with {threads} threads, not {asked}.")
        return trainers

    def _warm_up(self, trainers: Trainers) -> Iterator[Sample]:
        """One iteration by each transport between processes, which opens their connections; gives how far apart the weights are.

        After many iterations they may be anything: what differs in the last digit grows.
        """
        plan = replace(self._plan("sync", self.params.workers), iterations=1, checkpoint_every=0)
        if not self.context.wants(arms.GLOO):
            self.context.time_once(arms.SYNC.name, lambda: trainers.train(plan, name="warm-up"))
            return
        trainers.join_peers()
        once = self.context.time_once(
            arms.SYNC.name, lambda: (trainers.train(plan, name="warm-up"), trainers.together(plan))
        )
        ours, theirs = (done.snapshots()[-1].state[: trainers.parameters] for done in once.results[0])
        if self.params.transport == "compressed":
            yield once.missing(m.WEIGHTS_APART, "half precision gives other weights, as it must")
            return
        apart = share_apart(ours, theirs, trainers.initial[: trainers.parameters])
        if not apart <= SAME_WEIGHTS:
            self.context.invalid(
                f"after one iteration the weights of {arms.SYNC.name} and {arms.GLOO.name} are {apart:.2g} of their change"
                f" apart, and {SAME_WEIGHTS:g} is allowed"
            )
        yield once.sample(m.WEIGHTS_APART, apart)

    def _work(self, trainers: Trainers) -> Mapping[str, Callable[[], TrainingPass]]:
        """How each arm trains once."""
        params, alone = self.params, self._plan("sync", 1)
        start = None
        if params.resume:
            length = len(trainers.initial)
            start = checkpoints.read(Path(params.resume), length=length, parameters=trainers.parameters)
        sync = partial(
            trainers.train,
            self._plan("sync", params.workers, begin=start.iteration if start else 0),
            name=arms.SYNC.name,
            progress=self.context.progress,
            start=start,
        )
        return {
            arms.SYNC.name: sync,
            arms.UNWATCHED.name: sync,
            arms.ASYNC.name: partial(
                trainers.train,
                self._plan("async", params.workers),
                name=arms.ASYNC.name,
                progress=self.context.progress,
            ),
            arms.ONE_WORKER.name: partial(trainers.train, alone, name=arms.ONE_WORKER.name),
            arms.ONE_THREAD.name: partial(trainers.alone, alone, 1),
            arms.ALL_THREADS.name: partial(trainers.alone, alone, self.places[0].node.threads),
            arms.GLOO.name: partial(trainers.together, alone),
        }

    def _plan(self, mode: str, workers: int, begin: int = 0) -> TrainingPlan:
        params = self.params
        return TrainingPlan(
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

    def _samples(self, arm: Arm, measured: Measured[TrainingPass]) -> Iterator[Sample]:
        """What the passes of one turn say by themselves, without an evaluation of the weights."""
        passes, seconds = measured.results, measured.interval.seconds
        yield measured.sample(m.THROUGHPUT, sum(done.samples for done in passes) / seconds)
        if arm not in arms.RAY_ARMS:
            return
        iterations = sum(done.iterations for done in passes)
        slowest = [max(counts.update_seconds for counts in done.all_counts) for done in passes]
        busiest = [max(counts.cpu_seconds for counts in done.all_counts) for done in passes]
        yield measured.sample(m.SERVER_UPDATE, sum(slowest) / iterations)
        yield measured.sample(m.SERVER_SHARE, sum(busiest) / seconds)
        yield measured.sample(m.REPLACED, sum(done.replaced for done in passes) / len(passes))
        yield measured.sample(m.LOST, sum(done.lost_seconds for done in passes) / len(passes))
        yield measured.sample(parts.ROUND_TRIPS, iterations)
        yield from parts.work_samples(measured, self._rounds(arm, passes))
        yield from self._waits(measured)
        yield from self._wires(measured, iterations)
        yield from _staleness(measured)

    def _rounds(self, arm: Arm, passes: Sequence[TrainingPass]) -> Iterator[list[parts.WorkDone]]:
        """Synchronous workers wait for each other at every step, the others at the end alone."""
        for done in passes:
            steps = zip(*(report.busy for report in done.reports), strict=False)  # a worker that died did fewer
            whole = [tuple(sum(report.busy) for report in done.reports)]
            for times in whole if arm == arms.ASYNC else steps:
                yield [
                    parts.WorkDone(
                        node=self.places[rank].node.name,
                        busy_seconds=seconds,
                        units=done.reports[rank].steps if arm == arms.ASYNC else 1,
                    )
                    for rank, seconds in enumerate(times)
                ]

    def _waits(self, measured: Measured[TrainingPass]) -> Iterator[Sample]:
        """Where the workers' time went, by node."""
        passes = measured.results
        ranks = range(len(passes[0].reports))
        barrier = {rank: sum(done.all_counts[0].barrier_seconds[rank] for done in passes) for rank in ranks}
        travel = {rank: sum(done.reports[rank].travel_seconds for done in passes) for rank in ranks}
        for metric, values in ((m.BARRIER, barrier), (m.TRAVEL, travel)):
            yield measured.sample(metric, sum(values.values()) / len(values) / len(passes))
            for node, value in by_node(values, lambda rank: self.places[rank].node.name).items():
                yield measured.sample(metric, value / len(passes), node=node)

    def _wires(self, measured: Measured[TrainingPass], iterations: int) -> Iterator[Sample]:
        """Bytes at the first server's network interface: predicted, and counted there."""
        predicted = sum(
            report.steps * self.step_bytes(rank)
            for done in measured.results
            for rank, report in enumerate(done.reports)
        )
        predicted /= iterations
        yield measured.sample(m.WIRE_PREDICTED, predicted)
        counted = sum(done.all_counts[0].network_bytes for done in measured.results) / iterations
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
            if (self.places[rank].node == here) != (node == here)
        )

    def _evaluate(self, arm: Arm, measured: Measured[TrainingPass], examiner: Examiner) -> None:
        """Evaluate what `arm` has trained while its states are kept: the next training takes their place."""
        snapshots = measured.results[-1].snapshots()
        self.measured[arm.name] = measured
        last = snapshots[-1]
        self.last[arm.name] = last.iteration, sha256(last.state.tobytes()).hexdigest()
        if arm == arms.UNWATCHED:
            return
        processes = self.params.workers if arm == arms.GLOO else 1
        self.evaluated[arm.name] = examiner.evaluate(snapshots, processes=processes)
        if problem := examiner.fault(self.evaluated[arm.name]):
            self.context.invalid(f"{arm.name}: {problem}")

    def _evaluations(self) -> Iterator[Sample]:
        """What the last training of each arm came to: curves, the target, and whether it was one at all."""
        found: dict[str, TimeToTarget | None] = {}
        base: Sequence[Evaluated] = ()
        for arm in arms.ARMS:
            if arm.name not in self.evaluated:
                continue
            measured, evaluated = self.measured[arm.name], self.evaluated[arm.name]
            yield from curves(measured, evaluated)
            target = self.params.target(arm)
            found[arm.name] = time_to_target(evaluated, target, self._samples_an_iteration(arm))
            yield from target_samples(measured, evaluated, target, found[arm.name])
            if arm == arms.ONE_WORKER:
                base = evaluated
        for arm in (arms.SYNC, arms.ASYNC):
            if not base or arm.name not in found:
                continue  # not measured
            # The base takes this arm's target: in the study that of asynchronous training is another one.
            of_base = time_to_target(base, self.params.target(arm), self._samples_an_iteration(arms.ONE_WORKER))
            yield from speed_ups(self.measured[arm.name], of_base, found[arm.name])
        self._same_weights()

    def _samples_an_iteration(self, arm: Arm) -> int:
        is_one = arm in (arms.ASYNC, arms.ONE_WORKER, arms.ONE_THREAD, arms.ALL_THREADS)
        return self.params.batch * (1 if is_one else self.params.workers)

    def _same_weights(self) -> None:
        """Declare what synchronous training must give everywhere."""
        params, context = self.params, self.context
        kind = "compressed " if params.transport == "compressed" else ""
        rest = f"batch {params.batch}, rate {params.learning_rate:g}, momentum {params.momentum:g}, seed {self.seed}"
        for arm, workers in ((arms.SYNC, params.workers), (arms.UNWATCHED, params.workers), (arms.ONE_WORKER, 1)):
            if arm.name not in self.last:
                continue
            iteration, digest = self.last[arm.name]
            context.same_everywhere(
                f"parameter-server: weights of {params.model} after {iteration} {kind}synchronous iterations of"
                f" {workers} workers on {params.data}, {rest}",
                digest,
            )


def _staleness(measured: Measured[TrainingPass]) -> Iterator[Sample]:
    """How many updates behind the gradients were."""
    counts = sum((done.all_counts[0].staleness for done in measured.results), start=Counter[int]())
    total = sum(counts.values())
    yield measured.sample(m.STALENESS_MEAN, sum(behind * count for behind, count in counts.items()) / total)
    yield measured.sample(
        m.REFUSED, sum(done.all_counts[0].refused for done in measured.results) / len(measured.results)
    )
    for behind, count in sorted(counts.items()):
        yield measured.sample(m.STALENESS, count / total, step=float(behind))
