"""Adds up what the trials of a search did: fairness, overhead, the effect of tuning. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from bench.experiments.tune.training import Config, IterationReport
from bench.survival import kaplan_meier_median

START_UP = "start-up"  # a part of what a search takes beyond its ideal


@dataclass(kw_only=True)
class TrialRun:
    """One trial as it was done: its reports in order of iterations, and what it took in all."""

    number: int
    config: Config
    reports: list[IterationReport] = field(default_factory=list)
    lost: list[IterationReport] = field(default_factory=list)  # of iterations that were done again
    failures: int = 0

    @property
    def name(self) -> str:
        return f"trial-{self.number:02d}"

    @property
    def node(self) -> str:
        """Where it was last."""
        return self.reports[-1].node if self.reports else ""

    @property
    def seconds(self) -> float:
        return sum(report.seconds for report in self.done)

    @property
    def cpu_seconds(self) -> float:
        return sum(report.cpu_seconds for report in self.done)

    @property
    def done(self) -> list[IterationReport]:
        """All iterations, those that were lost too: they took their time."""
        return self.lost + self.reports

    def take(self, report: IterationReport) -> None:
        """Keep the next report. One of an iteration that was done before begins again from there."""
        self.lost += [old for old in self.reports if old.iteration >= report.iteration]
        self.reports = [*(old for old in self.reports if old.iteration < report.iteration), report]

    def iterations_to(self, target: float, judged_by: str) -> int | None:
        """The first iteration that reached the target; None: censored, it never did."""
        return next((r.iteration for r in self.reports if r.accuracy(judged_by) >= target), None)

    def rank(self, target: float, judged_by: str) -> tuple[float, float]:
        """Orders trials, the best first: few iterations to the target, or else the accuracy that was come to."""
        return self.iterations_to(target, judged_by) or math.inf, -self.reports[-1].accuracy(judged_by)


@dataclass(frozen=True, kw_only=True)
class IterationsToTarget:
    """Iterations until the target of each trial: those that reached it, and where the others were given up."""

    reached: tuple[int, ...]
    censored: tuple[int, ...] = ()

    @property
    def trials(self) -> int:
        return len(self.reached) + len(self.censored)

    def ordered(self) -> list[float]:
        """All trials, the quickest first; one that never reached the target took longer than any that did."""
        return [*sorted(self.reached), *(math.inf for _ in self.censored)]


def iterations_to_target(trials: Iterable[TrialRun], *, target: float, judged_by: str) -> IterationsToTarget:
    """What came of `trials`."""
    found = [(trial, trial.iterations_to(target, judged_by)) for trial in trials]
    return IterationsToTarget(
        reached=tuple(iterations for _, iterations in found if iterations is not None),
        censored=tuple(trial.reports[-1].iteration if trial.reports else 0 for trial, its in found if its is None),
    )


@dataclass(frozen=True, kw_only=True)
class Used:
    """What the trials of one node added up to."""

    cpu_seconds: float = 0.0
    busy_seconds: float = 0.0
    trials: int = 0


def by_node(trials: Sequence[TrialRun], names: Iterable[str]) -> dict[str, Used]:
    """What was done on each node; a trial counts where it ended."""
    reports = [report for trial in trials for report in trial.done]
    return {
        name: Used(
            cpu_seconds=sum(report.cpu_seconds for report in reports if report.node == name),
            busy_seconds=sum(report.seconds for report in reports if report.node == name),
            trials=sum(trial.node == name for trial in trials),
        )
        for name in names
    }


def cap(cpus_of_nodes: Iterable[int], cpus_per_trial: int) -> int:
    """How many trials nodes of so many CPUs have room for at once; one trial is on one node."""
    return sum(cpus // cpus_per_trial for cpus in cpus_of_nodes)


def most_at_once(trials: Sequence[TrialRun]) -> int:
    """The most iterations that were under way together: of each node by its own clock, added up."""
    by_node: dict[str, list[tuple[float, int]]] = {}
    for trial in trials:
        for report in trial.done:
            # One that ends when another begins, does so before.
            by_node.setdefault(report.node, []).extend([(report.begin, 1), (report.end, -1)])
    return sum(max(accumulate(step for _, step in sorted(steps))) for steps in by_node.values())


def shares(amounts: Mapping[str, float]) -> dict[str, float]:
    """The part of all that each has."""
    total = sum(amounts.values())
    return {name: amount / total if total else 0.0 for name, amount in amounts.items()}


def percentile(ordered: Sequence[float], share: int) -> float:
    """The least of `ordered` values that `share` per cent of them do not exceed."""
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


def median_iterations(counts: IterationsToTarget) -> float:
    """Kaplan and Meier's median of iterations to the target; infinite where half of the trials never reached it."""
    return float(kaplan_meier_median(counts.reached, counts.censored))


def best_of(ordered: Sequence[float], draws: int, quantile: float) -> float:
    """A quantile of the best of `draws` trials, drawn from these with replacement: what a bootstrap would come to."""
    n = len(ordered)
    for rank, value in enumerate(ordered, start=1):
        if 1 - (1 - rank / n) ** draws >= quantile - 1e-12:
            return value
    return ordered[-1]


def overhead_seconds_per_trial(trials: Sequence[TrialRun]) -> float:
    """What a trial costs beside its iterations: the gaps between those that were done in one place, per trial.

    Places are as few as the iterations allow. Before the first and after the last iteration of a place nothing counts.
    """
    by_node: dict[str, list[tuple[float, float]]] = {}
    for trial in trials:
        for report in trial.done:
            by_node.setdefault(report.node, []).append((report.begin, report.end))
    return sum(sum(_gaps(sorted(intervals))) for intervals in by_node.values()) / len(trials)


def beyond_ideal(
    trials: Sequence[TrialRun],
    *,
    search_seconds: float,
    startup_seconds: Sequence[float],
    cpus: int,
    cpus_per_trial: int,
) -> dict[str, float]:
    """Where a search's time beyond its ideal went, of that ideal: CPU seconds that were not the trials', over theirs.

    They add up to all that `cpus` could have done in `search_seconds`, less what the trials did. `startup_seconds` are
    those of each process that trains, as many as train at once.
    """
    done = sum(trial.cpu_seconds for trial in trials)
    found = {
        START_UP: cpus_per_trial * sum(startup_seconds),
        "in iterations": cpus_per_trial * sum(trial.seconds for trial in trials) - done,
        "between iterations": cpus_per_trial * len(trials) * overhead_seconds_per_trial(trials),
    }
    found["without a trial"] = cpus * search_seconds - done - sum(found.values())
    return {name: seconds / done for name, seconds in found.items()}


def _gaps(intervals: Sequence[tuple[float, float]]) -> Iterator[float]:
    """The time between neighbours, once each interval has gone to the place that was free for the shortest time."""
    free_since: list[float] = []
    for begin, end in intervals:
        free = [since for since in free_since if since <= begin]
        if free:
            yield begin - max(free)
            free_since.remove(max(free))
        free_since.append(end)
