"""Plans the session that confirms an alarm: it measures the alarmed cells of a stored session again."""

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
"""Confidence level of the comparison with the fresh session, which has the alarm's own baseline, so that their errors correlate:
at 95 % some 0.8 % of comparisons without a difference would be confirmed alarms, at 98 % some 0.3 %."""


def fresh(session: Session, runs: Collection[Run], alarms: Collection[SessionRow], *, command: str) -> Session:
    """Return a new Session of the cells of `alarms`, in the order of `session`, with its seed, topologies and measured blocks.

    For an alarm on one topology, that topology is measured; for one on the ratio of two, both are.
    """
    measured_blocks = {run.spec.block for run in runs if run.status == "ok"}
    alarmed = {(row.experiment, row.cell, name) for row in alarms for name in row.where.split("/")}
    now = datetime.now(UTC)
    session_id = f"{now:%Y%m%d-%H%M%S}-confirm-{secrets.token_hex(2)}"
    specs = tuple(
        replace(spec, session=session_id, attempt=1)
        for spec in session.specs
        if spec.block in measured_blocks and (spec.experiment, spec.cell, spec.topology.name) in alarmed
    )
    names = {spec.experiment for spec in specs}
    return replace(
        session,
        id=session_id,
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
    """Raise NotComparable if `session` was measured by other code than this raymeter's, which could not repeat it."""
    code = identity.code_hash()
    hashes = {node.code_hash for run in runs if run.facts for node in run.facts.nodes}
    if hashes - {code}:
        raise NotComparable(
            f"{session.id} was measured by code {', '.join(sorted(hashes))}, and this is {code}.",
            "Confirm with the raymeter that measured the candidate.",
        )
