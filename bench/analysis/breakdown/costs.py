"""What a byte and a call cost in this session: by the experiment `network`, and by calls that do no work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.analysis.breakdown.amounts import SERIALISE, amounts, difference
from bench.analysis.comparison import Outcome, outcome
from bench.analysis.rows import Question
from bench.model import Metric, Run

NETWORK = "network"
GOODPUT = "goodput_bytes_per_second"
ROUND_TRIP = "round_trip_seconds"
RAW_TCP = "tcp"  # its arm: plain sockets
CALL = "ray-call"  # its arm: the argument of an actor call
LEAST_LEVER = 2.0  # times the bytes of the barest calls: from less the cost of a byte cannot be told


@dataclass(frozen=True)
class CallsArm:
    """An arm that makes the subject's calls and does no work: multi less single, for a unit of work."""

    name: str
    seconds: float  # in the middle one of the turns, less what the driver itself needs for the calls
    link_bytes: Outcome


@dataclass(frozen=True)
class CallsCost:
    """What calls cost, by arms that make them with more in them and with less: seconds = calls + bytes x byte_seconds.

    Two such arms are two equations with two unknowns.
    """

    arms: tuple[CallsArm, ...]  # in the order in which the experiment declares them
    why_not: str  # there is no cost to be had from them

    @property
    def byte_seconds(self) -> Outcome:
        """What one byte takes."""
        counted = self._by_bytes()
        if len(counted) < 2:
            return next((arm.link_bytes for arm in self.arms if isinstance(arm.link_bytes, str)), self.why_not)
        (low, few), (high, many) = counted[0], counted[-1]
        if many <= 0 or many < LEAST_LEVER * few:
            return f"the calls of {high.name} carry hardly more than those of {low.name}"
        return (high.seconds - low.seconds) / (many - few)

    def queue(self, byte_seconds: Outcome) -> tuple[Outcome, str]:
        """Seconds of the calls without their bytes, and what that rests on."""
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
        return sorted(counted, key=lambda each: each[1])


def calls_cost(question: Question, single: Run, multi: Run, headline: Metric, names: Sequence[str]) -> CallsCost:
    """The arms called `names`, of the two runs of a block."""
    arms, reasons = [], []
    for name in names:
        one, many = (amounts(question, run, name, headline) for run in (single, multi))
        if isinstance(one, str) or isinstance(many, str):
            reasons.append(f"{name}: {one if isinstance(one, str) else many}")
            continue
        driver = difference(one.metrics.get(SERIALISE), many.metrics.get(SERIALISE))
        seconds = many.typical_seconds - one.typical_seconds - (0.0 if isinstance(driver, str) else driver)
        arms.append(CallsArm(name, seconds, difference(one.link_bytes, many.link_bytes)))
    few = {
        0: "this experiment has no arm that makes its calls without the work",
        1: "one arm with calls alone does not tell what their bytes cost",
    }
    return CallsCost(tuple(arms), "; ".join(reasons) or few.get(len(arms), ""))


@dataclass(frozen=True)
class NetworkCost:
    """What the experiment `network` of the same session and block says, or the reason that it says nothing."""

    byte_seconds: Outcome  # on the raw link between nodes
    round_trip_seconds: Outcome  # of Ray's smallest call, between nodes less inside one


def network_cost(question: Question, block: int) -> NetworkCost:
    """By the runs of `network` in this block."""
    if NETWORK not in question.session.metrics:
        absent = f"the session has no experiment `{NETWORK}`"
        return NetworkCost(absent, absent)
    baseline, candidate = question.topologies[0], question.topologies[-1]
    # Of the largest payload: a small one goes into the bucket of a shaped link, or into a buffer, and tells no rate.
    goodputs = _values(question, block, candidate, GOODPUT, RAW_TCP, points=False)
    trips = [_values(question, block, name, ROUND_TRIP, CALL, points=True) for name in (baseline, candidate)]
    return NetworkCost(
        1 / max(goodputs) if goodputs and max(goodputs) > 0 else f"`{NETWORK}` has no raw goodput in this block",
        min(trips[1]) - min(trips[0]) if all(trips) else f"`{NETWORK}` has no round trips in this block",
    )


def _values(question: Question, block: int, topology: str, name: str, arm: str, *, points: bool) -> list[float]:
    """What `network` measured in this block: at every point, or else without one."""
    metric = next((each for each in question.session.metrics[NETWORK] if each.name == name), None)
    return [
        value
        for run in question.usable(question.in_block(NETWORK, block, topology))
        for found, of, node, point in run.values
        if metric is not None and (found, of, node) == (name, arm, None) and bool(point) == points
        if not isinstance(value := outcome(run, metric, arm, point=point), str)
    ]
