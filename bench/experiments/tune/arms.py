"""Declares the arms: the means to do the same trials."""

from __future__ import annotations

from collections.abc import Sequence

from bench.experiments.tune.space import Search
from bench.model import Arm

RAY = Arm(name="ray", help="Ray Tune: a trial is an actor.", role="subject")
EMPTY_TRIALS = Arm(name="empty-trials", help="As many trials of Tune that report once and do not train.", role="calls")
SEQUENTIAL = Arm(name="sequential", help="The same trials, one after another in one new process of the first node.")
POOL = Arm(
    name="pool",
    help="The same trials in a new multiprocessing.Pool on each node, distributed by CPUs.",
)
ARMS = (RAY, EMPTY_TRIALS, SEQUENTIAL, POOL)


def order(arms: Sequence[Arm], search: Search) -> list[Arm]:
    """The arms of a turn. A pool is dealt its trials beforehand: what Optuna chose is known after Ray's search alone."""
    found = list(arms)
    if search == "optuna" and {RAY, POOL} <= set(found):
        places = sorted([found.index(RAY), found.index(POOL)])
        found[places[0]], found[places[1]] = RAY, POOL
    return found
