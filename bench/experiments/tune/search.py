"""Searches by Ray Tune: trials are actors, which report how far they are; a trial collector keeps what they report."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bench.errors import RunInvalid
from bench.experiments.toolkit.environment import environment
from bench.experiments.tune.actor import trainable
from bench.experiments.tune.params import Params
from bench.experiments.tune.space import LEAST_HIDDEN, LR, MOMENTUM
from bench.experiments.tune.training import Config, IterationReport, TrainingSettings
from bench.experiments.tune.trials import TrialRun

RETRIES = 8  # of a trial whose actor, worker or node was lost; Tune counts one loss by every call that was under way, three or so
ONE_LOSS_SECONDS = 1.0  # in which failures of a trial are those calls'
SETTINGS = {  # Tune's own files and signs would cost time that is no part of a search; the record is ours
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "RAY_AIR_NEW_OUTPUT": "0",
}


class SearchListener(Protocol):
    """Follows a search, from a thread of its own: what is written to the disk must not hold up Tune's loop."""

    def reported(self, number: int, report: IterationReport) -> None:
        """A trial has done an iteration."""
        ...

    def ended(self, trial: TrialRun) -> None:
        """A trial has ended."""
        ...


@dataclass(kw_only=True)
class SearchResult:
    """What a search gave."""

    trials: list[TrialRun]
    begin: float  # driver's clock
    reused: frozenset[int] = frozenset()  # numbers of the trials that an earlier attempt had done
    # When each process of a node began to train, on the node's clock; and what the driver's clock is ahead of that.
    starts: dict[tuple[str, int], float] = field(default_factory=dict)
    clock_offsets: dict[str, float] = field(default_factory=dict)
    reached_at: float | None = None  # when a trial reached the target
    results: int = 0  # that were sent, each of an iteration or more
    result_bytes: int = 0  # of all of them, as they were sent

    @property
    def new_trials(self) -> list[TrialRun]:
        """The trials of this attempt."""
        return [trial for trial in self.trials if trial.number not in self.reused]

    @property
    def failures(self) -> int:
        return sum(trial.failures for trial in self.trials)

    @property
    def startup_seconds(self) -> list[float]:
        """Until each process began its first trial, the soonest first."""
        return sorted(since + self.clock_offsets[node] - self.begin for (node, _), since in self.starts.items())

    def trial(self, number: int, config: Config) -> TrialRun:
        """The trial of this number, which a search before this one may have begun."""
        known = next((trial for trial in self.trials if trial.number == number), None)
        if known is None:
            self.trials.append(known := TrialRun(number=number, config=config))
        return known

    def note_report(self, report: IterationReport, arrived: float, training: TrainingSettings) -> None:
        """Note when the process of `report` began, its node's clock (the quickest report is nearest), and the target."""
        self.starts.setdefault((report.node, report.process), report.begin)
        self.clock_offsets[report.node] = min(arrived - report.end, self.clock_offsets.get(report.node, math.inf))
        if report.accuracy(training.judged_by) >= training.target:
            self.reached_at = arrived if self.reached_at is None else min(arrived, self.reached_at)


@dataclass(frozen=True, kw_only=True)
class Searcher:
    """Ray Tune on this cluster."""

    params: Params
    images: Any  # their reference in the object store
    training: TrainingSettings
    nodes: Mapping[str, str]  # names of nodes by Ray's ids
    storage: Path

    def search(
        self, configs: Sequence[Config], listener: SearchListener, *, reused: Sequence[TrialRun] = ()
    ) -> SearchResult:
        """Have the trials done that are not `reused`. Raises RunInvalid where one could not be done within its retries."""
        numbers = frozenset(trial.number for trial in reused)
        missing = {number: config for number, config in enumerate(configs) if number not in numbers}
        result = SearchResult(trials=list(reused), reused=numbers, begin=time.monotonic())
        return self._run(missing, self.params, result, listener)

    def search_empty(self, configs: Sequence[Config]) -> SearchResult:
        """As many trials, each of which reports once and learns nothing."""
        params = replace(self.params, search="random", scheduler="fifo", checkpoint_every=0)
        return self._run(dict(enumerate(configs)), params, SearchResult(trials=[], begin=time.monotonic()), None)

    def _run(
        self, configs: Mapping[int, Config], params: Params, result: SearchResult, listener: SearchListener | None
    ) -> SearchResult:
        """Trials by their numbers; without a listener they are empty."""
        left = dict(configs)
        while left:
            with environment(SETTINGS), ThreadPoolExecutor(1, "tune-listener") as thread:
                collector = TrialCollector(result, self.training, self.nodes, list(left), listener, thread)
                errors = self._fit(left, params, collector)
            if collector.listener_errors:
                raise collector.listener_errors[0]
            if len(errors) > len(collector.given_up) or any(t.failures > RETRIES for t in collector.given_up):
                first = str(errors[0]).strip().splitlines()[-1]
                raise RunInvalid(
                    f"{len(errors)} of {params.trials} trials lost their actors again and again; the first: {first}"
                )
            # Tune retries no trial whose actor is lost while another trial hands it on: those are done anew, as chosen.
            left = {trial.number: trial.config for trial in collector.given_up}
            params = replace(params, search="random")
        result.trials.sort(key=lambda trial: trial.number)
        return result

    def _fit(self, configs: Mapping[int, Config], params: Params, collector: TrialCollector) -> list[Exception]:
        """One search by Tune, and what ended the trials that failed."""
        from ray import tune

        actor = tune.with_parameters(
            trainable(),
            images=[self.images],
            training=self.training,
            silent_seconds=params.report_seconds if params.is_silent else 0.0,
            is_empty=collector.listener is None,
        )
        results = tune.Tuner(
            tune.with_resources(actor, {"cpu": params.cpus_per_trial}),
            param_space=_space(params, list(configs.values())),
            tune_config=_tune_config(params, self.training),
            run_config=tune.RunConfig(
                storage_path=str(self.storage),
                name=f"search-{time.monotonic_ns()}",
                stop={"training_iteration": self.training.max_iterations},
                failure_config=tune.FailureConfig(max_failures=RETRIES),
                checkpoint_config=tune.CheckpointConfig(
                    checkpoint_frequency=params.checkpoint_every,
                    # Else Tune would save one at the end of every trial, in a folder that nodes may not share.
                    checkpoint_at_end=params.checkpoint_every > 0,
                    num_to_keep=None if params.scheduler == "pbt" else 2,  # PBT takes up older ones of other trials
                ),
                callbacks=[_callback(collector)],
                verbose=0,
            ),
        ).fit()
        return list(results.errors)


def _space(params: Params, configs: Sequence[Config]) -> dict[str, Any]:
    """What Tune draws from: the list itself, unless Optuna chooses."""
    from ray import tune

    if params.search == "optuna":
        return {
            "lr": tune.uniform(*LR),
            "momentum": tune.uniform(*MOMENTUM),
            "hidden": tune.randint(LEAST_HIDDEN, params.hidden_below),
        }
    return {"trial": tune.grid_search([asdict(config) for config in configs])}


def _tune_config(params: Params, training: TrainingSettings) -> Any:
    from ray import tune

    algorithm = None
    if params.search == "optuna":
        from ray.tune.search.optuna import OptunaSearch

        algorithm = OptunaSearch(seed=training.seed % 2**32)
    return tune.TuneConfig(
        metric="accuracy",
        mode="max",
        num_samples=params.trials if params.search == "optuna" else 1,
        search_alg=algorithm,
        scheduler=_scheduler(params, training),
        reuse_actors=params.reuse_actors,
    )


def _scheduler(params: Params, training: TrainingSettings) -> Any:
    from ray.tune import schedulers, uniform

    if params.scheduler == "asha":
        return schedulers.ASHAScheduler(
            max_t=training.max_iterations, grace_period=max(1, training.max_iterations // 10), reduction_factor=3
        )
    if params.scheduler == "pbt":
        return schedulers.PopulationBasedTraining(
            perturbation_interval=max(1, training.max_iterations // 5),
            hyperparam_mutations={"trial": {"lr": uniform(*LR), "momentum": uniform(*MOMENTUM)}},
            custom_explore_fn=_within_bounds,
        )
    return schedulers.FIFOScheduler()


def _within_bounds(config: dict[str, Any]) -> dict[str, Any]:
    """What PBT made of a configuration, kept to what a search may choose: it multiplies without looking."""
    trial = config["trial"]
    for name, (low, high) in (("lr", LR), ("momentum", MOMENTUM)):
        trial[name] = min(max(trial[name], low), high)
    return config


@dataclass
class TrialCollector:
    """Keeps what trials report in Tune's own loop, and passes it on to the listener."""

    result: SearchResult
    training: TrainingSettings
    nodes: Mapping[str, str]
    numbers: Sequence[int]  # of the trials, in the order in which Tune makes them
    listener: SearchListener | None
    listener_thread: ThreadPoolExecutor
    listener_errors: list[BaseException] = field(default_factory=list)
    given_up: list[TrialRun] = field(default_factory=list)  # by Tune, though retries were left
    _trials: dict[str, TrialRun] = field(default_factory=dict)  # by Tune's ids
    _lost: dict[int, float] = field(default_factory=dict)  # trial: when it last lost its actor

    def run_of(self, trial: Any) -> TrialRun:
        """What is kept of a trial of Tune's."""
        if trial.trial_id not in self._trials:
            config = Config(**trial.config.get("trial", trial.config))
            self._trials[trial.trial_id] = self.result.trial(self.numbers[len(self._trials)], config)
        return self._trials[trial.trial_id]

    def lose(self, trial: Any) -> None:
        """Count that a trial lost its actor: once, however many of its calls say so."""
        run, now = self.run_of(trial), time.monotonic()
        if now - self._lost.get(run.number, -math.inf) > ONE_LOSS_SECONDS:
            run.failures += 1
        self._lost[run.number] = now

    def take(self, trial: Any, reported: Mapping[str, Any], size_bytes: int) -> None:
        """Keep what a trial reports after an iteration, or several."""
        now, result, run = time.monotonic(), self.result, self.run_of(trial)
        result.results += 1
        result.result_bytes += size_bytes
        for fields in reported["reports"]:
            report = IterationReport(**{**fields, "node": self.nodes[fields["node"]]})
            run.take(report)
            result.note_report(report, now, self.training)
            if self.listener is not None:
                self._pass_on(self.listener.reported, run.number, report)

    def end(self, trial: Any) -> None:
        """A trial has ended well."""
        if self.listener is not None:
            self._pass_on(self.listener.ended, self.run_of(trial))

    def _pass_on(self, method: Callable[..., None], *arguments: Any) -> None:
        self.listener_thread.submit(method, *arguments).add_done_callback(self._note_error)

    def _note_error(self, done: Future[None]) -> None:
        if error := done.exception():
            self.listener_errors.append(error)


def _callback(collector: TrialCollector) -> Any:
    """What Tune calls."""
    from ray import cloudpickle
    from ray.tune import Callback

    class Caller(Callback):  # type: ignore[misc]
        def on_step_begin(self, **event: Any) -> None:
            for trial in event["trials"]:  # in the order in which they were made, which is that of the list
                collector.run_of(trial)

        def on_trial_result(self, **event: Any) -> None:
            collector.take(event["trial"], event["result"], len(cloudpickle.dumps(event["result"])))

        def on_trial_complete(self, **event: Any) -> None:
            collector.end(event["trial"])

        def on_trial_recover(self, **event: Any) -> None:
            collector.lose(event["trial"])

        def on_trial_error(self, **event: Any) -> None:
            collector.lose(event["trial"])
            if event["trial"].should_recover():
                collector.given_up.append(collector.run_of(event["trial"]))

        def __reduce__(self) -> Any:
            return Callback, ()  # Tune keeps its callbacks in a file; what this one holds is of this process

    return Caller()
