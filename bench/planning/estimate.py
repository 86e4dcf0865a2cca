"""Estimates how long a session takes, within which bounds, and says what the estimate was made from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from bench.counts import plural
from bench.model import Session, Spec
from bench.planning import calibration
from bench.planning.plan import Known, cluster_seconds, format_duration, is_known, run_seconds, sum_seconds

CALIBRATE_FROM_SECONDS = 600.0  # of guesses: the few seconds that a calibration takes are then worth it
# By which the truth may be more or less. Earlier sessions vary by this; guesses were within 1.5 on the machine they were made
# on (`task time:plans`), and another machine does not differ by the same factor in all that it does.
WITHIN_EARLIER, WITHIN_CALIBRATED, WITHIN_GUESSED = 1.2, 2.0, 3.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """How long a session takes, in seconds: about, at least and at most."""

    seconds: float
    least_seconds: float
    most_seconds: float
    runs: int
    earlier_runs: int  # whose like were measured in earlier sessions
    slowness: float | None  # of this machine, as a calibration found; None: it was not calibrated

    def describe(self) -> str:
        """12 runs, about 4 min (3 min to 5 min), as in earlier sessions."""
        guessed = self.runs - self.earlier_runs
        earlier = (
            f"{self.earlier_runs if guessed else 'all'} of them as in earlier sessions" if self.earlier_runs else ""
        )
        scaled = (
            ""
            if self.slowness is None
            else f" and scaled by {self.slowness:.2g}, as a calibration of this machine found"
        )
        guess = f"{guessed if earlier else 'all'} of them guessed{scaled}" if guessed else ""
        sources = ", ".join(filter(None, (earlier, guess)))
        return (
            f"{plural(self.runs, 'run')}, about {format_duration(self.seconds)} ({format_duration(self.least_seconds)} to"
            f" {format_duration(self.most_seconds)}): {sources}."
        )


def calibrated(session: Session, known: Known, *, wanted: bool | None) -> Known:
    """`known`, with the slowness of this machine where it is asked for; None: where long runs are guessed."""
    guessed = [spec for spec in session.specs if not is_known(spec, known)]
    if wanted is None:
        wanted = sum_seconds(guessed, known) > CALIBRATE_FROM_SECONDS
    return replace(known, slowness=calibration.slowness()) if wanted and guessed else known


def estimate(session: Session, known: Known) -> Estimate:
    """Of all runs, with waits and clusters."""
    specs = session.specs
    total, earlier = sum_seconds(specs, known), [spec for spec in specs if is_known(spec, known)]
    measured = _sum_runs(earlier, known)
    around = total - _sum_runs(specs, known)  # waits and clusters are known as soon as any run is
    measured += around if known.clusters else 0.0
    guessed = total - measured
    within = WITHIN_GUESSED if known.slowness is None else WITHIN_CALIBRATED
    return Estimate(
        seconds=total,
        least_seconds=measured / WITHIN_EARLIER + guessed / within,
        most_seconds=measured * WITHIN_EARLIER + guessed * within,
        runs=len(specs),
        earlier_runs=len(earlier),
        slowness=known.slowness if len(earlier) < len(specs) else None,
    )


def _sum_runs(specs: Sequence[Spec], known: Known) -> float:
    return sum(run_seconds(spec, known) for spec in specs)


@dataclass
class Pace:
    """How long the runs `todo` still take: as estimated, corrected by how the estimates of those that ended have held."""

    todo: Sequence[Spec]
    known: Known
    ended: int = 0  # the first runs of `todo`
    _begun: float = field(default_factory=time.monotonic)

    @property
    def left_seconds(self) -> float:
        """Until the last run ends."""
        total, done = self._estimates[-1], self._estimates[self.ended]
        took = time.monotonic() - self._begun
        pace = took / done if self.ended and done else 1.0
        return max(total - done, 0.0) * pace

    @cached_property
    def _estimates(self) -> Sequence[float]:
        """Seconds until the first so many runs have ended, each with its share of the time that clusters take to start."""
        clusters = {(spec.block, spec.topology.name) for spec in self.todo}
        share = sum(cluster_seconds(name, self.known) for _, name in clusters) / max(len(self.todo), 1)
        return list(accumulate((run_seconds(spec, self.known) + share for spec in self.todo), initial=0.0))
