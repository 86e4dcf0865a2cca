"""What one arm needed for a unit of work in one run: seconds, bytes on the busiest link, and what these seconds were."""

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
    """Of one arm in one run, for one unit of work."""

    seconds: float  # on the clock
    typical_seconds: float  # the same in the middle one of the turns: a stall in one of them is no price
    link_bytes: Outcome  # in the busier direction of the busiest node, beyond what idle nodes send
    parts: Mapping[Meaning, Outcome]  # of PARTS


def amounts(question: Question, specs: Sequence[Spec], arm: str, headline: Metric) -> dict[int, Amounts | str]:
    """By block: what `arm` needed in the run of a Spec, or the reason that it cannot be said."""
    those = question.usable(specs)
    is_rate = headline.kind == "rate" and headline.unit.endswith("/s")
    values, turns = those.outcomes(headline, arm), those.turns(headline, arm)
    link = question.uses(specs, arm, headline).read("busiest link")
    metrics = question.session.metrics[specs[0].experiment] if specs else ()
    parts = {part: those.shares(meaning(part, metrics), arm) for part in PARTS}
    found: dict[int, Amounts | str] = {spec.block: question.why_not(spec) for spec in specs}
    for at, run in enumerate(those.runs):
        value = values[at]
        if isinstance(value, str):
            found[run.spec.block] = value
        elif not is_rate and headline.kind != "time":
            found[run.spec.block] = f"{headline.name} is neither a rate by the second nor a time"
        elif value <= 0:
            found[run.spec.block] = f"{headline.name} is not above zero"
        else:
            seconds = 1 / value if is_rate else value
            typical = [1 / each if is_rate else each for each in turns[at] if each > 0]
            found[run.spec.block] = Amounts(
                seconds=seconds,
                typical_seconds=median(typical) if typical else seconds,
                link_bytes=NOT_COUNTED if (rate := link[at]) is None else rate * seconds,
                parts={part: _amount(shares[at], seconds) for part, shares in parts.items()},
            )
    return found


def difference(single: Outcome | None, multi: Outcome | None) -> Outcome:
    """multi less single, or the reason that one of them is missing."""
    if single is None or multi is None:
        return NOT_YIELDED
    if isinstance(multi, str):
        return multi
    return single if isinstance(single, str) else multi - single


def _amount(share: Outcome, seconds: float) -> Outcome:
    """A metric's share of its intervals, times `seconds`: samples may have done unequal work."""
    if isinstance(share, str):
        return NOT_YIELDED if share == NOT_MEASURED else share
    return share * seconds
