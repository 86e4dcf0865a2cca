"""Writes a session's progress and its report so far as gauges, which Prometheus keeps for the boards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.number_format import label
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import Estimate
from bench.model import Session
from bench.prometheus.session_gauges import SENT, Gauge

MOST_LETTERS = 400  # of a text


@dataclass(frozen=True, kw_only=True)
class SessionProgress:
    """How far a session is: its runs, and the estimated time until its end."""

    runs_done: int
    blocks_done: int
    left_seconds: float


def render(session: Session, progress: SessionProgress, report: Report | None, *, at: int) -> tuple[Gauge, ...]:
    """All gauges of a session at the time `at`, in Unix seconds. `report`: of the blocks so far; None before the first ends."""
    return (
        Gauge(name=SENT, labels=(session.id,), value=at),
        *_progress(session, progress),
        *(_results(session, report, at) if report else ()),
    )


def _progress(session: Session, progress: SessionProgress) -> Iterator[Gauge]:
    values = {
        "runs_wanted": len(session.specs),
        "runs_done": progress.runs_done,
        "blocks_wanted": len({spec.block for spec in session.specs}),
        "blocks_done": progress.blocks_done,
        "left_seconds": progress.left_seconds,
    }
    for name, value in values.items():
        yield Gauge(name=f"bench_session_{name}", labels=(session.id,), value=value)


def _results(session: Session, report: Report, at: int) -> Iterator[Gauge]:
    caveats = dict.fromkeys((each.severity, each.about, _short(each.text)) for each in report.caveats)
    for caveat in caveats:
        yield Gauge(name="bench_caveat", labels=(session.id, *caveat), value=at)
    for block, reasons in report.excluded_blocks.items():
        yield Gauge(name="bench_block_excluded", labels=(session.id, f"{block:02d}", _short(reasons[0])), value=at)
    titles = {(spec.experiment, spec.cell): spec.cell_title or spec.cell for spec in session.specs}
    for cell in report.cells:
        key = (session.id, cell.experiment, cell.cell, titles[cell.experiment, cell.cell])
        for name, labels, value in _of_cell(cell, at):
            yield Gauge(name=f"bench_cell_{name}", labels=(*key, *labels), value=value)


Entry = tuple[str, tuple[str, ...], float]
"""The end of a family's name, the labels after those of the cell, and the value."""


def _of_cell(cell: CellReport, at: int) -> Iterator[Entry]:
    if cell.headline:
        yield from _headline(cell, cell.headline, at)
    payload = [row for row in cell.rows if row.metric.means == "payload"]
    for row in (*cell.usage, *payload):
        yield from _used(row)
    yield from _shares(cell)
    yield from _gap(cell)
    for node in cell.nodes:
        amounts = {"share of work": node.share_of_work, "CPU use": node.cpu_percent}
        for quantity, value in amounts.items():
            if value is not None:
                yield "node", (node.topology, node.node, quantity), value
    for row in cell.sweeps:
        if row.arm == cell.subject and row.metric.load:
            yield from _percentile(row)


def _shares(cell: CellReport) -> Iterator[Entry]:
    """The subject's headline beside that of each other arm."""
    for row in cell.arms:
        if cell.headline and row.metric == cell.headline.metric.name and row.share:
            yield "share", (row.topology, row.arm.name, row.arm.role), row.share.value


def _percentile(row: MetricRow) -> Iterator[Entry]:
    """A percentile at one load."""
    if row.metric.percentile is not None:
        named = (row.metric.distribution, f"{row.metric.percentile:g}", row.metric.unit)
        for topology, side in row.sides.items():
            if side.estimate:
                yield "percentile", (topology, row.point, *named), side.estimate.value


def _headline(cell: CellReport, row: MetricRow, at: int) -> Iterator[Entry]:
    for topology, side in row.sides.items():
        for name, value in _ends(side.estimate, "median"):
            yield "value", (topology, name), value
    found = row.comparison
    if found is None:
        return
    yield "verdict", (found.verdict or "no verdict", _short(found.why)), at
    yield "pairs", (), found.pairs
    if found.ratio:
        for name, value in (*_ends(found.ratio, "ratio"), ("gain", cell.gain)):
            yield "ratio", (name,), value


def _ends(estimate: Estimate | None, name: str) -> Iterator[tuple[str, float]]:
    """The value of an estimate, and the ends of its interval if it has one."""
    values = {name: estimate.value, "low": estimate.low, "high": estimate.high} if estimate else {}
    yield from ((name, value) for name, value in values.items() if value is not None)


def _used(row: MetricRow) -> Iterator[Entry]:
    """What a unit of work used; without what cannot be told from idle traffic."""
    labels = (row.metric.means or label(row.metric), row.metric.unit)
    for topology, side in row.sides.items():
        if side.estimate and not side.like_idle:
            yield "used", (topology, *labels), side.estimate.value


def _gap(cell: CellReport) -> Iterator[Entry]:
    """The parts of what multi needs longer, as shares of the time of single: so cells of all sizes have one axis."""
    found = cell.network_breakdown
    if found is None or found.baseline not in found.seconds:
        return
    for part in found.parts:
        if part.seconds:
            yield "gap", (part.name,), part.seconds.value / found.seconds[found.baseline].value


def _short(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
