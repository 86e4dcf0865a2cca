"""Does the session of a capsule again, as far as a stranger may say what is to be done, and compares the verdicts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bench.errors import BadInput
from bench.identity import revision_in_words
from bench.model import Session, Spec, Value
from bench.planning import needs, params, plan

if TYPE_CHECKING:
    from bench.analysis import Report


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One comparison, as the capsule has it and as it came out here. None: no verdict."""

    about: str
    there: str | None
    here: str | None

    @property
    def agrees(self) -> bool:
        """Whether both have the same verdict."""
        return self.there == self.here and self.there is not None


def again(session: Session, *, target: str, options: Mapping[str, Value], command: str) -> Session:
    """A new Session with the runs of `session`, in its order. Raises BadInput where this raymeter cannot do them.

    Target and options are the user's own: a capsule's may name commands, images and clusters.
    """
    names = tuple(session.metrics)
    now = datetime.now(UTC)
    identity = f"{now:%Y%m%d-%H%M%S}-replay-{secrets.token_hex(2)}"
    if not session.specs:
        raise BadInput(f"{session.id} has no runs.", "There is nothing to do again.")
    for profiler in {spec.profile_with for spec in session.specs} - {""}:
        needs.check_profiler(profiler, target)
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
        revision=revision_in_words(),
        metrics={name: plan.experiment(name).METRICS for name in names},
        arms={name: plan.experiment(name).ARMS for name in names},
        specs=tuple(_spec(spec, identity) for spec in session.specs),
    )


def _spec(spec: Spec, identity: str) -> Spec:
    """A Spec with params that its experiment declares, within their bounds."""
    subject = plan.experiment(spec.experiment)
    cell = params.complete(subject.Params, spec.params)
    subject.Params(**cell)  # refuses what does not go together
    return replace(spec, session=identity, params=cell, attempt=1)


def agreements(there: Report, here: Report) -> list[Agreement]:
    """The verdict on every comparison of the capsule's report, beside that of this one."""
    of_here = dict(_verdicts(here))
    return [Agreement(about=key, there=verdict, here=of_here.get(key)) for key, verdict in _verdicts(there)]


def _verdicts(report: Report) -> list[tuple[str, str | None]]:
    return [
        (
            " ".join(word for word in (cell.experiment, cell.cell, row.metric.name, row.arm, row.point) if word),
            row.comparison.verdict,
        )
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
