"""The fresh session that confirms an alarm: the alarmed cells of a stored session, measured once more."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bench import identity
from bench.errors import NotComparable
from bench.model import Run, Session

if TYPE_CHECKING:
    from bench.analysis.two_sessions import SessionRow

LEVEL = 0.98
"""Of the comparison with the fresh session. Its baseline is the one that the alarm came from, whose luck is in both: at
95 % some 0.8 % of comparisons without a difference would be confirmed alarms, at 98 % it is some 0.3 %."""


def fresh(session: Session, runs: Collection[Run], alarms: Collection[SessionRow], *, command: str) -> Session:
    """A new Session of the cells of `alarms`, in the order of `session`, with its seed, topologies and measured blocks.

    An alarm on one topology is measured on that one; one on the ratio of two, on both.
    """
    begun = {run.spec.block for run in runs if run.status == "ok"}
    wanted = {(row.experiment, row.cell, name) for row in alarms for name in row.where.split("/")}
    now = datetime.now(UTC)
    identity_ = f"{now:%Y%m%d-%H%M%S}-confirm-{secrets.token_hex(2)}"
    specs = tuple(
        replace(spec, session=identity_, attempt=1)
        for spec in session.specs
        if spec.block in begun and (spec.experiment, spec.cell, spec.topology.name) in wanted
    )
    names = {spec.experiment for spec in specs}
    return replace(
        session,
        id=identity_,
        created=now.isoformat(timespec="seconds"),
        command=command,
        metrics={name: metrics for name, metrics in session.metrics.items() if name in names},
        arms={name: arms for name, arms in session.arms.items() if name in names},
        specs=specs,
        ended="",
        dropped=(),
        precision="",
        budget="",
    )


def check_code(session: Session, runs: list[Run]) -> None:
    """Raise NotComparable where this raymeter is not the one that measured `session`: it cannot measure it anew."""
    code = identity.code_hash()
    found = {node.code_hash for run in runs if run.facts for node in run.facts.nodes}
    if found - {code}:
        raise NotComparable(
            f"{session.id} was measured by code {', '.join(sorted(found))}, and this is {code}.",
            "Confirm with the raymeter that measured the candidate.",
        )
