"""The tables of a report: values and words, whatever format they are written in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.analysis import Report
from bench.analysis.arms import ArmRow, cost_of_measuring
from bench.analysis.cells import CellReport
from bench.analysis.comparison import Comparison, Side, Verdict
from bench.analysis.numbers import Scale, label, percent, plain, quantity, ratio, scale_for, with_interval
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT, Estimate
from bench.analysis.usage import NodeRow
from bench.model import Metric
from bench.reports.sections import grid
from bench.reports.sections.grid import Cell, Column, Table, Tone

NOTHING = "-"
_PERCENT = Scale(0.01, "")
TONES: Mapping[str, Tone] = {"faster": "good", "slower": "bad", "equivalent": "good", "undecided": "open"}


def summary(report: Report) -> Table:
    """A line a cell: the headline on each topology, the ratio, a picture of its interval, the verdict."""
    topologies = [topology.name for topology in report.topologies]
    rows = [(cell, row) for cell in report.cells if (row := cell.headline) is not None]
    compared = [row.comparison for _, row in rows if row.comparison]
    axis = Axis.of([each.ratio for each in compared if each.ratio and each.ratio.n >= FEWEST_FOR_VERDICT])
    heads = [(ratio_head(compared[0]), True), ("verdict", False)] if compared else []
    picture = [Column(axis.head, is_picture=True)] if axis else []
    lines = []
    several = len({cell.experiment for cell in report.cells}) > 1
    for cell, row in rows:
        scale, name = row_scale(row), f"{cell.experiment} {cell.cell}" if several else cell.cell
        values = [side_in_words(row.sides.get(topology), scale, row) for topology in topologies]
        bar = [axis.bar(row.comparison.ratio if row.comparison else None)] if axis else []
        ratio_cells = ratio_and_verdict(row) if compared else []
        named = " ".join(filter(None, (name, cell.title, *(f"({mark})" for mark in cell.marks))))
        lines.append(grid.row([named, scale.unit, *values, *bar, *ratio_cells]))
    return grid.table(
        [("cell", False), ("unit", False), *((name, True) for name in topologies), *picture, *heads], lines
    )


def ratio_head(comparison: Comparison) -> str:
    """multi/single."""
    return f"{comparison.candidate}/{comparison.baseline}"


@dataclass(frozen=True)
class Axis:
    """From the least to the greatest of several intervals, and 1 with them, on the scale of ratios."""

    low: float
    high: float
    cells: int = 17

    @classmethod
    def of(cls, ratios: Sequence[Estimate]) -> Axis | None:
        """The axis that holds all of `ratios`, if there are any."""
        if not ratios:
            return None
        ends = [end for each in ratios for end in (each.value, each.low, each.high) if end is not None and end > 0]
        return cls(min([*ends, 1 / 1.05]), max([*ends, 1.05]))

    @property
    def head(self) -> str:
        """What the ends are."""
        return f"{self.low:.2f} {'(| is 1)':^{self.cells - 10}} {self.high:.2f}"

    def _cell(self, ratio: float) -> int:
        part = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(part * (self.cells - 1))

    def bar(self, ratio: Estimate | None) -> str:
        """The interval as a line with its estimate on it; | stands at 1."""
        marks = [" "] * self.cells
        marks[self._cell(1.0)] = "|"
        if ratio is None:
            return ""
        if ratio.low is not None and ratio.high is not None:
            begin, end = self._cell(ratio.low), self._cell(ratio.high)
            marks[begin : end + 1] = "-" * (end - begin + 1)
            if begin <= self._cell(1.0) <= end:
                marks[self._cell(1.0)] = "+"
        marks[self._cell(ratio.value)] = "o"
        return "".join(marks)


def metrics(rows: Sequence[MetricRow], topologies: Sequence[str]) -> Table:
    """Each metric on each topology, with the ratio and the verdict where there are two."""
    compared = next((row.comparison for row in rows if row.comparison), None)
    shows = any(_smallest(row.comparison) for row in rows)
    columns = [("metric", False), ("unit", False), *((name, True) for name in topologies)]
    if compared:
        columns += [(ratio_head(compared), True), ("verdict", False)]
        columns += [("could show", True)] if shows else []
    else:
        columns += [(f"5-95 % on {name}", True) for name in topologies]
    lines = []
    for row in rows:
        scale = row_scale(row)
        cells: list[Cell | str] = [
            Cell(label(row.metric), "strong" if row.headline else ""),
            scale.unit,
            *(side_in_words(row.sides.get(name), scale, row) for name in topologies),
        ]
        if compared:
            cells += ratio_and_verdict(row) + ([_smallest(row.comparison)] if shows else [])
        else:
            cells += [_range(row.sides.get(name), scale) for name in topologies]
        lines.append(grid.row(cells, is_headline=row.headline))
    return grid.table(columns, lines)


def _smallest(found: Comparison | None) -> str:
    return percent(found.smallest_effect) if found and found.smallest_effect is not None else ""


def row_scale(row: MetricRow) -> Scale:
    """The unit and prefix that fit all values of a row."""
    return scale_for(row.metric, [side.estimate.value for side in row.sides.values() if side.estimate])


def side_in_words(side: Side | None, scale: Scale, row: MetricRow) -> str:
    """A median and its interval, and how many values it has where that is not clear from the pairs."""
    if side is None or side.estimate is None:
        return NOTHING
    pairs = row.comparison.pairs if row.comparison else side.estimate.n
    few = f" (n {side.estimate.n})" if pairs and side.estimate.n != pairs else ""
    return with_interval(side.estimate, scale) + few


def _range(side: Side | None, scale: Scale) -> str:
    if side is None or side.spread is None:
        return NOTHING
    return f"{plain(side.spread.p05 / scale.divisor)} to {plain(side.spread.p95 / scale.divisor)}"


def ratio_and_verdict(row: MetricRow) -> list[Cell | str]:
    """Two cells of a table."""
    found = row.comparison
    if found is None or found.ratio is None:
        return [NOTHING, ""]
    return [ratio(found.ratio), Cell(verdict(row.metric, found), TONES.get(found.verdict or "", ""))]


def verdict(metric: Metric, found: Comparison) -> str:
    """The verdict in a word; sizes, shares and counts are no faster or slower, but higher or lower."""
    if found.verdict is None:
        return "refused" if found.refused else "too few"
    return found.verdict if found.ratio is None else verdict_word(metric, found.verdict, found.ratio.value)


def verdict_word(metric: Metric, found: Verdict, ratio: float) -> str:
    """faster and slower as they are said of `metric`."""
    if found in ("faster", "slower") and metric.kind not in ("rate", "time"):
        return "higher" if ratio > 1 else "lower"
    return found


def notes(cell: CellReport) -> Iterator[str]:
    """Why a row is empty, what was undecided, which pairs are missing."""
    empty: dict[str, list[str]] = {}
    for row in cell.rows:
        reasons = dict.fromkeys(reason for side in row.sides.values() for reason in side.missing.values())
        if not any(side.values for side in row.sides.values()):
            empty.setdefault("; ".join(list(reasons)[:3]), []).append(label(row.metric))
    for reason, names in empty.items():
        what = "nothing" if len(names) == len(cell.rows) else f"no {', no '.join(names)}"
        yield f"{what} measured: {reason}" if reason else f"{what} measured"
    headline = cell.headline
    found = headline.comparison if headline else None
    if headline and found and found.missing and found.pairs:
        gaps: dict[str, list[int]] = {}
        for block, why in found.missing.items():
            gaps.setdefault(why, []).append(block)
        yield "no pair in " + "; ".join(f"block {', '.join(map(str, blocks))} ({why})" for why, blocks in gaps.items())
    if headline and found and found.verdict == "undecided":
        yield f"{label(headline.metric)} is undecided: {found.why}"


def is_used(row: MetricRow) -> bool:
    """Whether anything but 0 was counted."""
    return any(any(side.values.values()) for side in row.sides.values())


def costs(cell: CellReport, topologies: Sequence[str]) -> Table | None:
    """What was used of network, CPU, memory and disk, where anything was; payload beside what went over the wire."""
    rows = [row for row in cell.usage if is_used(row)]
    if not rows:
        return None
    payload = [row for row in cell.rows if row.metric.means == "payload"]
    compared = next((row.comparison for row in rows if row.comparison), None)
    heads = [(ratio_head(compared), True), ("verdict", False)] if compared else []
    lines = []
    for row in [*payload, *rows]:
        scale = row_scale(row)
        values = [side_in_words(row.sides.get(name), scale, row) for name in topologies]
        ratio_cells = ratio_and_verdict(row) if row.comparison and row in rows else []
        lines.append(grid.row([label(row.metric), scale.unit, *values, *ratio_cells]))
    return grid.table([("used", False), ("unit", False), *((name, True) for name in topologies), *heads], lines)


def not_counted(cell: CellReport) -> Iterator[str]:
    """The names of what was 0, of what could not be counted, and of what idle traffic hides."""
    zero = [row for row in cell.usage if _counted(row.sides) and not is_used(row)]
    unknown = [row for row in cell.usage if not _counted(row.sides)]
    for words, rows in (("zero", zero), ("not counted here", unknown)):
        if rows:
            yield (f"{words}: {', '.join(label(row.metric) for row in rows)}")
    below = [row for row in cell.usage if any(side.estimate and side.estimate.value < 0 for side in row.sides.values())]
    if below:
        yield f"below 0, since idle traffic varies more than the work sends: {', '.join(label(row.metric) for row in below)}"


def _counted(sides: Mapping[str, Side]) -> bool:
    return any(side.values for side in sides.values())


def headline_unit(cell: CellReport) -> str:
    """What the table of arms shows, and in what unit."""
    metric = cell.rows[0].metric
    return f"{label(metric)} in {_arms_scale(cell).unit}"


def _arms_scale(cell: CellReport) -> Scale:
    metric = cell.rows[0].metric
    rows = [row for row in cell.arms if row.metric == metric.name]
    return scale_for(metric, [row.side.estimate.value for row in rows if row.side.estimate])


def arms(cell: CellReport, topologies: Sequence[str]) -> Table:
    """Each arm's value of the headline, and the subject's share of it."""
    rows = [row for row in cell.arms if row.metric == cell.rows[0].metric.name]
    scale = _arms_scale(cell)
    heads = [column for name in topologies for column in ((name, True), ("share", True))]
    lines = []
    for name in dict.fromkeys(row.arm.name for row in rows):
        those = {row.topology: row for row in rows if row.arm.name == name}
        role = next(iter(those.values())).arm.role
        values = [words for topology in topologies for words in _arm(those.get(topology), scale)]
        lines.append(grid.row([name, role, *values]))
    return grid.table([("arm", False), ("role", False), *heads], lines)


def _arm(row: ArmRow | None, scale: Scale) -> tuple[str, str]:
    if row is None or row.side.estimate is None:
        return NOTHING, ""
    return with_interval(row.side.estimate, scale), "" if row.share is None else ratio(row.share)


def cost_of_measuring_lines(cell: CellReport) -> Iterator[str]:
    """What watching costs, where the same work was also done unwatched."""
    costs = {
        row.topology: cost
        for row in cell.arms
        if row.arm.role == "control" and row.metric == cell.rows[0].metric.name and (cost := cost_of_measuring(row))
    }
    if costs:
        parts = (f"{with_interval(cost, _PERCENT)} % on {topology}" for topology, cost in costs.items())
        yield (f"measuring itself costs this much {label(cell.rows[0].metric)}: {', '.join(parts)}")


def nodes(cell: CellReport) -> Table:
    """A row a node: share of the work, CPU, bytes in and out, peaks."""
    columns = _node_columns(cell.unit)
    shown = [column for column in columns if any(getattr(row, column[1]) is not None for row in cell.nodes)]
    heads = [("topology", False), ("node", False), *((head, True) for head, _, _ in shown)]
    return grid.table(
        heads,
        (
            grid.row([row.topology, row.node, *(_of_node(row, field, metric) for _, field, metric in shown)])
            for row in cell.nodes
        ),
    )


def _node_columns(unit: str) -> tuple[tuple[str, str, Metric | None], ...]:
    cpu = Metric(name="", unit="s", better="lower", kind="time")
    size = Metric(name="", unit="B", better="lower", kind="size")
    rate = Metric(name="", unit="B/s", better="lower", kind="rate")
    count = Metric(name="", unit="", better="lower", kind="count")
    return (
        ("work", "share_of_work", None),
        (f"CPU/{unit}", "cpu_seconds_per_unit", cpu),
        (f"sent/{unit}", "sent_bytes_per_unit", size),
        (f"received/{unit}", "received_bytes_per_unit", size),
        ("idle", "idle_bytes_per_second", rate),
        ("peak", "peak_bytes_per_second", rate),
        ("retransmits", "retransmits", count),
        ("peak memory", "peak_memory_bytes", size),
        ("throttled", "throttled_share", None),
    )


def _of_node(row: NodeRow, field: str, metric: Metric | None) -> str:
    value = getattr(row, field)
    if value is None:
        return NOTHING
    return percent(value) if metric is None else quantity(metric, value)
