"""The search by Ray Tune: trials as actors, which say after each iteration how far they are."""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from bench.errors import RunInvalid
from bench.experiments.tune.actor import trainable
from bench.experiments.tune.numbers import TrialRun
from bench.experiments.tune.space import LEAST_HIDDEN, LR, MOMENTUM, Search
from bench.experiments.tune.training import Config, Course, Report

Scheduler = Literal["fifo", "asha", "pbt"]

RETRIES = 8  # of a trial whose actor, worker or node was lost; Tune counts one loss by every call that was under way, three or so
ONE_LOSS_SECONDS = 1.0  # in which failures of a trial are those calls'
SETTINGS = {  # Tune's own files and signs would cost time that is no part of a search; the record is ours
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "RAY_AIR_NEW_OUTPUT": "0",
}


class Listener(Protocol):
    """Who is told how a search goes on, from a thread of its own."""

    def said(self, number: int, report: Report) -> None:
        """A trial has done an iteration."""
        ...

    def ended(self, trial: TrialRun) -> None:
        """A trial has ended."""
        ...


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How Tune is to go about it."""

    search: Search
    scheduler: Scheduler
    samples: int
    hidden_below: int
    cpus_per_trial: int
    reuse_actors: bool
    checkpoint_every: int  # iterations; 0: never
    report_seconds: float  # between what a trial says; 0: it does so after each iteration

    @property
    def is_silent(self) -> bool:
        """Whether a trial may do several iterations before it says so: who ends or changes trials, or keeps them, may not wait."""
        return self.scheduler == "fifo" and not self.checkpoint_every


@dataclass(kw_only=True)
class Found:
    """What a search gave."""

    trials: list[TrialRun]
    began: float  # driver's clock
    kept: frozenset[int] = frozenset()  # numbers of the trials that an earlier attempt had done
    # When each process of a node began to train, on the node's clock; and what the driver's clock is ahead of that.
    places: dict[tuple[str, int], float] = field(default_factory=dict)
    clocks: dict[str, float] = field(default_factory=dict)
    reached: float | None = None  # when a trial reached the target
    results: int = 0  # that were sent, each of an iteration or more
    result_bytes: int = 0  # of all of them, as they were sent

    @property
    def new_trials(self) -> list[TrialRun]:
        """The trials of this attempt."""
        return [trial for trial in self.trials if trial.number not in self.kept]

    @property
    def failures(self) -> int:
        return sum(trial.failures for trial in self.trials)

    @property
    def startup_seconds(self) -> list[float]:
        """Until each process began its first trial, the soonest first."""
        return sorted(since + self.clocks[node] - self.began for (node, _), since in self.places.items())

    def trial(self, number: int, config: Config) -> TrialRun:
        """The trial of this number, which a search before this one may have begun."""
        known = next((trial for trial in self.trials if trial.number == number), None)
        if known is None:
            self.trials.append(known := TrialRun(number=number, config=config))
        return known

    def know(self, report: Report, arrived: float) -> None:
        """Note what `report` says of its process, and of its node's clock: the quickest report is nearest."""
        self.places.setdefault((report.node, report.process), report.begin)
        self.clocks[report.node] = min(arrived - report.end, self.clocks.get(report.node, math.inf))


@dataclass(frozen=True, kw_only=True)
class Searcher:
    """Ray Tune on this cluster."""

    images: Any  # their reference in the object store
    course: Course
    nodes: Mapping[str, str]  # names of nodes by Ray's ids
    storage: Path

    def search(
        self, configs: Sequence[Config], plan: Plan, listener: Listener, *, kept: Sequence[TrialRun] = ()
    ) -> Found:
        """Have the trials done that are not `kept`. Raises RunInvalid where one could not be done within its retries."""
        missing = dict(enumerate(configs))
        for trial in kept:
            del missing[trial.number]
        numbers = frozenset(trial.number for trial in kept)
        found = Found(trials=list(kept), kept=numbers, began=time.monotonic())
        return self._run(missing, plan, found, listener)

    def search_empty(self, configs: Sequence[Config], plan: Plan) -> Found:
        """As many trials, of which each says one thing and learns nothing."""
        bare = replace(plan, search="random", scheduler="fifo", checkpoint_every=0)
        return self._run(dict(enumerate(configs)), bare, Found(trials=[], began=time.monotonic()), None)

    def _run(self, configs: Mapping[int, Config], plan: Plan, found: Found, listener: Listener | None) -> Found:
        """Trials by their numbers; without a listener they are empty."""
        left = dict(configs)
        with _settings(), Writer() as writer:
            while left:
                keeper = Keeper(found, self.course, self.nodes, list(left), listener, writer)
                errors = self._fit(left, plan, keeper)
                if len(errors) > len(keeper.given_up) or any(t.failures > RETRIES for t in keeper.given_up):
                    first = str(errors[0]).strip().splitlines()[-1]
                    raise RunInvalid(
                        f"{len(errors)} of {plan.samples} trials lost their actors again and again; the first: {first}"
                    )
                # Tune retries no trial whose actor is lost while another trial hands it on: those are done anew, as chosen.
                left, plan = {trial.number: trial.config for trial in keeper.given_up}, replace(plan, search="random")
        found.trials.sort(key=lambda trial: trial.number)
        return found

    def _fit(self, configs: Mapping[int, Config], plan: Plan, keeper: Keeper) -> list[Exception]:
        """One search by Tune, and what ended the trials that failed."""
        from ray import tune

        actor = tune.with_parameters(
            trainable(),
            images=[self.images],
            course=self.course,
            silent_seconds=plan.report_seconds if plan.is_silent else 0.0,
            is_empty=keeper.listener is None,
        )
        results = tune.Tuner(
            tune.with_resources(actor, {"cpu": plan.cpus_per_trial}),
            param_space=_space(plan, list(configs.values())),
            tune_config=_tune_config(plan, self.course),
            run_config=tune.RunConfig(
                storage_path=str(self.storage),
                name=f"search-{time.monotonic_ns()}",
                stop={"training_iteration": self.course.max_iterations},
                failure_config=tune.FailureConfig(max_failures=RETRIES),
                checkpoint_config=tune.CheckpointConfig(
                    checkpoint_frequency=plan.checkpoint_every,
                    # Else Tune would keep one at the end of every trial, in a folder that nodes may not share.
                    checkpoint_at_end=plan.checkpoint_every > 0,
                    num_to_keep=None if plan.scheduler == "pbt" else 2,  # PBT takes up older ones of other trials
                ),
                callbacks=[_callback(keeper)],
                verbose=0,
            ),
        ).fit()
        return list(results.errors)


def _space(plan: Plan, configs: Sequence[Config]) -> dict[str, Any]:
    """What Tune draws from: the list itself, unless Optuna chooses."""
    from ray import tune

    if plan.search == "optuna":
        return {
            "lr": tune.uniform(*LR),
            "momentum": tune.uniform(*MOMENTUM),
            "hidden": tune.randint(LEAST_HIDDEN, plan.hidden_below),
        }
    return {"trial": tune.grid_search([asdict(config) for config in configs])}


def _tune_config(plan: Plan, course: Course) -> Any:
    from ray import tune

    algorithm = None
    if plan.search == "optuna":
        from ray.tune.search.optuna import OptunaSearch

        algorithm = OptunaSearch(seed=course.seed % 2**32)
    return tune.TuneConfig(
        metric="accuracy",
        mode="max",
        num_samples=plan.samples if plan.search == "optuna" else 1,
        search_alg=algorithm,
        scheduler=_scheduler(plan, course),
        reuse_actors=plan.reuse_actors,
    )


def _scheduler(plan: Plan, course: Course) -> Any:
    from ray.tune import schedulers, uniform

    if plan.scheduler == "asha":
        return schedulers.ASHAScheduler(
            max_t=course.max_iterations, grace_period=max(1, course.max_iterations // 10), reduction_factor=3
        )
    if plan.scheduler == "pbt":
        return schedulers.PopulationBasedTraining(
            perturbation_interval=max(1, course.max_iterations // 5),
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
class Keeper:
    """Keeps what Tune says in its own loop, and has the listener told."""

    found: Found
    course: Course
    nodes: Mapping[str, str]
    numbers: Sequence[int]  # of the trials, in the order in which Tune makes them
    listener: Listener | None
    writer: Writer
    given_up: list[TrialRun] = field(default_factory=list)  # by Tune, though retries were left
    _trials: dict[str, TrialRun] = field(default_factory=dict)  # by Tune's ids
    _lost: dict[int, float] = field(default_factory=dict)  # trial: when it last lost its actor

    def know(self, trial: Any) -> TrialRun:
        """The trial as it is kept."""
        if trial.trial_id not in self._trials:
            config = Config(**trial.config.get("trial", trial.config))
            self._trials[trial.trial_id] = self.found.trial(self.numbers[len(self._trials)], config)
        return self._trials[trial.trial_id]

    def lose(self, trial: Any) -> None:
        """Count that a trial lost its actor: once, however many of its calls say so."""
        run, now = self.know(trial), time.monotonic()
        if now - self._lost.get(run.number, -math.inf) > ONE_LOSS_SECONDS:
            run.failures += 1
        self._lost[run.number] = now

    def take(self, trial: Any, result: Mapping[str, Any], size_bytes: int) -> None:
        """Keep what a trial says after an iteration, or several."""
        now, found, run = time.monotonic(), self.found, self.know(trial)
        found.results += 1
        found.result_bytes += size_bytes
        for each in result["reports"]:
            report = Report(**{**each, "node": self.nodes[each["node"]]})
            run.take(report)
            found.know(report, now)
            if found.reached is None and report.accuracy(self.course.judged_by) >= self.course.target:
                found.reached = now
            if self.listener is not None:
                self.writer.do(partial(self.listener.said, run.number, report))

    def end(self, trial: Any) -> None:
        """A trial has ended well."""
        if self.listener is not None:
            self.writer.do(partial(self.listener.ended, self.know(trial)))


def _callback(keeper: Keeper) -> Any:
    """What Tune calls."""
    from ray import cloudpickle
    from ray.tune import Callback

    class Caller(Callback):  # type: ignore[misc]
        def on_step_begin(self, **said: Any) -> None:
            for trial in said["trials"]:  # in the order in which they were made, which is that of the list
                keeper.know(trial)

        def on_trial_result(self, **said: Any) -> None:
            keeper.take(said["trial"], said["result"], len(cloudpickle.dumps(said["result"])))

        def on_trial_complete(self, **said: Any) -> None:
            keeper.end(said["trial"])

        def on_trial_recover(self, **said: Any) -> None:
            keeper.lose(said["trial"])

        def on_trial_error(self, **said: Any) -> None:
            keeper.lose(said["trial"])
            if said["trial"].should_recover():
                keeper.given_up.append(keeper.know(said["trial"]))

        def __reduce__(self) -> Any:
            return Callback, ()  # Tune keeps its callbacks in a file; what this one holds is of this process

    return Caller()


@dataclass
class Writer:
    """A thread that tells the listener: what is written to the disk must not hold up Tune's loop."""

    _queue: queue.SimpleQueue[Callable[[], None] | None] = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Have `work` done after what came before."""
        self._queue.put(work)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._write, name="tune-writer", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _write(self) -> None:
        while (work := self._queue.get()) is not None:
            work()


@contextmanager
def _settings() -> Iterator[None]:
    """Tune's settings, which it reads from the environment, for a while."""
    kept = {name: os.environ.get(name) for name in SETTINGS}
    os.environ.update(SETTINGS)
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
