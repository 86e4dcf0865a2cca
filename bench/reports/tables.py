"""The tables of the report for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.analysis import Report
from bench.analysis.arms import ArmRow, cost_of_measuring
from bench.analysis.cells import CellReport
from bench.analysis.comparison import Comparison, Side
from bench.analysis.numbers import Scale, label, percent, plain, quantity, ratio, scale_for, with_interval
from bench.analysis.rows import MetricRow
from bench.analysis.stats import FEWEST_FOR_VERDICT, Estimate
from bench.analysis.usage import NodeRow
from bench.model import Metric

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

NOTHING = "-"
_PERCENT = Scale(0.01, "")
_COLOURS = {"faster": "green", "slower": "red", "equivalent": "green", "below margin": "", "undecided": "yellow"}


def entries(rows: Sequence[tuple[str, str]], width: int, indent: int = 0) -> RenderableType:
    """Names and what they stand for, the second wrapped in its own column."""
    return signed([(name, words, "") for name, words in rows], width, indent)


def signed(rows: Sequence[tuple[str, str, str]], width: int, indent: int = 0) -> RenderableType:
    """Sentences with a name or a sign in front, and a style."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=True, padding=(0, 1, 0, indent), width=width)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for name, words, style in rows:
        table.add_row(Text(name, style=style), Text(words, style=style))
    return table


def blank(*columns: tuple[str, bool]) -> Table:
    """A table without rows: the heads of its columns, and whether they hold numbers."""
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=True, padding=(0, 1, 0, 1))
    for head, is_number in columns:
        table.add_column(head, justify="right" if is_number else "left", no_wrap=True)
    return table


def summary(report: Report) -> RenderableType:
    """A line a cell: the headline on each topology, the ratio, a picture of its interval, the verdict."""
    from rich.text import Text

    topologies = [topology.name for topology in report.topologies]
    rows = [(cell, row) for cell in report.cells if (row := cell.headline) is not None]
    compared = [row.comparison for _, row in rows if row.comparison]
    axis = Axis.of([each.ratio for each in compared if each.ratio and each.ratio.n >= FEWEST_FOR_VERDICT])
    heads = [(ratio_head(compared[0]), True), ("verdict", False)] if compared else []
    heads = [(axis.head, False), *heads] if axis else heads
    table = blank(("cell", False), ("unit", False), *((name, True) for name in topologies), *heads)
    several = len({cell.experiment for cell in report.cells}) > 1
    for cell, row in rows:
        scale, name = row_scale(row), f"{cell.experiment} {cell.cell}" if several else cell.cell
        values = [Text(side_in_words(row.sides.get(topology), scale, row)) for topology in topologies]
        picture = [Text(axis.bar(row.comparison.ratio if row.comparison else None))] if axis else []
        ratio_cells = ratio_and_verdict(row) if compared else []
        table.add_row(Text(f"{name} {cell.title}".strip()), Text(scale.unit), *values, *picture, *ratio_cells)
    return table


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


def metrics(rows: Sequence[MetricRow], topologies: Sequence[str]) -> RenderableType:
    """Each metric on each topology, with the ratio and the verdict where there are two."""
    from rich.text import Text

    compared = next((row.comparison for row in rows if row.comparison), None)
    shows = any(_smallest(row.comparison) for row in rows)
    columns = [("metric", False), ("unit", False), *((name, True) for name in topologies)]
    if compared:
        columns += [(ratio_head(compared), True), ("verdict", False)]
        columns += [("could show", True)] if shows else []
    else:
        columns += [(f"5-95 % on {name}", True) for name in topologies]
    table = blank(*columns)
    for row in rows:
        scale = row_scale(row)
        cells: list[RenderableType] = [
            Text(("* " if row.headline else "  ") + label(row.metric), style="bold" if row.headline else ""),
            Text(scale.unit),
            *(Text(side_in_words(row.sides.get(name), scale, row)) for name in topologies),
        ]
        if compared:
            cells += ratio_and_verdict(row) + ([Text(_smallest(row.comparison))] if shows else [])
        else:
            cells += [Text(_range(row.sides.get(name), scale)) for name in topologies]
        table.add_row(*cells)
    return table


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


def ratio_and_verdict(row: MetricRow) -> list[RenderableType]:
    """Two cells of a table."""
    from rich.text import Text

    found = row.comparison
    if found is None or found.ratio is None:
        return [Text(NOTHING), Text("")]
    return [Text(ratio(found.ratio)), Text(verdict(row.metric, found), style=_COLOURS.get(found.verdict or "", ""))]


def verdict(metric: Metric, found: Comparison) -> str:
    """The verdict in a word; sizes, shares and counts are no faster or slower, but higher or lower."""
    if found.verdict is None:
        return "refused" if found.refused else "too few"
    if found.verdict in ("faster", "slower") and metric.kind not in ("rate", "time") and found.ratio:
        return "higher" if found.ratio.value > 1 else "lower"
    return found.verdict


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


def costs(cell: CellReport, topologies: Sequence[str]) -> RenderableType | None:
    """What was used of network, CPU, memory and disk, where anything was; payload beside what went over the wire."""
    from rich.text import Text

    rows = [row for row in cell.usage if is_used(row)]
    if not rows:
        return None
    payload = [row for row in cell.rows if row.metric.name.startswith("payload_bytes_per_")]
    compared = next((row.comparison for row in rows if row.comparison), None)
    heads = [(ratio_head(compared), True), ("verdict", False)] if compared else []
    table = blank(("used", False), ("unit", False), *((name, True) for name in topologies), *heads)
    for row in [*payload, *rows]:
        scale = row_scale(row)
        ratio_cells = ratio_and_verdict(row) if row.comparison and row in rows else [Text(""), Text("")]
        table.add_row(
            Text(f"  {label(row.metric)}"),
            Text(scale.unit),
            *(Text(side_in_words(row.sides.get(name), scale, row)) for name in topologies),
            *(ratio_cells if compared else []),
        )
    return table


def not_counted(cell: CellReport) -> Iterator[str]:
    """The names of what was 0, and of what could not be counted."""
    zero = [row for row in cell.usage if _counted(row.sides) and not is_used(row)]
    unknown = [row for row in cell.usage if not _counted(row.sides)]
    for words, rows in (("zero", zero), ("not counted here", unknown)):
        if rows:
            yield (f"{words}: {', '.join(label(row.metric) for row in rows)}")


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


def arms(cell: CellReport, topologies: Sequence[str]) -> RenderableType:
    """Each arm's value of the headline, and the subject's share of it."""
    from rich.text import Text

    rows = [row for row in cell.arms if row.metric == cell.rows[0].metric.name]
    scale = _arms_scale(cell)
    heads = [column for name in topologies for column in ((name, True), ("share", True))]
    table = blank(("arm", False), ("role", False), *heads)
    for name in dict.fromkeys(row.arm.name for row in rows):
        those = {row.topology: row for row in rows if row.arm.name == name}
        role = next(iter(those.values())).arm.role
        values = [Text(words) for topology in topologies for words in _arm(those.get(topology), scale)]
        table.add_row(Text(f"  {name}"), Text(role), *values)
    return table


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


def nodes(cell: CellReport) -> RenderableType:
    """A row a node: share of the work, CPU, bytes in and out, peaks."""
    from rich.text import Text

    columns = _node_columns(cell.unit)
    shown = [column for column in columns if any(getattr(row, column[1]) is not None for row in cell.nodes)]
    table = blank(("topology", False), ("node", False), *((head, True) for head, _, _ in shown))
    for row in cell.nodes:
        values = [Text(_of_node(row, field, metric)) for _, field, metric in shown]
        table.add_row(Text(f"  {row.topology}"), Text(row.node), *values)
    return table


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
