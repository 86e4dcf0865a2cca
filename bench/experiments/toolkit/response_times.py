"""Measures response times under open-loop load, at shares of the rate that a closed loop reached in the same turn.

Each load is a point of a sweep. Percentiles are over all calls of an invocation: the histograms of its turns are added up, and a
percentile with too few calls is missing with that reason. The run's `response_times.jsonl` has the histograms.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import fsum
from typing import Annotated, Any, Literal

from msgspec import Meta

from bench.context import Context, Measured, Turn, over_turns
from bench.experiments.toolkit.histograms import added, calls_needed, encoded, histogram, seconds_at
from bench.experiments.toolkit.load import Calls, Load, Schedule, closed_loop, due_seconds, open_loop
from bench.metrics import rate, seconds
from bench.model import Arm, Interval, Sample

Choice = Annotated[
    Literal["off", "poisson", "constant", "both"],
    Meta(description="Schedule of open-loop calls, for response times at 50, 70 and 90 % of the closed loop."),
]
Seconds = Annotated[
    float,
    Meta(
        ge=0.05,
        le=3600,
        description="Seconds of open-loop load at each point, in each turn.",
        extra={"unit": "SECONDS"},
    ),
]

SHARES = (50, 70, 90)  # per cent of the closed loop's maximum
SCHEDULES: Mapping[str, tuple[Schedule, ...]] = {
    "off": (),
    "poisson": ("poisson",),
    "constant": ("constant",),
    "both": ("poisson", "constant"),
}
CLOSED_LOOP = "closed loop"
FEWEST_CALLS = 10  # of one load, even at a low rate
MOST_OUTSTANDING = 1000
LATE_PER_MILLE = 900
LATE_SHARE = 0.1  # of a response time: the largest part of it that the generator may cause
FILE = "response_times.jsonl"

MAXIMUM = rate(
    "closed_loop_maximum_calls_per_second",
    "calls/s",
    "Calls answered per second in a closed loop. Open-loop loads are shares of it.",
)
OFFERED = rate(
    "offered_calls_per_second",
    "calls/s",
    "Calls due per second under open-loop load, a share of this topology's own closed loop.",
    better=None,
)
RESPONSES = {
    per_mille: seconds(
        f"response_time_{name}_seconds",
        f"Time from when a call was due until its answer arrived, percentile {per_mille / 10:g}; open loop.",
        load=OFFERED.name,
        distribution="response time",
        percentile=per_mille / 10,
    )
    for per_mille, name in ((500, "p50"), (900, "p90"), (990, "p99"), (999, "p999"))
}
LATE = seconds(
    "send_lateness_p90_seconds",
    "Delay with which the load generator sent calls, 90th percentile; part of their response times.",
)
METRICS = (MAXIMUM, OFFERED, *RESPONSES.values(), LATE)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is measured: its arm, and how its calls are sent, limited and checked."""

    arm: Arm
    calls: Calls
    in_flight: int  # calls per slot in the closed loop
    is_right: Callable[[int, Any], bool]  # whether the answer to a call, given by its number, is right
    by_node: Callable[[Sequence[int]], Mapping[str, float]]  # work of each node, from the slots of all calls
    most_outstanding: int = MOST_OUTSTANDING


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """One load in one turn: its interval, its histograms, and what is wrong with it."""

    timed: Measured[Load]
    response: Any
    late: Any
    problem: str  # empty if there is none

    @property
    def turn(self) -> int:
        return self.timed.turn

    @classmethod
    def of(cls, timed: Measured[Load], wrong: str) -> LoadResult:
        """Make the histograms of all calls in all passes."""
        return cls(
            timed=timed,
            response=histogram(seconds for load in timed.results for seconds in load.response_seconds),
            late=histogram(seconds for load in timed.results for seconds in load.late_seconds),
            problem=wrong or next((load.overloaded for load in timed.results if load.overloaded), ""),
        )

    def line(self) -> str:
        """Return the line for the file: with it, results of other turns and runs can be added up."""
        fields = {
            "arm": self.timed.arm,
            "point": self.timed.point,
            "turn": self.timed.turn,
            "warmup": self.timed.warmup,
            "problem": self.problem,
            "response_nanoseconds": encoded(self.response),
            "late_nanoseconds": encoded(self.late),
        }
        return json.dumps(fields) + "\n"


@dataclass
class ResponseTimes:
    """The loads of one invocation, turn by turn, and the percentiles at its end."""

    context: Context
    subject: Subject
    choice: str  # of the schedules
    seconds: float
    _done: Counter[str] = field(default_factory=Counter)  # passes, by point
    _kept: dict[str, list[LoadResult]] = field(default_factory=dict)  # by point, without warm-ups

    def measure(self, turn: Turn) -> Iterator[Sample]:
        """Measure the closed loop, then every load at its share of that."""
        for schedule in SCHEDULES[self.choice]:
            closed = turn.measure(self.subject.arm, self._closed, self._by_node, point=CLOSED_LOOP)
            maximum = _rate(closed.results)
            wrong = self._wrong(closed)
            of_turn = replace(closed, point="")
            yield of_turn.missing(MAXIMUM, wrong) if wrong else of_turn.sample(MAXIMUM, maximum)
            for share in SHARES:
                point, rate = f"{share} % {schedule}", maximum * share / 100
                send = partial(self._open, schedule, rate, point)
                timed = turn.measure(self.subject.arm, send, self._by_node, point=point)
                yield timed.sample(OFFERED, rate)
                self._keep(LoadResult.of(timed, self._wrong(timed)), turn)

    def percentiles(self) -> Iterator[Sample]:
        """Yield the percentiles of all calls of the invocation, at each point."""
        for results in self._kept.values():
            yield from over_turns(results, percentiles)

    def _closed(self) -> Load:
        return closed_loop(self.subject.calls, self.seconds, self.subject.in_flight)

    def _open(self, schedule: Schedule, rate: float, point: str) -> Load:
        self._done[point] += 1
        calls = max(FEWEST_CALLS, round(rate * self.seconds))
        due = due_seconds(schedule, rate, calls, f"{self.context.seed}/{point}/{self._done[point]}")
        return open_loop(self.subject.calls, due, self.subject.most_outstanding)

    def _by_node(self, load: Load) -> Mapping[str, float]:
        return self.subject.by_node(load.slots)

    def _keep(self, result: LoadResult, turn: Turn) -> None:
        with (self.context.folder / FILE).open("a") as file:
            file.write(result.line())
        if not turn.warmup:
            self._kept.setdefault(result.timed.point, []).append(result)

    def _wrong(self, timed: Measured[Load]) -> str:
        values = [answer for load in timed.results for answer in enumerate(load.values)]
        wrong = sum(not self.subject.is_right(number, value) for number, value in values)
        reason = f"{timed.point}: {wrong} of {len(values)} calls gave a wrong answer" if wrong else ""
        if reason:
            self.context.invalid(reason)
        return reason


def guess_pass_seconds(choice: str, seconds: float) -> tuple[float, ...]:
    """Return the seconds of one pass of the closed loop, and of each load."""
    return (seconds,) * (len(SCHEDULES[choice]) * (1 + len(SHARES)))


def percentiles(results: Sequence[LoadResult]) -> Iterator[Sample]:
    """Yield the percentiles of one point over its turns, from added histograms: percentiles are never averaged."""
    response, late = (added(getattr(result, name) for result in results) for name in ("response", "late"))
    first, last = results[0].timed.interval, results[-1].timed.interval
    of_all_turns = replace(results[-1].timed, interval=Interval(first.begin, last.end))
    problem = next((result.problem for result in results if result.problem), "")
    for per_mille, metric in RESPONSES.items():
        reason = problem or few(response, per_mille) or too_late(response, late, per_mille)
        yield (
            of_all_turns.missing(metric, reason)
            if reason
            else of_all_turns.sample(metric, seconds_at(response, per_mille))
        )
    reason = few(late, LATE_PER_MILLE)
    yield of_all_turns.missing(LATE, reason) if reason else of_all_turns.sample(LATE, seconds_at(late, LATE_PER_MILLE))


def few(values: Any, per_mille: int) -> str:
    """Return the reason if there are too few calls for a percentile; empty if there are enough."""
    calls, needed = values.get_total_count(), calls_needed(per_mille)
    return f"{calls} calls; p{per_mille / 10:g} needs {needed}" if calls < needed else ""


def too_late(response: Any, late: Any, per_mille: int) -> str:
    """Return the reason if the generator caused too much of a percentile; empty if it did not."""
    lateness, value = seconds_at(late, per_mille), seconds_at(response, per_mille)
    if lateness <= LATE_SHARE * value:
        return ""
    return (
        f"generator late: at p{per_mille / 10:g} calls were sent {lateness * 1e3:.3g} ms after they were due,"
        f" over {LATE_SHARE:.0%} of the response time"
    )


def _rate(loads: Sequence[Load]) -> float:
    """Return the answers per second, over several passes."""
    return sum(len(load.values) for load in loads) / fsum(load.end - load.begin for load in loads)
