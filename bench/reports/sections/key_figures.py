"""Picks the numbers of a report that are worth a glance: the largest change, the headline, the best peer, the gap, the network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.analysis.cells import CellReport, slowest
from bench.analysis.comparison import Side, is_enough
from bench.analysis.contrasts import Contrast
from bench.analysis.number_format import Scale, noun, percent, plain, ratio, scale_for
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import Estimate
from bench.counts import plural
from bench.model import Metric
from bench.reports import tables
from bench.reports.document import Figure


def entries(report: Report) -> Iterator[Figure]:
    """Those of each experiment, of the cell in which the candidate does worst."""
    for experiment in dict.fromkeys(cell.experiment for cell in report.cells):
        those = [cell for cell in report.cells if cell.experiment == experiment]
        yield from _largest_change([each for each in report.contrasts if each.experiment == experiment])
        cell = slowest(those)
        name = f"{experiment} {cell.cell}" if len(those) < len(report.cells) else cell.cell
        yield from _of_cell(cell, f", {name}" if len(report.cells) > 1 else "")


def _largest_change(contrasts: Sequence[Contrast]) -> Iterator[Figure]:
    """The change with the largest factor on the last topology."""
    found = [
        (each, topology, row, comparison, comparison.ratio)
        for each in contrasts
        if each.headline and each.headline.rows
        for topology, row in list(each.headline.rows.items())[-1:]
        if (comparison := row.comparison) and comparison.ratio
    ]
    if found:
        change, topology, row, comparison, factor = max(found, key=lambda each: abs(math.log(each[4].value)))
        word = tables.verdict(row.metric, comparison)
        where = f", {change.where}" if change.where else ""
        yield Figure(
            value=plain(factor.value),
            unit="times",
            what=f"{noun(row.metric)} with {change.instead}{where}, on {topology}: {word}",
            more=f"{ratio(factor)}, {plural(comparison.pairs, 'pair')}",
            tone=tables.TONES.get(comparison.verdict or "", ""),
        )


def _of_cell(cell: CellReport, where: str) -> Iterator[Figure]:
    row = cell.headline
    if row is None:
        return
    yield from _headline(row, where)
    yield from _peer(cell, row, where)
    breakdown = cell.network_breakdown
    if breakdown and breakdown.gap:
        metric = Metric(name="gap", unit=f"s/{breakdown.unit}", better="lower", kind="time")
        share = breakdown.gap.value / breakdown.seconds[breakdown.baseline].value
        scale = scale_for(metric, [breakdown.gap.value])
        yield Figure(
            value=_signed(breakdown.gap.value / scale.divisor),
            unit=scale.unit,
            what=f"that {breakdown.candidate} takes longer than {breakdown.baseline}{where}",
            more=f"{percent(share)} of {breakdown.baseline}; 95 % interval {_interval(breakdown.gap, scale)}"
            if is_enough(breakdown.gap)
            else f"{percent(share)} of {breakdown.baseline}",
        )
    for used in cell.usage:
        if used.metric.means == "wire bytes":
            yield from _last_side(used, f"sent over the network{where}")


def _headline(row: MetricRow, where: str) -> Iterator[Figure]:
    found = row.comparison
    if found is None or found.ratio is None:
        yield from _last_side(row, f"{noun(row.metric)}{where}")
        return
    verdict = tables.ratio_and_verdict(row)[1]
    word, tone = (verdict.words, verdict.tone) if isinstance(verdict, tables.Cell) else (verdict, "")
    yield Figure(
        value=plain(found.ratio.value),
        unit="times",
        what=f"{noun(row.metric)} of {found.candidate} beside {found.baseline}{where}: {word}",
        more=f"{ratio(found.ratio)}, {plural(found.pairs, 'pair')}",
        tone=tone,
    )
    yield from _last_side(row, f"{noun(row.metric)}{where}")


def _last_side(row: MetricRow, what: str) -> Iterator[Figure]:
    """The value of the last topology, and that of the others beside it."""
    sides = [(name, side) for name, side in row.sides.items() if side.estimate]
    if not sides:
        return
    scale = tables.row_scale(row)
    *others, (name, side) = sides
    yield Figure(
        value=tables.format_median(side, scale, row),
        unit="" if side.like_idle else scale.unit,
        what=f"{what}, on {name}",
        more=", ".join(f"{_with_unit(other, scale, row)} on {topology}" for topology, other in others),
    )


def _with_unit(side: Side, scale: Scale, row: MetricRow) -> str:
    value = tables.format_median(side, scale, row)
    return value if side.like_idle else f"{value} {scale.unit}".strip()


def _peer(cell: CellReport, row: MetricRow, where: str) -> Iterator[Figure]:
    """The peer that does most beside the subject, on the last topology."""
    last = next(reversed(tuple(row.sides)), "")
    peers = [
        (arm.share, arm)
        for arm in cell.arms
        if arm.arm.role == "peer" and arm.metric == row.metric.name and arm.topology == last and arm.share
    ]
    if peers:
        share, arm = min(peers, key=lambda each: each[0].value)
        yield Figure(
            value=plain(1 / share.value),
            unit="times",
            what=f"{noun(row.metric)} of {arm.arm.name} beside {cell.subject}, on {last}{where}",
            more=f"{cell.subject}/{arm.arm.name} {ratio(share)}",
        )


def _interval(estimate: Estimate, scale: Scale) -> str:
    ends = [end for end in (estimate.low, estimate.high) if end is not None]
    return " to ".join(plain(end / scale.divisor) for end in ends)


def _signed(value: float) -> str:
    return f"+{plain(value)}" if value > 0 else plain(value)
