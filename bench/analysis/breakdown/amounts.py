"""What one arm needed for a unit of work in one run: seconds, bytes on the busiest link, and what these seconds were."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from bench.analysis.comparison import Outcome, outcome
from bench.analysis.rows import Question
from bench.analysis.usage import NOT_COUNTED
from bench.analysis.usage_tables import Use
from bench.meanings import Meaning
from bench.metrics import meaning
from bench.model import Metric, Run

PARTS: tuple[Meaning, ...] = ("compute", "straggler", "serialise", "queue", "round trips in sequence", "busy")
NOT_YIELDED = "this experiment does not measure it"


@dataclass(frozen=True)
class Amounts:
    """Of one arm in one run, for one unit of work."""

    seconds: float  # on the clock
    typical_seconds: float  # the same in the middle one of the turns: a stall in one of them is no price
    link_bytes: Outcome  # in the busier direction of the busiest node
    parts: Mapping[Meaning, Outcome]  # of PARTS


def amounts(question: Question, run: Run, arm: str, headline: Metric) -> Amounts | str:
    """What `arm` needed, or the reason that it cannot be said."""
    value = outcome(run, headline, arm)
    if isinstance(value, str):
        return value
    is_rate = headline.kind == "rate" and headline.unit.endswith("/s")
    if not is_rate and headline.kind != "time":
        return f"{headline.name} is neither a rate by the second nor a time"
    if value <= 0:
        return f"{headline.name} is not above zero"
    seconds = 1 / value if is_rate else value
    turns = [1 / each if is_rate else each for each in _turns(run, headline, arm) if each > 0]
    metrics = question.session.metrics[run.spec.experiment]
    return Amounts(
        seconds=seconds,
        typical_seconds=median(turns) if turns else seconds,
        link_bytes=_link_bytes(question.use(run, arm, headline), seconds),
        parts={part: _amount(run, arm, meaning(part, metrics), seconds) for part in PARTS},
    )


def _turns(run: Run, headline: Metric, arm: str) -> list[float]:
    every = run.values.get((headline.name, arm, None, ""), ())
    return [s.value for s in every if s.value is not None and s.turn > 0 and not s.warmup]


def difference(single: Outcome | None, multi: Outcome | None) -> Outcome:
    """multi less single, or the reason that one of them is missing."""
    if single is None or multi is None:
        return NOT_YIELDED
    if isinstance(multi, str):
        return multi
    return single if isinstance(single, str) else multi - single


def _amount(run: Run, arm: str, metric: Metric | None, seconds: float) -> Outcome:
    """A metric's share of its intervals, times `seconds`: samples may have done unequal work."""
    every = run.values.get((metric.name, arm, None, "")) if metric else None
    if every is None:
        return NOT_YIELDED
    samples = [s for s in every if not s.warmup]
    counted = [(s.value, s.interval.seconds) for s in samples if s.value is not None]
    whole = math.fsum(length for _, length in counted)
    if not counted or whole <= 0:
        return next((s.reason for s in samples if s.reason), NOT_YIELDED)
    return math.fsum(value for value, _ in counted) / whole * seconds


def _link_bytes(use: Use, seconds: float) -> Outcome:
    """Beyond what idle nodes send. A link carries both directions at once, so the busier one is what takes time."""
    uses, at = use
    rate = uses.tables.busiest_link()[at]
    return NOT_COUNTED if rate is None else rate * seconds
