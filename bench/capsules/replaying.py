"""Does the session of a capsule again, as far as a stranger may say what is to be done, and compares the verdicts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bench import params
from bench.errors import BadInput
from bench.identity import describe_revision
from bench.model import Session, Spec, Value
from bench.planning import arms, needs, plan

if TYPE_CHECKING:
    from bench.analysis import Report
    from bench.analysis.rows import MetricRow
    from bench.analysis.stats.estimates import Estimate


BADGE_REPLAYS = 3


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One comparison, as the capsule has it and as it came out here. None: no verdict."""

    about: str
    there: str | None
    here: str | None
    headline: bool = False
    overlap: bool | None = None  # of the intervals of the two ratios; None: one of them has none

    @property
    def agrees(self) -> bool:
        """Whether both have the same verdict."""
        return self.there == self.here and self.there is not None


def again(session: Session, *, target: str, options: Mapping[str, Value], command: str) -> Session:
    """A new Session with the runs of `session`, in its order. Raises what `needs.check` has against one.

    Target and options are the user's own: a capsule's may name commands, images and clusters.
    """
    names = tuple(session.metrics)
    now = datetime.now(UTC)
    identity = f"{now:%Y%m%d-%H%M%S}-replay-{secrets.token_hex(2)}"
    if not session.specs:
        raise BadInput(f"{session.id} has no runs.", "There is nothing to do again.")
    for profiler in {spec.profile_with for spec in session.specs} - {""}:
        needs.check_profiler(profiler, target)
    specs = [_spec(spec, identity) for spec in session.specs]
    for spec in {(spec.experiment, spec.cell, spec.topology.name): spec for spec in specs}.values():
        needs.check(spec, [spec.topology], target)
    return replace(
        session,
        id=identity,
        created=now.isoformat(timespec="seconds"),
        target=target,
        options=options,
        allow_noise=False,
        allow_unequal=False,
        ended="",
        dropped=(),
        command=command,
        revision=describe_revision(),
        metrics={name: plan.experiment(name).metrics for name in names},
        arms={name: arms.measured(name, specs) for name in names},
        specs=tuple(map(needs.complete, specs)),
    )


def _spec(spec: Spec, identity: str) -> Spec:
    """A Spec with params that its experiment declares, within their bounds."""
    subject = plan.experiment(spec.experiment)
    cell = params.complete(subject.params, spec.params)
    subject.params(**cell)  # refuses what does not go together
    return replace(spec, session=identity, params=cell, attempt=1)


def agreements(there: Report, here: Report) -> list[Agreement]:
    """The verdict on every comparison of the capsule's report, beside that of this one."""
    of_here = dict(_compared(here))
    return [_agreement(key, row, of_here.get(key)) for key, row in _compared(there)]


def _agreement(key: str, there: MetricRow, here: MetricRow | None) -> Agreement:
    one, other = there.comparison, here.comparison if here else None
    return Agreement(
        about=key,
        there=one.verdict if one else None,
        here=other.verdict if other else None,
        headline=there.headline,
        overlap=_overlap(one.ratio if one else None, other.ratio if other else None),
    )


def _overlap(one: Estimate | None, other: Estimate | None) -> bool | None:
    """Whether the two intervals have a value in common."""
    if not (one and other) or one.low is None or one.high is None or other.low is None or other.high is None:
        return None
    return max(one.low, other.low) <= min(one.high, other.high)


def is_reproduced(found: Sequence[Agreement]) -> bool:
    """Whether every headline has its verdict again, and an interval that overlaps; False where none had a verdict."""
    judged = [each for each in found if each.headline and each.there]
    return bool(judged) and all(each.agrees and each.overlap for each in judged)


def has_badge(reproduced: Sequence[bool]) -> bool:
    """Whether a capsule may be called reproducible: three replays or more, and each of them came out as it did."""
    return len(reproduced) >= BADGE_REPLAYS and all(reproduced)


def _compared(report: Report) -> list[tuple[str, MetricRow]]:
    return [
        (" ".join(word for word in (cell.experiment, cell.cell, row.metric.name, row.arm, row.point) if word), row)
        for cell in report.cells
        for row in (*cell.rows, *cell.usage, *cell.sweeps)
        if row.comparison
    ]


def changed_versions(there: Report, here: Report) -> list[str]:
    """What was pinned there, and is another here."""
    return [
        f"{name}: {there.versions.get(name, 'none')} there, {here.versions.get(name, 'none')} here"
        for name in sorted({*there.versions, *here.versions})
        if there.versions.get(name) != here.versions.get(name)
    ]
