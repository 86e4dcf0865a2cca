"""Runs one invocation: the whole search by every arm in each turn, and what must be equal in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from time import monotonic

from bench.context import Context, Measured, NodeSlot
from bench.data import images
from bench.experiments.toolkit.journal import Journal
from bench.experiments.tune import arms, metrics
from bench.experiments.tune.params import Params
from bench.experiments.tune.peers import TuningPeers, start_peers
from bench.experiments.tune.search import Searcher, SearchResult
from bench.experiments.tune.space import configurations, fingerprint
from bench.experiments.tune.storage import storage
from bench.experiments.tune.training import Config, IterationReport, TrainingSettings
from bench.experiments.tune.trials import TrialRun, cap, most_at_once
from bench.model import Arm, Interval, Sample


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: the whole search, by every arm in each turn."""
    seed = context.seed
    context.data(params.data, images.checksum(params.data, seed))
    configs = configurations(params.search, params.trials, seed=seed, hidden_below=params.hidden_below)
    kind = f"{params.search}, {params.trials} trials, hidden below {params.hidden_below}, seed {seed}"
    context.same_everywhere(f"tune: configurations of {kind}", fingerprint(configs))
    with ExitStack() as ends:
        searches = _start(params, context, configs, ends)
        for number, turn in enumerate(context.turns(), start=1):
            searches.turn, searches.passes = number, 0
            for arm in arms.order(turn.order(arms.ARMS), params.search):
                measured = turn.measure(arm, partial(searches.do, arm), searches.results_of_nodes)
                searches.check(arm, measured.results)
                yield from searches.samples(arm, measured)
                lost = lost_nodes(searches.nodes, context.nodes)
                for name in lost:
                    context.invalid(f"node {name}, or the probe on it, was lost during the run")
                if lost:
                    return  # the arms that are left would be compared with a larger cluster


def lost_nodes(nodes: Sequence[NodeSlot], watched: Sequence[NodeSlot]) -> list[str]:
    """The nodes that have left the cluster. Ray reports that with a delay: the probe on one is silent before."""
    import ray

    alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]} & {node.node_id for node in watched}
    return [node.name for node in nodes if node.node_id not in alive]


@dataclass(kw_only=True)
class Searches:
    """The searches of one invocation, and what must be the same of all."""

    params: Params
    context: Context
    nodes: Sequence[NodeSlot]  # at the beginning: one that is lost has still done what it did
    training: TrainingSettings
    configs: Sequence[Config]
    searcher: Searcher
    peers: TuningPeers
    journal: Journal[TrialRun]
    turn: int = 0
    group: str = ""  # in the journal, of the search that goes on: its turn and pass
    begin: float = 0.0  # of that search
    ended_trials: int = 0  # of that search
    passes: int = 0  # of this turn, by Ray
    chosen: Sequence[Config] = field(default_factory=list)  # in Ray's last search

    def do(self, arm: Arm) -> SearchResult:
        """One search by `arm`."""
        params, items = self.params, list(enumerate(self.configs))
        if arm == arms.RAY:
            return self._search()
        if arm == arms.EMPTY_TRIALS:
            return self.searcher.search_empty(self.configs)
        if arm == arms.POOL:
            return self.peers.in_pools(list(enumerate(self.chosen)) if params.search == "optuna" else items)
        if params.search == "optuna":
            return self.peers.by_optuna(params.trials, params.hidden_below)
        return self.peers.one_after_another(items)

    def results_of_nodes(self, result: SearchResult) -> Mapping[str, float]:
        """How many results came from each node in this attempt."""
        counts = dict.fromkeys((node.name for node in self.nodes), 0.0)
        for trial in result.new_trials:
            for report in trial.done:
                counts[report.node] += 1
        return counts

    def check(self, arm: Arm, results: Sequence[SearchResult]) -> None:
        """What every search must be: all trials, none of them lost on the way, and the same results by every arm."""
        params = self.params
        for result in results:
            if len(result.trials) != params.trials:
                self.context.invalid(f"{arm.name} did {len(result.trials)} of {params.trials} trials")
            room = cap([node.cpus for node in self.nodes], params.cpus_per_trial)
            # Trials that an earlier attempt did have the times of another clock.
            if arm == arms.RAY and not result.reused and (together := most_at_once(result.trials)) > room:
                self.context.invalid(f"{together} trials trained at once, and the nodes have room for {room}")
            if result.failures:
                self.context.invalid(
                    f"{arm.name}: {result.failures} times a trial lost its actor or its node and was done again"
                )
            if params.is_repeatable and arm != arms.EMPTY_TRIALS:
                self.context.same_everywhere(
                    f"tune: what came of {params.trials} trials, {self.training}", digest(result)
                )
            elif params.is_dealt_again and arm in (arms.RAY, arms.POOL):
                chosen = fingerprint([trial.config for trial in result.trials])
                self.context.same_everywhere(f"tune: what came of trials {chosen}, {self.training}", digest(result))

    def samples(self, arm: Arm, measured: Measured[SearchResult]) -> Iterator[Sample]:
        """What the searches of `arm` come to."""
        cpus_per_trial = self.params.cpus_per_trial
        if arm == arms.RAY:
            return metrics.of_search(measured, self.training, self.nodes, cpus_per_trial=cpus_per_trial)
        if arm == arms.POOL:
            return metrics.of_pool(measured, self.nodes, cpus_per_trial=cpus_per_trial)
        return metrics.of_empty_trials(measured) if arm == arms.EMPTY_TRIALS else metrics.of_peer(measured)

    def reported(self, number: int, report: IterationReport) -> None:
        """Record a trial's accuracies while the search goes on."""
        for metric, value in (
            (metrics.ACCURACY, report.training_accuracy),
            (metrics.HELD_OUT_ACCURACY, report.held_out_accuracy),
        ):
            self.context.record(
                Sample(
                    metric=metric.name,
                    unit=metric.unit,
                    value=value,
                    interval=Interval(self.begin, monotonic()),
                    arm=arms.RAY.name,
                    point=f"trial-{number:02d}",
                    step=report.iteration,
                    of_many=True,
                )
            )

    def ended(self, trial: TrialRun) -> None:
        """Write down that a trial is done, and how far the search is."""
        self.journal.append(self.group, [trial])
        self.ended_trials += 1
        self.context.progress(self.ended_trials, self.params.trials)

    def _search(self) -> SearchResult:
        """Ray's search of those trials that no earlier attempt did."""
        self.passes += 1
        self.group, self.begin, self.ended_trials = f"{self.turn}/{self.passes}", monotonic(), 0
        reused = list(self.journal.done(self.group)) if self.params.is_resumable else []
        if reused:
            self.context.reuses_work()
        result = self.searcher.search(self.configs, self, reused=reused)
        self.chosen = [trial.config for trial in result.trials]
        return result


def digest(result: SearchResult) -> str:
    """A checksum of the accuracies that every trial reported."""
    accuracies = [(trial.number, [report.training_accuracy for report in trial.reports]) for trial in result.trials]
    return sha256(repr(accuracies).encode()).hexdigest()


def describe_work(training: TrainingSettings, configs: Sequence[Config]) -> str:
    """What two attempts have in common whose trials come to the same."""
    return f"{len(configs)} trials {fingerprint(configs)}, {training}"


def _start(params: Params, context: Context, configs: Sequence[Config], ends: ExitStack) -> Searches:
    """All that the arms need, on every node."""
    import ray
    import ray.tune  # here, for it takes seconds, which are no part of the first search

    # Which node gets how many trials is Tune's choice, and one of the things that are measured: it gives all of them to the
    # first actor that is ready, if they are short.
    nodes = tuple(context.nodes)
    context.leaves_idle([node.name for node in nodes])
    context.expects_losses()  # Tune has the trials of a lost node done elsewhere: they are counted, and the run is invalid
    training = TrainingSettings(
        batch=params.batch,
        iteration_samples=params.iteration_samples,
        max_iterations=params.max_iterations,
        target=params.target_accuracy,
        judged_by=params.judged_by,
        threads=params.threads_per_trial,
        seed=context.seed,
    )
    saves_checkpoints = params.checkpoint_every > 0 or params.scheduler == "pbt"
    folder = ends.enter_context(storage(params.checkpoint_path, nodes, is_shared=saves_checkpoints))
    image_reference = ray.put(images.load(params.data, context.seed, "uint8"))
    has_peers = context.wants(arms.SEQUENTIAL) or context.wants(arms.POOL)
    peers = start_peers(nodes if has_peers else (), image_reference, training, cpus_per_trial=params.cpus_per_trial)
    ends.callback(peers.processes.close)
    journal = Journal(
        context.folder,
        context.earlier,
        work=describe_work(training, configs),
        item=TrialRun,
        identity=lambda trial: trial.number,
    )
    return Searches(
        params=params,
        context=context,
        nodes=nodes,
        training=training,
        configs=configs,
        searcher=Searcher(
            params=params,
            images=image_reference,
            training=training,
            nodes={node.node_id: node.name for node in nodes},
            storage=folder,
        ),
        peers=peers,
        journal=ends.enter_context(journal),
    )
