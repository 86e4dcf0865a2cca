"""Times of which some are known to be longer than they were watched."""

from __future__ import annotations

import math
from collections.abc import Sequence


def kaplan_meier_median(reached: Sequence[float], censored: Sequence[float]) -> float:
    """The median of times that were `reached`, beside some given up at `censored`; infinite where half never came.

    Kaplan and Meier (1958). All in one unit; what was given up at a time counts as still at risk then.
    """
    at_risk, surviving = len(reached) + len(censored), 1.0
    for time, is_censored in sorted([*((time, False) for time in reached), *((time, True) for time in censored)]):
        if not is_censored:
            surviving *= 1 - 1 / at_risk
            if surviving <= 0.5 + 1e-12:
                return time
        at_risk -= 1
    return math.inf
