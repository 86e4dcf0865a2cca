"""Estimates the cost of a byte and of a call in this session, from a network experiment and from arms of empty calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.breakdown.amounts import Amounts, difference
from bench.analysis.comparison import Outcome
from bench.analysis.rows import Question
from bench.analysis.table import Selection
from bench.metrics import meaning
from bench.model import Metric

LEAST_LEVER = 2.0  # least ratio of the most to the fewest bytes: below it the cost of a byte is not determined


@dataclass(frozen=True)
class CallsArm:
    """An arm that makes the subject's calls without the work: multi minus single, per unit of work."""

    name: str
    seconds: float  # in the median turn, less the driver's own time for the calls
    link_bytes: Outcome


@dataclass(frozen=True)
class CallsCost:
    """The cost of calls, from arms whose calls carry more and fewer bytes: seconds = calls + bytes x byte_seconds.

    Two such arms give two equations with two unknowns.
    """

    arms: tuple[CallsArm, ...]  # in the order of the experiment's declaration
    why_not: str  # the reason if no cost can be computed from them

    @property
    def byte_seconds(self) -> Outcome:
        """The seconds that one byte takes, or the reason why that is unknown."""
        counted = self._by_bytes()
        if len(counted) < 2:
            return next((arm.link_bytes for arm in self.arms if isinstance(arm.link_bytes, str)), self.why_not)
        (low, few), (high, many) = counted[0], counted[-1]
        if many <= 0 or many < LEAST_LEVER * few:
            return f"the calls of {high.name} carry hardly more than those of {low.name}"
        return (high.seconds - low.seconds) / (many - few)

    def queue(self, byte_seconds: Outcome) -> tuple[Outcome, str]:
        """Return the seconds of the calls without their bytes, and what that rests on."""
        if not self.arms:
            return self.why_not, ""
        counted = self._by_bytes()
        if isinstance(byte_seconds, str) or not counted:
            first = self.arms[0]
            return first.seconds, f"{first.name}, with what their bytes cost"
        arm, carried = counted[0]
        return arm.seconds - carried * byte_seconds, f"{arm.name}, less what their bytes cost"

    def _by_bytes(self) -> list[tuple[CallsArm, float]]:
        counted = [(arm, arm.link_bytes) for arm in self.arms if not isinstance(arm.link_bytes, str)]
        return sorted(counted, key=lambda arm_and_bytes: arm_and_bytes[1])


def calls_cost(needed: Mapping[str, tuple[Amounts | str, Amounts | str]]) -> CallsCost:
    """Compute the cost of calls from `needed`: what each arm, by name, needed in a block on single and on multi."""
    arms, reasons = [], []
    for name, (one, many) in needed.items():
        if isinstance(one, str) or isinstance(many, str):
            reasons.append(f"{name}: {one if isinstance(one, str) else many}")
            continue
        driver = difference(one.parts.get("serialise"), many.parts.get("serialise"))
        seconds = many.typical_seconds - one.typical_seconds - (0.0 if isinstance(driver, str) else driver)
        arms.append(CallsArm(name, seconds, difference(one.link_bytes, many.link_bytes)))
    few = {
        0: "this experiment has no arm that makes its calls without the work",
        1: "one arm with calls alone does not tell what their bytes cost",
    }
    return CallsCost(tuple(arms), "; ".join(reasons) or few.get(len(arms), ""))


@dataclass(frozen=True)
class NetworkCost:
    """The costs that a network experiment measured in the same session and block, or the reasons why there are none."""

    byte_seconds: Outcome  # on the raw link between nodes
    round_trip_seconds: Outcome  # of Ray's smallest call: between nodes, minus within one
    experiment: str = ""


def network_cost(question: Question, block: int) -> NetworkCost:
    """Read the costs from this block's runs of the experiment that measures goodput."""
    all_metrics = question.session.metrics
    experiment = next((name for name, metrics in all_metrics.items() if meaning("goodput", metrics)), None)
    if experiment is None:
        absent = "no experiment of the session measures raw TCP"
        return NetworkCost(absent, absent)
    goodput, trip = (meaning(means, all_metrics[experiment]) for means in ("goodput", "round trip"))
    tcp, call = (
        [arm.name for arm in question.session.arms[experiment] if arm.means == means]
        for means in ("raw TCP", "actor call")
    )
    one, many = (
        question.usable(question.in_block(experiment, block, name))
        for name in (question.topologies[0], question.topologies[-1])
    )
    # Of the largest payload: a small one fits into the token bucket of a shaped link or into a buffer, and gives no rate.
    goodputs = _values(many, goodput, tcp, points=False)
    trips = [_values(runs, trip, call, points=True) for runs in (one, many)]
    return NetworkCost(
        1 / max(goodputs) if goodputs and max(goodputs) > 0 else f"`{experiment}` has no raw goodput in this block",
        min(trips[1]) - min(trips[0]) if all(trips) else f"`{experiment}` has no round trips in this block",
        experiment,
    )


def _values(runs: Selection, metric: Metric | None, arms: Sequence[str], *, points: bool) -> list[float]:
    """Return the values of `arms` at every point, or those without a point."""
    if metric is None:
        return []
    keys = [key for key in runs.keys if key[0] == metric.name and key[1] in arms and key[2] is None]
    outcomes_of_keys = [runs.outcomes(metric, arm, point=point) for _, arm, _, point in keys if bool(point) == points]
    return [value for values in outcomes_of_keys for value in values if not isinstance(value, str)]
