"""The arms of one experiment beside its subject, inside the same invocations of one topology."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bench.analysis.comparison import MARGIN, Side, Verdict, judge
from bench.analysis.stats import estimates
from bench.analysis.stats.estimates import Estimate
from bench.metrics import ratio
from bench.model import Arm, Metric


@dataclass(frozen=True, kw_only=True)
class ArmRow:
    """One arm's value of one metric, and the subject's share of it.

    `share` is the subject beside this arm, above 1 where the subject does better: a rate over a rate, or a time under
    a time. Of a ceiling it is the share of the ceiling; of empty calls the share of their rate; of the control, 1/share
    less 1 is what measuring costs.
    """

    arm: Arm
    topology: str
    metric: str
    side: Side
    share: Estimate | None = None  # None for the subject itself, and where no invocation has both
    verdict: Verdict | None = None  # on the subject

    @property
    def subject_is_worse(self) -> bool:
        """Whether this arm does better: by the verdict alone, for which there must be invocations enough."""
        return self.verdict == "slower"


def arm_row(arm: Arm, metric: Metric, side: Side, *, subject: Side, topology: str, margin: float = MARGIN) -> ArmRow:
    """`arm` beside the subject; the subject's own row has no share."""
    if arm.role == "subject":
        return ArmRow(arm=arm, topology=topology, metric=metric.name, side=side)
    share = share_of(metric, subject, side)
    if share is None:
        return ArmRow(arm=arm, topology=topology, metric=metric.name, side=side)
    better_is_more = ratio(metric.name, "", better=metric.better and "higher")
    verdict, _ = judge(share, better_is_more, margin=margin)
    return ArmRow(arm=arm, topology=topology, metric=metric.name, side=side, share=share, verdict=verdict)


def share_of(metric: Metric, one: Side, other: Side) -> Estimate | None:
    """`one` beside `other`, above 1 where it does better, or more where neither direction is better, paired by blocks; None where no block has both."""
    logs = _log_shares(metric, one.values, other.values)
    return estimates.exponential(estimates.hodges_lehmann(logs)) if logs else None


def _log_shares(metric: Metric, subject: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    sign = -1 if metric.better == "lower" else 1
    return [
        sign * math.log(subject[block] / other[block])
        for block in sorted(subject.keys() & other.keys())
        if subject[block] > 0 and other[block] > 0
    ]


def cost_of_measuring(control: ArmRow) -> Estimate | None:
    """How much more the control does while raymeter does not watch: 0.01 is 1 %."""
    if control.share is None:
        return None
    more = estimates.inverse(control.share)
    return Estimate(
        value=more.value - 1,
        low=None if more.low is None else more.low - 1,
        high=None if more.high is None else more.high - 1,
        level=more.level,
        n=more.n,
    )
