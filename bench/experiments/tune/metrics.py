"""Declares what is measured of a search, and computes each value from what the trials reported."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.context import Measured, NodeSlot
from bench.counts import plural
from bench.experiments.toolkit.parts import jain
from bench.experiments.tune import trials as totals
from bench.experiments.tune.training import TrainingSettings
from bench.experiments.tune.trials import IterationsToTarget, TrialRun
from bench.metrics import count, ratio, seconds, size
from bench.model import NOT_FINITE, Sample

if TYPE_CHECKING:
    from bench.experiments.tune.search import SearchResult


TRIALS = "Trials, the best first; those without iterations to the target never reached it"

SEARCH = seconds("search_seconds", "Time of the whole search, until every trial has ended.", is_total=True)
TO_TARGET = seconds("time_to_target_seconds", "Time until the first trial reaches the target.", means="time to target")
TRIAL = seconds("trial_seconds", "Time of a trial's iterations, without the time between them.", table=TRIALS)
TRIAL_CPU = seconds("trial_cpu_seconds", "CPU seconds of a trial's iterations.")
STARTUP = seconds("startup_seconds", "Time until the first trial begins: processes and TensorFlow start.")
OVERHEAD = seconds(
    "overhead_per_trial_seconds", "Time between iterations of a trial in one process, per trial, without start-up."
)
STRETCH = ratio(
    "search_to_ideal_ratio",
    "s/s",
    "Search time with start-up, relative to the ideal: the trials' CPU seconds on all CPUs.",
    better="lower",
)
STARTED_STRETCH = ratio(
    "started_search_to_ideal_ratio",
    "s/s",
    "Search time relative to the ideal, each process counted from its first iteration.",
    better="lower",
)
BEYOND = ratio(
    "beyond_ideal_ratio",
    "s/s",
    "Time beyond the ideal, relative to it, in parts: start-up; CPUs that trials did not use, or shared with others;"
    " time between iterations; CPUs without a trial, as at the end.",
    better="lower",
)
MEMORY = size(
    "trial_peak_memory_bytes", "B", "Peak memory of a trial's process: of all trials, and of each.", table=TRIALS
)
PAYLOAD = size(
    "payload_bytes_per_result",
    "B/result",
    "Size of one report of a trial, for one iteration or more.",
    means="payload",
)
CPU_FAIRNESS = ratio(
    "cpu_fairness_jain", "1", "Jain's index of the nodes' shares of CPU seconds: 1 is even.", better="higher"
)
TRIAL_FAIRNESS = ratio(
    "trial_fairness_jain", "1", "Jain's index of the nodes' shares of trials: 1 is even.", better="higher"
)
CPU_SHARE = ratio("node_cpu_share", "s/s", "A node's share of the trials' CPU seconds.", better=None)
TRIAL_SHARE = ratio("node_trial_share", "trials/trial", "A node's share of the trials.", better=None)
BUSY = seconds("busy_seconds", "Time of all iterations of a node's trials.", better="higher", means="busy")
CPUS_EACH = count("cpus_each", "CPUs/trial", "CPUs that Tune reserves for a trial.", better=None)
AT_ONCE = count("trials_at_once", "trials", "Trials that the nodes have CPUs for at once.", better=None)
SUCCESS = ratio("success_ratio", "trials/trial", "Share of the trials that reached the target.", better="higher")
CENSORED = count("censored_trials", "trials", "Trials that ended before they reached the target.")
FAILURES = count("trial_failures", "times", "Actors, workers and nodes that trials lost.")
MEDIAN = count(
    "median_iterations_to_target",
    "iterations",
    "Median iterations to the target by Kaplan and Meier, with censored trials.",
)
EFFECT = ratio(
    "tuning_effect_max_min",
    "it/it",
    "The study's figure: most iterations to the target divided by fewest; grows with the number of trials.",
    better="lower",
)
EFFECT_P90_P10 = ratio(
    "tuning_effect_p90_p10", "it/it", "Iterations to the target: 90th percentile divided by the 10th.", better="lower"
)
ITERATIONS = count("iterations_to_target", "iterations", "Iterations of a trial until the target.", table=TRIALS)
REACHED = ratio(
    "trial_accuracy",
    "images/image",
    "Accuracy after a trial's last iteration, on the images that the target is for.",
    better="higher",
    table=TRIALS,
    means="accuracy",
)
RATE = ratio("learning_rate", "1", "Learning rate at the start of a trial.", better=None, table=TRIALS)
MOMENTUM = ratio("momentum", "1", "Momentum at the start of a trial.", better=None, table=TRIALS)
HIDDEN = count("hidden_units", "units", "Units in a trial's hidden layer.", table=TRIALS, better=None)
ACCURACY = ratio(
    "training_accuracy",
    "images/image",
    "Accuracy on the images of an iteration, before training on them.",
    better="higher",
    axis="iterations",
    means="accuracy",
)
HELD_OUT_ACCURACY = ratio(
    "held_out_accuracy",
    "images/image",
    "Accuracy on images that are never trained on.",
    better="higher",
    axis="iterations",
    means="accuracy",
)
BEST = {
    share: count(
        f"best_of_trials_{name}",
        "iterations",
        f"Fewest iterations to the target in a sample of the trials, percentile {share:g}, by its size.",
        axis="trials",
    )
    for name, share in (("low", 2.5), ("median", 50), ("high", 97.5))
}
METRICS = (
    SEARCH,
    TO_TARGET,
    TRIAL,
    TRIAL_CPU,
    STARTUP,
    OVERHEAD,
    STRETCH,
    STARTED_STRETCH,
    BEYOND,
    MEMORY,
    PAYLOAD,
    CPU_FAIRNESS,
    TRIAL_FAIRNESS,
    CPU_SHARE,
    TRIAL_SHARE,
    BUSY,
    CPUS_EACH,
    AT_ONCE,
    SUCCESS,
    CENSORED,
    FAILURES,
    MEDIAN,
    EFFECT,
    EFFECT_P90_P10,
    ITERATIONS,
    REACHED,
    RATE,
    MOMENTUM,
    HIDDEN,
    ACCURACY,
    HELD_OUT_ACCURACY,
    *BEST.values(),
)


def of_empty_trials(measured: Measured[SearchResult]) -> Iterator[Sample]:
    """What Tune costs by itself."""
    yield measured.sample(SEARCH, measured.interval.seconds / len(measured.results))
    trials = [trial for result in measured.results for trial in result.trials]
    yield measured.sample(OVERHEAD, totals.overhead_seconds_per_trial(trials))


def of_peer(measured: Measured[SearchResult]) -> Iterator[Sample]:
    """What a peer took."""
    yield measured.sample(SEARCH, measured.interval.seconds / len(measured.results))
    yield from _times(measured, measured.results[-1])


def of_pool(measured: Measured[SearchResult], nodes: Sequence[NodeSlot], *, cpus_per_trial: int) -> Iterator[Sample]:
    """What a peer took that has all CPUs: held against the same ideal."""
    yield from of_peer(measured)
    yield from _beside_ideal(measured, nodes, cpus_per_trial)


def of_search(
    measured: Measured[SearchResult], training: TrainingSettings, nodes: Sequence[NodeSlot], *, cpus_per_trial: int
) -> Iterator[Sample]:
    """All that a search of Ray Tune gives. Where it was done more than once in the interval, details are of the last one."""
    result, seconds = measured.results[-1], measured.interval.seconds / len(measured.results)
    if result.reused:
        reused, trials = len(result.reused), plural(len(result.trials), "trial")
        reason = f"{reused} of {trials} {'is' if reused == 1 else 'are'} reused from an earlier attempt at this run"
        yield from (
            measured.missing(metric, reason)
            for metric in (SEARCH, TO_TARGET, STARTUP, STRETCH, STARTED_STRETCH, OVERHEAD)
        )
    else:
        yield measured.sample(SEARCH, seconds)
        yield from _times(measured, result)
        yield from _beside_ideal(measured, nodes, cpus_per_trial)
        yield measured.sample(PAYLOAD, result.result_bytes / result.results)
    yield measured.sample(CPUS_EACH, cpus_per_trial)
    yield measured.sample(AT_ONCE, totals.cap([node.cpus for node in nodes], cpus_per_trial))
    yield measured.sample(FAILURES, sum(each.failures for each in measured.results))
    yield from _fairness(measured, result.trials, [node.name for node in nodes])
    yield from _effect(
        measured, totals.iterations_to_target(result.trials, target=training.target, judged_by=training.judged_by)
    )
    for trial in sorted(result.trials, key=lambda trial: trial.rank(training.target, training.judged_by)):
        yield from _of_trial(measured, trial, training)


def _times(measured: Measured[SearchResult], result: SearchResult) -> Iterator[Sample]:
    trials = result.trials
    if result.reached_at is None:
        yield measured.missing(TO_TARGET, f"none of {len(trials)} trials reached the target")
    else:
        yield measured.sample(TO_TARGET, result.reached_at - result.begin)
    yield measured.sample(TRIAL, sum(trial.seconds for trial in trials) / len(trials))
    yield measured.sample(TRIAL_CPU, sum(trial.cpu_seconds for trial in trials) / len(trials))
    if result.starts:
        yield measured.sample(STARTUP, result.startup_seconds[0])
    yield measured.sample(OVERHEAD, totals.overhead_seconds_per_trial(trials))
    yield measured.sample(MEMORY, max(report.peak_memory_bytes for trial in trials for report in trial.done))


def _beside_ideal(measured: Measured[SearchResult], nodes: Sequence[NodeSlot], cpus_per_trial: int) -> Iterator[Sample]:
    """A search beside its ideal, with the start-up of its processes and without, and where the time beyond went."""
    result, seconds = measured.results[-1], measured.interval.seconds / len(measured.results)
    cpus = [node.cpus for node in nodes]
    lost = totals.beyond_ideal(
        result.trials,
        search_seconds=seconds,
        startup_seconds=result.startup_seconds[: totals.cap(cpus, cpus_per_trial)],
        cpus=sum(cpus),
        cpus_per_trial=cpus_per_trial,
    )
    yield measured.sample(STRETCH, 1 + sum(lost.values()))
    yield measured.sample(STARTED_STRETCH, 1 + sum(lost.values()) - lost[totals.START_UP])
    for point, share in lost.items():
        yield replace(measured, point=point).sample(BEYOND, share)


def _fairness(measured: Measured[SearchResult], trials: Sequence[TrialRun], names: Sequence[str]) -> Iterator[Sample]:
    used = totals.by_node(trials, names)
    cpu = {name: amounts.cpu_seconds for name, amounts in used.items()}
    done = {name: float(amounts.trials) for name, amounts in used.items()}
    yield measured.sample(CPU_FAIRNESS, jain(list(cpu.values())))
    yield measured.sample(TRIAL_FAIRNESS, jain(list(done.values())))
    for metric, amounts in ((CPU_SHARE, cpu), (TRIAL_SHARE, done)):
        for name, share in totals.shares(amounts).items():
            yield replace(measured, point=name).sample(metric, share)
    for name, each in used.items():
        yield measured.sample(BUSY, each.busy_seconds, node=name)


def _effect(measured: Measured[SearchResult], counts: IterationsToTarget) -> Iterator[Sample]:
    """How much it matters what a search chooses. A censored trial took longer than is known: it is never left out."""
    ordered = counts.ordered()
    yield measured.sample(SUCCESS, len(counts.reached) / counts.trials)
    yield measured.sample(CENSORED, len(counts.censored))
    never = f"{len(counts.censored)} of {counts.trials} trials never reached the target"
    for metric, value in (
        (MEDIAN, totals.median_iterations(counts)),
        (EFFECT, ordered[-1] / ordered[0]),
        (EFFECT_P90_P10, totals.percentile(ordered, 90) / totals.percentile(ordered, 10)),
    ):
        yield measured.sample(metric, value) if math.isfinite(value) else measured.missing(metric, never)
    for share, metric in BEST.items():
        for draws in range(1, counts.trials + 1):
            best = totals.best_of(ordered, draws, share / 100)
            if math.isfinite(best):
                yield measured.sample(metric, best, step=draws)


def _of_trial(measured: Measured[SearchResult], trial: TrialRun, training: TrainingSettings) -> Iterator[Sample]:
    """A row of the table of trials."""
    itself = replace(measured, point=trial.name)
    last, config = trial.reports[-1], trial.config
    iterations = trial.iterations_to(training.target, training.judged_by)
    if iterations is None:
        reason = f"it was at {last.accuracy(training.judged_by):.3f} after its last iteration, {last.iteration}"
        yield itself.missing(ITERATIONS, reason)
    else:
        yield itself.sample(ITERATIONS, iterations)
    if last.loss is None:
        yield itself.missing(REACHED, f"{NOT_FINITE}: its loss, so it has diverged")
    else:
        yield itself.sample(REACHED, last.accuracy(training.judged_by))
    yield itself.sample(TRIAL, trial.seconds)
    yield itself.sample(MEMORY, max(report.peak_memory_bytes for report in trial.done))
    for metric, value in ((RATE, config.lr), (MOMENTUM, config.momentum), (HIDDEN, config.hidden)):
        yield itself.sample(metric, value)
