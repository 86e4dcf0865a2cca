"""Measures response times of an experiment's calls under open-loop load, at shares of what its closed loop did in the same turn.

Each load is a point of a sweep. Percentiles are of all calls of an invocation: histograms of its turns are added up, and
each percentile has enough calls or the reason that it is missing. The histograms are in the run's `response_times.jsonl`.
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
FEWEST_CALLS = 10  # of one load, however slow it is
MOST_OUTSTANDING = 1000
LATE_PER_MILLE = 900
LATE_SHARE = 0.1  # of a response time: what the generator may have added to it
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
        f"Time from when a call was due until its answer was there, percentile {per_mille / 10:g}; open loop.",
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
    """Whose response times they are, and how its calls are made, bounded and checked."""

    arm: Arm
    calls: Calls
    in_flight: int  # calls a slot in the closed loop
    is_right: Callable[[int, Any], bool]  # whether call number so-and-so gave the right answer
    by_node: Callable[[Sequence[int]], Mapping[str, float]]  # work of each node, of the calls' slots
    most_outstanding: int = MOST_OUTSTANDING


@dataclass(frozen=True, kw_only=True)
class Told:
    """One load in one turn: when it was measured, its histograms, and what is wrong with it."""

    timed: Measured[Load]
    response: Any
    late: Any
    problem: str  # "": nothing

    @property
    def turn(self) -> int:
        return self.timed.turn

    @classmethod
    def of(cls, timed: Measured[Load], wrong: str) -> Told:
        """Every call of every go."""
        return cls(
            timed=timed,
            response=histogram(seconds for load in timed.results for seconds in load.response_seconds),
            late=histogram(seconds for load in timed.results for seconds in load.late_seconds),
            problem=wrong or next((load.overloaded for load in timed.results if load.overloaded), ""),
        )

    def line(self) -> str:
        """What is kept of it: enough to add it to those of other turns and runs."""
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
    choice: str  # of when calls come
    seconds: float
    _done: Counter[str] = field(default_factory=Counter)  # goes, by point
    _kept: dict[str, list[Told]] = field(default_factory=dict)  # by point, warm-ups left out

    def measure(self, turn: Turn) -> Iterator[Sample]:
        """The closed loop, then every load at its share of that."""
        for schedule in SCHEDULES[self.choice]:
            closed = turn.measure(self.subject.arm, self._closed, self._by_node, point=CLOSED_LOOP)
            maximum = _rate(closed.results)
            wrong = self._wrong(closed)
            whole = replace(closed, point="")
            yield whole.missing(MAXIMUM, wrong) if wrong else whole.sample(MAXIMUM, maximum)
            for share in SHARES:
                point, rate = f"{share} % {schedule}", maximum * share / 100
                go = partial(self._open, schedule, rate, point)
                timed = turn.measure(self.subject.arm, go, self._by_node, point=point)
                yield timed.sample(OFFERED, rate)
                self._keep(Told.of(timed, self._wrong(timed)), turn)

    def percentiles(self) -> Iterator[Sample]:
        """Of all calls of the invocation, at each point."""
        for told in self._kept.values():
            yield from over_turns(told, percentiles)

    def _closed(self) -> Load:
        return closed_loop(self.subject.calls, self.seconds, self.subject.in_flight)

    def _open(self, schedule: Schedule, rate: float, point: str) -> Load:
        self._done[point] += 1
        calls = max(FEWEST_CALLS, round(rate * self.seconds))
        due = due_seconds(schedule, rate, calls, f"{self.context.seed}/{point}/{self._done[point]}")
        return open_loop(self.subject.calls, due, self.subject.most_outstanding)

    def _by_node(self, load: Load) -> Mapping[str, float]:
        return self.subject.by_node(load.slots)

    def _keep(self, told: Told, turn: Turn) -> None:
        with (self.context.folder / FILE).open("a") as file:
            file.write(told.line())
        if not turn.warmup:
            self._kept.setdefault(told.timed.point, []).append(told)

    def _wrong(self, timed: Measured[Load]) -> str:
        values = [answer for load in timed.results for answer in enumerate(load.values)]
        wrong = sum(not self.subject.is_right(number, value) for number, value in values)
        reason = f"{timed.point}: {wrong} of {len(values)} calls gave no right answer" if wrong else ""
        if reason:
            self.context.invalid(reason)
        return reason


def guess_pass_seconds(choice: str, seconds: float) -> tuple[float, ...]:
    """Of the closed loop and of each load."""
    return (seconds,) * (len(SCHEDULES[choice]) * (1 + len(SHARES)))


def percentiles(told: Sequence[Told]) -> Iterator[Sample]:
    """Of one point, over its turns: histograms are added up, and no percentile is averaged."""
    response, late = (added(getattr(each, name) for each in told) for name in ("response", "late"))
    first, last = told[0].timed.interval, told[-1].timed.interval
    whole = replace(told[-1].timed, interval=Interval(first.begin, last.end))
    problem = next((each.problem for each in told if each.problem), "")
    for per_mille, metric in RESPONSES.items():
        reason = problem or few(response, per_mille) or too_late(response, late, per_mille)
        yield whole.missing(metric, reason) if reason else whole.sample(metric, seconds_at(response, per_mille))
    reason = few(late, LATE_PER_MILLE)
    yield whole.missing(LATE, reason) if reason else whole.sample(LATE, seconds_at(late, LATE_PER_MILLE))


def few(found: Any, per_mille: int) -> str:
    """Why there are too few calls for a percentile; "": there are enough."""
    calls, needed = found.get_total_count(), calls_needed(per_mille)
    return f"{calls} calls; p{per_mille / 10:g} needs {needed}" if calls < needed else ""


def too_late(response: Any, late: Any, per_mille: int) -> str:
    """Why a percentile would be the generator's own; "": it is not."""
    lateness, value = seconds_at(late, per_mille), seconds_at(response, per_mille)
    if lateness <= LATE_SHARE * value:
        return ""
    return (
        f"generator late: at p{per_mille / 10:g} calls were sent {lateness * 1e3:.3g} ms after they were due,"
        f" over {LATE_SHARE:.0%} of the response time"
    )


def _rate(loads: Sequence[Load]) -> float:
    """Answers by the second, of several goes."""
    return sum(len(load.values) for load in loads) / fsum(load.end - load.begin for load in loads)
