"""What a run of the experiment `selfcheck` says of the machine and of the harness.

The comparisons are judged by the code that judges reports. Two kinds of pairs: of one invocation its turns, 12 in a row to a
comparison; of twelve invocations the means of a stretch of turns, the same stretch in each. Reports compare invocations, so
that the second kind is theirs; the first says less, of what differs from one invocation to the next nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bench.analysis.comparison import Comparison, compare, side
from bench.analysis.number_format import percent
from bench.metrics import meaning
from bench.model import Metric, QuietCheck, Run

COMPARISONS = 20
PAIRS = 12
MOST_FALSE = 3  # of 20: P(more) is 1.6 % where 5 % are false
LEAST_FOUND = 0.8
CLEARLY = 0.75  # of the slow-down: at the smallest effect itself a fifth is missed by definition
FEWEST_ABLE = 5  # comparisons, to say anything of how many find it
LARGEST_EFFECT = 0.1  # a machine that cannot show it in 12 pairs is not fit
STALL_SEEN = 0.9  # of the sleep, between median and 99th percentile
MOST_IN_MEDIAN = 0.05  # of the median
MOST_WATCHING = 0.01  # of a sample: R28
LEAST_TIMER_STEPS = 1000  # in a unit
MOST_TURNS = 1_000_000  # of a run


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at. `is_good` None: it is told, and decides nothing."""

    name: str
    of: str  # "harness" or "machine"
    is_good: bool | None
    words: str


@dataclass(frozen=True, kw_only=True)
class Selfcheck:
    """Everything, and at which level pairs were taken."""

    level: str
    smallest_effect: float | None  # that 12 pairs of this machine would show: 0.05 is 5 %
    checks: tuple[Check, ...]

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.is_good is False)


def judge(runs: Sequence[Run], metrics: Sequence[Metric], *, slow_down: float, stall_seconds: float) -> Selfcheck:
    """Judge good runs, of which there is one, or one a block. Raises ValueError where they are too few or too short.

    `metrics` are those of the experiment, the headline, which is the time of a call, first.
    """
    headline = metrics[0]
    values = {name: _by_run(runs, headline, name) for name in ("plain", "twin", "slowed")}
    same = comparisons(headline, values["plain"], values["twin"])
    slower = comparisons(headline, values["plain"], values["slowed"])
    smallest = [each.smallest_effect for each in same if each.smallest_effect is not None]
    effect = median(smallest) if smallest else None
    level = "turns inside one invocation" if len(runs) == 1 else f"{len(runs)} invocations, each on a fresh cluster"
    return Selfcheck(
        level=level,
        smallest_effect=effect,
        checks=(
            _false_alarms(same),
            _found(slower, slow_down),
            _stalls(runs, metrics, stall_seconds),
            _watching(runs, headline),
            _fitness(effect),
            *_noise(values["plain"], runs, meaning("timer step", metrics)),
        ),
    )


def comparisons(metric: Metric, one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> list[Comparison]:
    """20 comparisons of 12 pairs, each of values [run][turn]."""
    return [
        compare(metric, {"one": side(a), "other": side(b)}, baseline="one", candidate="other")
        for a, b in zip(_groups(one), _groups(other), strict=True)
    ]


def _groups(values: Sequence[Sequence[float]]) -> list[Mapping[int, float]]:
    """By comparison: the value of each pair."""
    if len(values) == 1:
        turns = values[0]
        _check(len(turns), COMPARISONS * PAIRS)
        return [dict(enumerate(turns[k * PAIRS : (k + 1) * PAIRS])) for k in range(COMPARISONS)]
    _check(len(values), PAIRS)
    _check(min(map(len, values)), COMPARISONS)
    each = min(map(len, values)) // COMPARISONS
    return [
        {number: fmean(turns[k * each : (k + 1) * each]) for number, turns in enumerate(values)}
        for k in range(COMPARISONS)
    ]


def _check(has: int, needs: int) -> None:
    if has < needs:
        raise ValueError(f"{has} repetitions are there, and the check needs {needs}")


def _by_run(runs: Sequence[Run], metric: Metric, arm: str) -> list[list[float]]:
    return [
        [
            s.value
            for s in run.samples
            if (s.metric, s.arm) == (metric.name, arm) and not s.warmup and s.value is not None
        ]
        for run in runs
    ]


def is_alarm(found: Comparison) -> bool:
    """Whether the interval excludes 1, however small the difference."""
    ratio = found.ratio
    return ratio is not None and ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def _false_alarms(same: Sequence[Comparison]) -> Check:
    count = sum(map(is_alarm, same))
    words = f"{count} of {len(same)} comparisons of the same with the same see a difference (at most {MOST_FALSE})"
    return Check(name="false alarms", of="harness", is_good=count <= MOST_FALSE, words=words)


def _found(slower: Sequence[Comparison], slow_down: float) -> Check:
    """Judged where the smallest effect says clearly that it can be found; where it cannot, the machine is at fault."""
    able = [each for each in slower if each.smallest_effect is not None and each.smallest_effect <= CLEARLY * slow_down]
    found = [each for each in able if each.verdict == "slower"]
    words = (
        f"{len(found)} of {len(able)} comparisons find {percent(slow_down)} more CPU a call, where their noise lets them"
        f" (at least {percent(LEAST_FOUND)}); {len(slower) - len(able)} are too noisy to ask"
    )
    return Check(
        name="known slow-down",
        of="harness",
        is_good=len(found) >= LEAST_FOUND * len(able) if len(able) >= FEWEST_ABLE else None,
        words=words,
    )


def _stalls(runs: Sequence[Run], metrics: Sequence[Metric], stall_seconds: float) -> Check:
    """Of calls one after the other; the 99th percentile lies in the 2 % that stall."""
    middle, high = meaning("median of all calls", metrics), meaning("99th percentile of all calls", metrics)
    plain, stalled = (_of_all(runs, middle, arm) for arm in ("plain", "stalled"))
    tail = _of_all(runs, high, "stalled")
    in_tail, in_median = tail - stalled, stalled / plain - 1
    words = (
        f"{1000 * stall_seconds:g} ms of sleep in one of 50 calls: the 99th percentile is {1000 * in_tail:.1f} ms above"
        f" the median, which moves by {percent(abs(in_median))}"
    )
    is_good = in_tail >= STALL_SEEN * stall_seconds and abs(in_median) <= MOST_IN_MEDIAN
    return Check(name="known stalls", of="harness", is_good=is_good, words=words)


def _watching(runs: Sequence[Run], metric: Metric) -> Check:
    """What probes, exporter and guards cost: watched against unwatched in one turn, all turns of all runs."""
    watched, unwatched = _by_turn(runs, metric, "plain"), _by_turn(runs, metric, "unwatched")
    sides = {"unwatched": side(unwatched), "watched": side(watched)}
    ratio = compare(metric, sides, baseline="unwatched", candidate="watched").ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return Check(name="watching", of="harness", is_good=None, words="what it costs is not known")
    words = (
        f"it costs {percent(ratio.value - 1)} of a sample, {percent(ratio.low - 1)} to {percent(ratio.high - 1)} in"
        f" {len(watched.keys() & unwatched.keys())} pairs of turns (at most {percent(MOST_WATCHING)})"
    )
    is_good = True if ratio.high - 1 <= MOST_WATCHING else False if ratio.low - 1 > MOST_WATCHING else None
    return Check(name="watching", of="harness", is_good=is_good, words=words)


def _by_turn(runs: Sequence[Run], metric: Metric, arm: str) -> dict[int, float]:
    """An arm's values by turn; turns of different runs have different numbers."""
    return {
        number * MOST_TURNS + s.turn: s.value
        for number, run in enumerate(runs)
        for s in run.samples
        if (s.metric, s.arm) == (metric.name, arm) and not s.warmup and s.value is not None
    }


def _of_all(runs: Sequence[Run], metric: Metric | None, arm: str) -> float:
    name = metric.name if metric else ""
    found = [s.value for run in runs for s in run.samples if (s.metric, s.arm) == (name, arm) and s.value is not None]
    _check(len(found), 1)
    return median(found)


def _fitness(effect: float | None) -> Check:
    if effect is None:
        return Check(name="fitness", of="machine", is_good=False, words="how small a difference shows is not known")
    is_good = effect <= LARGEST_EFFECT
    words = f"{'fit' if is_good else 'not fit'}: differences of {percent(effect)} show in {PAIRS} pairs"
    return Check(name="fitness", of="machine", is_good=is_good, words=f"{words} (at most {percent(LARGEST_EFFECT)})")


def _noise(plain: Sequence[Sequence[float]], runs: Sequence[Run], step: Metric | None) -> list[Check]:
    turns = [value for each in plain for value in each]
    unit = median(turns)
    steps = [s.value for run in runs for s in run.samples if step and s.metric == step.name and s.value]
    told = {
        "noise": f"coefficient of variation {percent(variation(turns))} from turn to turn",
        "memory": f"autocorrelation {fmean(map(autocorrelation, plain)):.2f} of one turn and the next",
        "steal": _steal(runs),
        "quiet_check": _quiet_check([run.quiet_check for run in runs if run.quiet_check]),
    }
    timer = Check(
        name="timer",
        of="machine",
        is_good=unit >= LEAST_TIMER_STEPS * max(steps, default=0.0),
        words=f"steps of {1e9 * max(steps, default=0.0):.0f} ns, beside {1000 * unit:.1f} ms a call",
    )
    return [timer, *(Check(name=name, of="machine", is_good=None, words=words) for name, words in told.items())]


def variation(values: Sequence[float]) -> float:
    """Standard deviation over mean."""
    mean = fmean(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) / mean


def autocorrelation(values: Sequence[float]) -> float:
    """Of each value with the next; 0 where nothing varies."""
    mean = fmean(values)
    squares = sum((v - mean) ** 2 for v in values)
    products = sum((a - mean) * (b - mean) for a, b in itertools.pairwise(values))
    return products / squares if squares else 0.0


def _steal(runs: Sequence[Run]) -> str:
    rows = [(u.steal_seconds, u.watched_seconds) for run in runs for u in run.usage]
    seen = [(stolen, watched) for stolen, watched in rows if stolen is not None and watched]
    if not seen:
        return "not counted here"
    return (
        f"{percent(sum(stolen for stolen, _ in seen) / sum(watched for _, watched in seen))} of the time, of all CPUs"
    )


def _quiet_check(quiet_checks: Sequence[QuietCheck]) -> str:
    if not quiet_checks:
        return "not looked at"
    busy = sum(not quiet_check.is_quiet for quiet_check in quiet_checks)
    return f"{len(quiet_checks) - busy} of {len(quiet_checks)} runs began on a quiet machine"
