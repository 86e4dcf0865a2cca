"""Reads what one arm needed for a unit of work in one run: seconds, their parts, and bytes on the busiest link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.analysis.comparison import NOT_MEASURED, Outcome
from bench.analysis.rows import Question
from bench.analysis.usage import NOT_COUNTED
from bench.meanings import Meaning
from bench.metrics import meaning
from bench.model import Metric, Spec

PARTS: tuple[Meaning, ...] = ("compute", "straggler", "serialise", "queue", "round trips in sequence", "busy")
NOT_YIELDED = "this experiment does not measure it"


@dataclass(frozen=True)
class Amounts:
    """What one arm needed in one run, for one unit of work."""

    seconds: float  # on the clock
    typical_seconds: float  # in the median turn, so that a stall in one turn has no effect
    link_bytes: Outcome  # in the busier direction of the busiest node, less the traffic of idle nodes
    parts: Mapping[Meaning, Outcome]  # of PARTS


def amounts(question: Question, specs: Sequence[Spec], arm: str, headline: Metric) -> dict[int, Amounts | str]:
    """Return what `arm` needed in the run of each Spec, or the reason why that is unknown, by block."""
    usable = question.usable(specs)
    is_rate = headline.kind == "rate" and headline.unit.endswith("/s")
    values, turns = usable.outcomes(headline, arm), usable.turns(headline, arm)
    link = question.uses(specs, arm, headline).read("busiest link")
    metrics = question.session.metrics[specs[0].experiment] if specs else ()
    parts = {part: usable.shares(meaning(part, metrics), arm) for part in PARTS}
    by_block: dict[int, Amounts | str] = {spec.block: question.why_not(spec) for spec in specs}
    for at, run in enumerate(usable.runs):
        value = values[at]
        if isinstance(value, str):
            by_block[run.spec.block] = value
        elif not is_rate and headline.kind != "time":
            by_block[run.spec.block] = f"{headline.name} is neither a rate by the second nor a time"
        elif value <= 0:
            by_block[run.spec.block] = f"{headline.name} is not above zero"
        else:
            seconds = 1 / value if is_rate else value
            typical = [1 / turn if is_rate else turn for turn in turns[at] if turn > 0]
            by_block[run.spec.block] = Amounts(
                seconds=seconds,
                typical_seconds=median(typical) if typical else seconds,
                link_bytes=NOT_COUNTED if (rate := link[at]) is None else rate * seconds,
                parts={part: _amount(shares[at], seconds) for part, shares in parts.items()},
            )
    return by_block


def difference(single: Outcome | None, multi: Outcome | None) -> Outcome:
    """Return multi minus single, or the reason why one of them is missing."""
    if single is None or multi is None:
        return NOT_YIELDED
    if isinstance(multi, str):
        return multi
    return single if isinstance(single, str) else multi - single


def _amount(share: Outcome, seconds: float) -> Outcome:
    """Scale a metric's share of its intervals to `seconds`, because samples may have done unequal work."""
    if isinstance(share, str):
        return NOT_YIELDED if share == NOT_MEASURED else share
    return share * seconds
