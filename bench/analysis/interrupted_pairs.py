"""Finds pairs whose two runs were not measured together, because the session stopped in a block and went on much later.

Pairing removes what both runs share, and these share nothing. The run that was measured first is left out, or both if a reboot
makes their order unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise

from bench.analysis.table import Table
from bench.model import Interval, Run

MOST_GAP_SECONDS = 3600.0  # in which nothing of a block was measured; starting a cluster and a quiet check take minutes
Gaps = Mapping[str, Collection[tuple[float, float]]]

REBOOT = "the machine was booted anew before its other half was measured"


def halves(table: Table) -> dict[str, str]:
    """Return, by Spec, each usable run whose partner was not measured together with it, and the reason."""
    blocks: dict[int, list[Run]] = {}
    for run in table.runs:
        if run.spec.id in table.covered:
            blocks.setdefault(run.spec.block, []).append(run)
    reasons: dict[str, str] = {}
    for block in blocks.values():
        gaps = _gaps(block, table.covered)
        if _boots(block) > 1 or gaps:
            reasons |= _of_one_block(block, table.covered, gaps)
    return reasons


def _of_one_block(runs: Collection[Run], covered: Mapping[str, Interval], gaps: Gaps) -> dict[str, str]:
    reasons: dict[str, str] = {}
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.status == "ok":
            cells.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
    for cell in cells.values():
        for one, other in ((a, b) for a in cell for b in cell if a.spec.topology != b.spec.topology):
            if reason := _reason(one, other, covered, gaps):
                reasons[one.spec.id] = reason
    return reasons


def _reason(first: Run, then: Run, covered: Mapping[str, Interval], gaps: Gaps) -> str:
    """Return why `first`, measured before `then`, is not paired with it; empty if it is, or if it was measured later."""
    if (
        first.quiet_check
        and then.quiet_check
        and "" not in (boots := {first.quiet_check.boot_id, then.quiet_check.boot_id})
        and len(boots) > 1
    ):
        # A boot resets the clock, so their order is unknown: both are left out.
        return REBOOT
    if _clock(first) != _clock(then):
        return ""
    between = [
        end - begin
        for begin, end in gaps.get(_clock(first), ())
        if covered[first.spec.id].end <= begin and end <= covered[then.spec.id].begin
    ]
    return f"its other half was measured {max(between) / 3600:.0f} h later" if between else ""


def _boots(runs: Collection[Run]) -> int:
    """Count the boots of the machine that the session ran on."""
    return len({run.quiet_check.boot_id for run in runs if run.quiet_check and run.quiet_check.boot_id})


def _gaps(runs: Collection[Run], covered: Mapping[str, Interval]) -> Gaps:
    """Return the long times, by clock, in which nothing of a block was measured."""
    on_clock: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        if clock := _clock(run):
            interval = covered[run.spec.id]
            on_clock.setdefault(clock, []).append((interval.begin, interval.end))
    return {
        clock: gaps
        for clock, intervals in on_clock.items()
        if (gaps := [(a, b) for (_, a), (b, _) in pairwise(sorted(intervals)) if b - a > MOST_GAP_SECONDS])
    }


def _clock(run: Run) -> str:
    """Return the id of the monotonic clock that the driver used: the boot of the head's machine."""
    return run.facts.nodes[0].boot_id if run.facts and run.facts.nodes else ""


def without(table: Table) -> dict[str, Run]:
    """Mark the runs whose pairs were interrupted as invalid; return all runs by Spec."""
    reasons = halves(table)
    runs = {run.spec.id: run for run in table.runs}
    return runs | {key: replace(runs[key], status="invalid", reasons=(reason,)) for key, reason in reasons.items()}
