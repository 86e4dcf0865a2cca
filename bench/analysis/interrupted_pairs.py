"""Pairs whose halves were not measured together: the session stopped within a block, and went on much later or after a reboot.

Pairing takes out what both halves share, and these share nothing. The half that was measured first is left out,
or both where a boot leaves that unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise

from bench.analysis.table import Table
from bench.model import Interval, Run

MOST_GAP_SECONDS = 3600.0  # in which nothing of a block was measured; a cluster's start and a quiet check take minutes
Gaps = Mapping[str, Collection[tuple[float, float]]]

REBOOT = "the machine was booted anew before its other half was measured"


def halves(table: Table) -> dict[str, str]:
    """By Spec: each usable run whose other half came apart from it, and why."""
    blocks: dict[int, list[Run]] = {}
    for run in table.runs:
        if run.spec.id in table.covered:
            blocks.setdefault(run.spec.block, []).append(run)
    found: dict[str, str] = {}
    for block in blocks.values():
        gaps = _gaps(block, table.covered)
        if _boots(block) > 1 or gaps:
            found |= _of_one_block(block, table.covered, gaps)
    return found


def _of_one_block(runs: Collection[Run], covered: Mapping[str, Interval], gaps: Gaps) -> dict[str, str]:
    found: dict[str, str] = {}
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.status == "ok":
            cells.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
    for cell in cells.values():
        for one, other in ((a, b) for a in cell for b in cell if a.spec.topology != b.spec.topology):
            if why := _why(one, other, covered, gaps):
                found[one.spec.id] = why
    return found


def _why(first: Run, then: Run, covered: Mapping[str, Interval], gaps: Gaps) -> str:
    """Why `first`, which was measured before `then`, is no half of a pair with it; nothing where it is, or came later."""
    if (
        first.quiet_check
        and then.quiet_check
        and "" not in (boots := {first.quiet_check.boot_id, then.quiet_check.boot_id})
        and len(boots) > 1
    ):
        # Clocks begin anew with a boot, so which came first is not known: both are left out.
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
    """Of the machine that the session ran on."""
    return len({run.quiet_check.boot_id for run in runs if run.quiet_check and run.quiet_check.boot_id})


def _gaps(runs: Collection[Run], covered: Mapping[str, Interval]) -> Gaps:
    """By clock, the times in which nothing of a block was measured, where they are long."""
    on_clock: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        if clock := _clock(run):
            interval = covered[run.spec.id]
            on_clock.setdefault(clock, []).append((interval.begin, interval.end))
    return {
        clock: gaps
        for clock, those in on_clock.items()
        if (gaps := [(a, b) for (_, a), (b, _) in pairwise(sorted(those)) if b - a > MOST_GAP_SECONDS])
    }


def _clock(run: Run) -> str:
    """Whose monotonic clock the driver had: that of the head's machine, since it was booted."""
    return run.facts.nodes[0].boot_id if run.facts and run.facts.nodes else ""


def without(table: Table) -> dict[str, Run]:
    """Its runs by Spec, those that came apart from their other half not usable."""
    found = halves(table)
    runs = {run.spec.id: run for run in table.runs}
    return runs | {key: replace(runs[key], status="invalid", reasons=(why,)) for key, why in found.items()}
