"""Tune: hyperparameter search on handwritten digits with TensorFlow, by Ray Tune."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic
from typing import Annotated, Literal

from msgspec import Meta

from bench.context import Context, Measured, NodeSlot
from bench.data import images
from bench.errors import BadInput, DoesNotFit
from bench.experiments import Profile
from bench.experiments.tune.ledger import Ledger
from bench.experiments.tune.metrics import (
    ACCURACY,
    HELD_OUT_ACCURACY,
    METRICS,
    of_empty_trials,
    of_peer,
    of_pool,
    of_search,
)
from bench.experiments.tune.numbers import TrialRun, cap, most_at_once
from bench.experiments.tune.peers import Peers, start_peers
from bench.experiments.tune.search import Found, Plan, Scheduler, Searcher
from bench.experiments.tune.space import LEAST_HIDDEN, Search, configurations, fingerprint
from bench.experiments.tune.storage import storage
from bench.experiments.tune.training import Config, Course, Report
from bench.model import Arm, Interval, Sample, Topology, Value

__all__ = ["ARMS", "METRICS", "PROFILES", "Params", "check_fits", "data_sets", "guess_pass_seconds", "run"]

Source = Literal["mnist-small", "mnist", "synthetic"]
JudgedBy = Literal["training", "held-out"]

RAY = Arm(name="ray", help="Ray Tune: a trial is an actor.", role="subject")
EMPTY_TRIALS = Arm(
    name="empty-trials", help="As many trials of Tune that say one thing and learn nothing.", role="calls"
)
SEQUENTIAL = Arm(name="sequential", help="The same trials, one after another in one new process of the first node.")
POOL = Arm(
    name="pool",
    help="The same trials, those of Optuna too, in a new multiprocessing.Pool on each node, dealt out by CPUs.",
)
ARMS = (RAY, EMPTY_TRIALS, SEQUENTIAL, POOL)


ENOUGH_IMAGES = 300_000  # to learn from, until the default target is reached


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    samples: Annotated[int, Meta(ge=1, le=1_000, description="Trials of one search.", extra={"unit": "TRIALS"})] = 10
    cpus_per_trial: Annotated[
        int, Meta(ge=1, le=64, description="What Tune reserves for a trial.", extra={"unit": "CPUS"})
    ] = 1
    threads: Annotated[
        int,
        Meta(ge=0, le=64, description="TensorFlow's, in a trial; 0: as many as its CPUs.", extra={"unit": "THREADS"}),
    ] = 0
    search: Annotated[Search, Meta(description="How configurations are chosen.")] = "random"
    scheduler: Annotated[
        Scheduler, Meta(description="Who ends trials early: nobody, ASHA; or PBT, which changes them.")
    ] = "fifo"
    max_iterations: Annotated[
        int, Meta(ge=1, le=10_000, description="Of a trial, at most.", extra={"unit": "ITERATIONS"})
    ] = 100
    target_accuracy: Annotated[
        float, Meta(ge=0.1, le=1.0, description="At which a trial ends.", extra={"unit": "SHARE"})
    ] = 0.99
    judged_by: Annotated[JudgedBy, Meta(description="Whose accuracy must reach the target; both are recorded.")] = (
        "training"
    )
    iteration_samples: Annotated[
        int,
        Meta(
            ge=128, le=1_000_000, description="Trained on in one iteration, whatever the set.", extra={"unit": "IMAGES"}
        ),
    ] = 12_000
    batch: Annotated[
        int, Meta(ge=1, le=10_000, description="In one step of the training.", extra={"unit": "IMAGES"})
    ] = 128
    hidden_below: Annotated[
        int, Meta(ge=33, le=4_096, description="The hidden layer has from 32 to one less.", extra={"unit": "UNITS"})
    ] = 512
    data: Annotated[Source, Meta(description="4,000 digits, all of MNIST (seeded), or made-up images.")] = "mnist-small"
    reuse_actors: Annotated[bool, Meta(description="Give an actor the next trial when it has done one.")] = True
    report_seconds: Annotated[
        float,
        Meta(
            ge=0.0,
            le=60.0,
            description="Between a trial's reports; 0, ASHA, PBT and checkpoints: one an iteration.",
            extra={"unit": "SECONDS"},
        ),
    ] = 0.5
    checkpoint_every: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description="Between checkpoints; 0: none, but for PBT's own.",
            extra={"unit": "ITERATIONS"},
        ),
    ] = 0
    checkpoint_path: Annotated[
        str, Meta(description="Where checkpoints go; empty: a temporary folder of the head.", extra={"unit": "FOLDER"})
    ] = ""

    def __post_init__(self) -> None:
        if self.batch > self.iteration_samples:
            raise BadInput(
                f"A batch of {self.batch} does not fit into {self.iteration_samples} images.",
                "Lower batch, or raise iteration_samples.",
            )
        if self.search == "optuna" and self.scheduler == "pbt":
            raise BadInput("PBT changes what Optuna has chosen.", "Take search=random, or another scheduler.")

    @property
    def threads_per_trial(self) -> int:
        return self.threads or self.cpus_per_trial

    @property
    def is_resumable(self) -> bool:
        """Whether a trial does not depend on those before: what is left can then be done without them."""
        return self.search != "optuna" and self.scheduler == "fifo"

    @property
    def is_repeatable(self) -> bool:
        """Whether each trial comes to the same, bit by bit, wherever and with whomever it runs."""
        return self.is_resumable and self.threads_per_trial == 1

    @property
    def is_dealt_again(self) -> bool:
        """Whether what Optuna chose comes to the same, bit by bit, when the pool does it."""
        return self.search == "optuna" and self.scheduler == "fifo" and self.threads_per_trial == 1


_LADDER: tuple[Mapping[str, tuple[Value, ...]], ...] = (
    {"samples": (10,), "cpus_per_trial": (1,)},
    {"samples": (16,), "cpus_per_trial": (1, 2)},
)
PROFILES = {
    "tiny": Profile(
        help="A minute and a half a block: 4 trials of small networks.",
        grids=({"samples": (4,), "hidden_below": (64,), "max_iterations": (24,)},),
        blocks=6,
        warmups=0,
        samples=1,
        sample_seconds=0.1,
    ),
    "lab": Profile(
        help="The study's ladder: 10 trials, 16 trials, 16 trials of 2 CPUs each. Needs nodes of 2 CPUs.",
        grids=_LADDER,
        blocks=6,
        warmups=0,
        samples=2,
        sample_seconds=1.0,
        deadline_seconds=4 * 3600.0,
    ),
    "full": Profile(
        help="As lab, and other searches and schedulers, new actors for each trial, and made-up images.",
        grids=(
            *_LADDER,
            {"samples": (16,), "search": ("grid", "optuna")},
            {"samples": (16,), "scheduler": ("asha", "pbt")},
            {"samples": (16,), "reuse_actors": (False,)},
            {"samples": (16,), "threads": (2,)},  # the study's: two threads on one CPU
            {"samples": (16,), "data": ("synthetic",)},
        ),
        blocks=12,
        warmups=0,
        samples=2,
        sample_seconds=1.0,
        deadline_seconds=4 * 3600.0,
    ),
}


def check_fits(params: Params, topology: Topology) -> None:
    """Raise DoesNotFit where a trial is larger than a node: Tune would wait for one for ever."""
    if params.cpus_per_trial > topology.cpus_per_node:
        raise DoesNotFit(
            f"A trial of tune needs {params.cpus_per_trial} CPUs on one node, and a node of {topology.name}"
            f" has {topology.cpus_per_node}.",
            f"Give more --cpus, or --topology single, or --set cpus_per_trial={topology.cpus_per_node}.",
        )


def busy_workers(params: Params, topology: Topology) -> int:
    """The threads of all trials that there is room for."""
    trials = cap([topology.cpus_per_node] * topology.nodes, params.cpus_per_trial)
    return min(trials, params.samples) * (params.threads or params.cpus_per_trial)


def data_sets(params: Params) -> tuple[str, ...]:
    """The sets that a run needs."""
    return (params.data,)


def guess_pass_seconds(params: Params) -> float:
    """All arms once, on two cores: TensorFlow is imported three times over, and most trials reach their target soon."""
    until_target = ENOUGH_IMAGES if params.target_accuracy < 1 else math.inf
    images_of_trial = min(params.max_iterations * params.iteration_samples, until_target)
    image_seconds = 2e-6 + 3.3e-8 * (LEAST_HIDDEN + params.hidden_below) / 2
    return 15.0 + 2.0 * params.samples * images_of_trial * image_seconds


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: the whole search, by every arm in each turn."""
    seed = context.seed
    context.data(params.data, images.checksum(params.data, seed))
    configs = configurations(params.search, params.samples, seed=seed, hidden_below=params.hidden_below)
    kind = f"{params.search}, {params.samples} trials, hidden below {params.hidden_below}, seed {seed}"
    context.same_everywhere(f"tune: configurations of {kind}", fingerprint(configs))
    course = Course(
        batch=params.batch,
        iteration_samples=params.iteration_samples,
        max_iterations=params.max_iterations,
        target=params.target_accuracy,
        judged_by=params.judged_by,
        threads=params.threads_per_trial,
        seed=seed,
    )
    with ExitStack() as ends:
        bench = _start(params, context, course, configs, ends)
        for bench.turn, turn in enumerate(context.turns(), start=1):
            for arm in order(turn.order(ARMS), params.search):
                bench.arm = arm
                measured = turn.measure(arm, bench.work, bench.results_of_nodes)
                bench.judge(measured.results)
                yield from bench.samples(measured)
                losses = lost(bench.nodes, context.nodes)
                for name in losses:
                    context.invalid(f"node {name}, or the probe on it, was lost during the run")
                if losses:
                    return  # the arms that are left would be compared with a larger cluster


def order(arms: Sequence[Arm], search: Search) -> list[Arm]:
    """The arms of a turn. A pool is dealt its trials beforehand: what Optuna chose is known after Ray's search alone."""
    found = list(arms)
    if search == "optuna" and {RAY, POOL} <= set(found):
        places = sorted([found.index(RAY), found.index(POOL)])
        found[places[0]], found[places[1]] = RAY, POOL
    return found


def lost(nodes: Sequence[NodeSlot], watched: Sequence[NodeSlot]) -> list[str]:
    """The nodes that have left the cluster. Ray takes its time to say so: the probe on one is silent before."""
    import ray

    alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]} & {node.node_id for node in watched}
    return [node.name for node in nodes if node.node_id not in alive]


@dataclass(kw_only=True)
class _Workbench:
    """The arms at work: what they all need, and what must be the same of all."""

    params: Params
    context: Context
    nodes: Sequence[NodeSlot]  # at the beginning: one that is lost has still done what it did
    course: Course
    configs: Sequence[Config]
    searcher: Searcher
    peers: Peers
    ledger: Ledger
    began: float = 0.0  # the search that is watched
    turn: int = 0
    done: int = 0  # trials of that search
    arm: Arm = RAY  # whose go it is
    chosen: Sequence[Config] = ()  # of Ray's last search

    def work(self) -> Found:
        """One search by the arm whose go it is."""
        params, items = self.params, list(enumerate(self.configs))
        if self.arm == RAY:
            self.began, self.done = monotonic(), 0
            kept = self.ledger.kept(self.turn, self.configs) if params.is_resumable else []
            if kept:
                self.context.reuses_work()
            found = self.searcher.search(self.configs, self._plan(), self, kept=kept)
            self.chosen = [trial.config for trial in found.trials]
            return found
        if self.arm == EMPTY_TRIALS:
            return self.searcher.search_empty(self.configs, self._plan())
        if self.arm == POOL:
            return self.peers.in_pools(
                list(enumerate(self.chosen)) if params.search == "optuna" else items, self.course
            )
        if params.search == "optuna":
            return self.peers.by_optuna(params.samples, params.hidden_below, self.course)
        return self.peers.one_after_another(items, self.course)

    def results_of_nodes(self, found: Found) -> Mapping[str, float]:
        """How many results came from each node in this attempt."""
        counts = dict.fromkeys((node.name for node in self.nodes), 0.0)
        for trial in found.new_trials:
            for report in trial.done:
                counts[report.node] += 1
        return counts

    def judge(self, searches: Sequence[Found]) -> None:
        """What every search must be: all trials, none of them lost on the way, and the same results by every arm."""
        params = self.params
        for found in searches:
            if len(found.trials) != params.samples:
                self.context.invalid(f"{self.arm.name} did {len(found.trials)} of {params.samples} trials")
            room = cap([node.cpus for node in self.nodes], params.cpus_per_trial)
            # Trials that an earlier attempt did have the times of another clock.
            if self.arm == RAY and not found.kept and (together := most_at_once(found.trials)) > room:
                self.context.invalid(f"{together} trials trained at once, and the nodes have room for {room}")
            if found.failures:
                self.context.invalid(
                    f"{self.arm.name}: {found.failures} times a trial lost its actor or its node and was done again"
                )
            if params.is_repeatable and self.arm != EMPTY_TRIALS:
                self.context.same_everywhere(
                    f"tune: what came of {params.samples} trials, {self.course}", digest(found)
                )
            elif params.is_dealt_again and self.arm in (RAY, POOL):
                chosen = fingerprint([trial.config for trial in found.trials])
                self.context.same_everywhere(f"tune: what came of trials {chosen}, {self.course}", digest(found))

    def samples(self, measured: Measured[Found]) -> Iterator[Sample]:
        """What the searches of the arm whose go it was come to."""
        each = self.params.cpus_per_trial
        if self.arm == RAY:
            return of_search(measured, self.course, self.nodes, cpus_per_trial=each)
        if self.arm == POOL:
            return of_pool(measured, self.nodes, cpus_per_trial=each)
        return of_empty_trials(measured) if self.arm == EMPTY_TRIALS else of_peer(measured)

    def _plan(self) -> Plan:
        params = self.params
        return Plan(
            search=params.search,
            scheduler=params.scheduler,
            samples=params.samples,
            hidden_below=params.hidden_below,
            cpus_per_trial=params.cpus_per_trial,
            reuse_actors=params.reuse_actors,
            checkpoint_every=params.checkpoint_every,
            report_seconds=params.report_seconds,
        )

    def said(self, number: int, report: Report) -> None:
        """Keep a trial's accuracies while the search goes on."""
        for metric, value in ((ACCURACY, report.training_accuracy), (HELD_OUT_ACCURACY, report.held_out_accuracy)):
            self.context.record(
                Sample(
                    metric=metric.name,
                    unit=metric.unit,
                    value=value,
                    interval=Interval(self.began, monotonic()),
                    arm=RAY.name,
                    point=f"trial-{number:02d}",
                    step=report.iteration,
                    of_many=True,
                )
            )

    def ended(self, trial: TrialRun) -> None:
        """Write down that a trial is done, and how far the search is."""
        self.ledger.write(self.turn, trial)
        self.done += 1
        self.context.progress(self.done, self.params.samples)


def digest(found: Found) -> str:
    """A checksum of what every trial said of its accuracy."""
    said = [(trial.number, [report.training_accuracy for report in trial.reports]) for trial in found.trials]
    return sha256(repr(said).encode()).hexdigest()


def _start(params: Params, context: Context, course: Course, configs: Sequence[Config], ends: ExitStack) -> _Workbench:
    """All that the arms need, on every node."""
    import ray
    import ray.tune  # here, for it takes seconds, which are no part of the first search

    # Which node gets how many trials is Tune's choice, and one of the things that are measured: it gives all of them to the
    # first actor that is ready, if they are short.
    nodes = tuple(context.nodes)
    context.leaves_idle([node.name for node in nodes])
    context.expects_losses()  # Tune has the trials of a lost node done elsewhere: they are counted, and the run is invalid
    keeps_checkpoints = params.checkpoint_every > 0 or params.scheduler == "pbt"
    folder = ends.enter_context(storage(params.checkpoint_path, nodes, is_shared=keeps_checkpoints))
    held = ray.put(images.load(params.data, context.seed, "uint8"))
    peers = start_peers(nodes, held, course, cpus_per_trial=params.cpus_per_trial)
    ends.callback(peers.processes.close)
    names = {node.node_id: node.name for node in nodes}
    return _Workbench(
        params=params,
        context=context,
        nodes=nodes,
        course=course,
        configs=configs,
        searcher=Searcher(images=held, course=course, nodes=names, storage=folder),
        peers=peers,
        ledger=Ledger(folder=context.folder, earlier=context.earlier, course=course),
    )
