"""The pictures of a report: what each shows, how to read it, and where its numbers come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.numbers import Scale, label, percent, plain, plural, ratio, scale_for
from bench.analysis.rows import MetricRow
from bench.reports.pictures import bounds, colours
from bench.reports.pictures.svg import LEFT, SHAPES, WIDTH, Axis, Canvas, Shape
from bench.reports.sections import tables

RIGHT = WIDTH - 16
_PERCENTILE = re.compile(r"_p(\d+)(_|$)")
_SHADES = ("#56B4E9", "#009E73", "#CC79A7", "#F0E442", "#BBBBBB")  # of nodes; black words can be read on each
_REACH = (
    " The two dotted ticks are the smallest difference that this session finds in 4 of 5 cases: what lies between them it"
    " cannot tell from nothing."
)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture and its words."""

    title: str
    svg: Markup
    says: str
    reads: str
    source: str


@dataclass(frozen=True)
class Look:
    """The colour and the shape of each topology, the same in every picture of a report."""

    topologies: tuple[str, ...]

    @classmethod
    def of(cls, report: Report) -> Look:
        """For the topologies of `report`."""
        return cls(tuple(topology.name for topology in report.topologies))

    def colour(self, topology: str) -> str:
        return colours.of_topologies(self.topologies).get(topology, colours.NEUTRAL)

    def shape(self, topology: str) -> Shape:
        return SHAPES[self.topologies.index(topology) % len(SHAPES)] if topology in self.topologies else "diamond"

    def legend(self) -> list[tuple[str, str, Shape]]:
        return [(name, self.colour(name), self.shape(name)) for name in self.topologies]


def ticks(scale: Scale) -> Callable[[float], str]:
    """How the numbers of an axis are written: without the unit, which its title has."""
    return lambda value: f"{value / scale.divisor:.6g}"


def upper(words: str) -> str:
    """Words at the beginning of a title: CPU stays CPU."""
    return words[:1].upper() + words[1:]


def name_of(kind: str, cell: CellReport, more: str = "") -> str:
    """A name that no other picture of the page has."""
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{kind}-{cell.experiment}-{cell.cell}-{more}").strip("-")


def runs_of(cell: CellReport, topologies: Sequence[str]) -> str:
    """Which runs a picture is drawn from."""
    which = topologies[0] if len(topologies) == 1 else "{" + ",".join(topologies) + "}"
    return f"runs/b*-{which}-{cell.experiment}-{cell.cell}/samples.jsonl"


def of_session(report: Report) -> Iterator[Picture]:
    """The ratio of every cell's headline, where there are several."""
    rows = [(f"{cell.experiment} {cell.cell}", row) for cell in report.cells if (row := cell.headline)]
    if len(report.cells) > 1:
        yield from _ratios("headlines", "The headline of every cell", rows, report)


def of_cell(report: Report, cell: CellReport) -> Iterator[Picture]:
    """All that can be drawn of a cell from the report alone."""
    look = Look.of(report)
    yield from pairs(cell, look)
    compared = [(label(row.metric), row) for row in (*cell.rows, *cell.usage) if row.comparison]
    yield from _ratios(name_of("ratios", cell), f"Every metric of {cell.experiment} {cell.cell}", compared, report)
    yield from percentiles(cell, look)
    yield from shares(cell, look)


def pairs(cell: CellReport, look: Look) -> Iterator[Picture]:
    """The headline of every invocation: a line a block from one topology to the next, and each median's interval."""
    row = cell.headline
    values = [v for side in row.sides.values() for v in side.values.values()] if row else []
    if row is None or not values:
        return
    scale = tables.row_scale(row)
    canvas = Canvas(height=300)
    ceilings = bounds.of_cell(cell)
    up = Axis.around([*values, *bounds.in_reach(ceilings, values)], 250, 40)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    places = _spread_out(look.topologies)
    bounds.draw(canvas, up, places, ceilings, scale)
    for block in sorted({block for side in row.sides.values() for block in side.values}):
        there = [
            (places[t], up.at(row.sides[t].values[block])) for t in look.topologies if block in row.sides[t].values
        ]
        if len(there) > 1:
            canvas.line(there, kind="thin")
    for topology in look.topologies:
        _side(canvas, row, topology, places[topology], up, look)
        canvas.words(places[topology], 274, topology, anchor="middle", kind="t strong")
    canvas.words(LEFT, 14, f"{label(row.metric)}, {scale.unit}" if scale.unit else label(row.metric))
    medians = ", ".join(f"{t} {tables.side_in_words(row.sides[t], scale, row)} {scale.unit}" for t in look.topologies)
    title = f"{upper(label(row.metric))} of every invocation"
    is_paired = len(look.topologies) > 1
    yield Picture(
        title=title,
        svg=canvas.drawn(name_of("pairs", cell), f"{title}. Medians: {medians}."),
        says=f"Medians with their intervals: {medians}.{bounds.in_words(ceilings, scale)}",
        reads=(
            "Each small mark is one invocation; the large one is the median, and its bar the 95 % interval. "
            + (
                "A line joins the two of one block: lines that all lean the same way are a difference. "
                if is_paired
                else ""
            )
            + f"{'Higher' if row.metric.better == 'higher' else 'Lower'} is better; the axis does not begin at 0."
        ),
        source=f"{row.metric.name} of arm {row.arm} in {runs_of(cell, look.topologies)}, one value an invocation",
    )


def _spread_out(names: Sequence[str]) -> dict[str, float]:
    wide = (RIGHT - LEFT) / len(names)
    return {name: LEFT + wide * (number + 0.5) for number, name in enumerate(names)}


def _side(canvas: Canvas, row: MetricRow, topology: str, x: float, up: Axis, look: Look) -> None:
    side, colour = row.sides[topology], look.colour(topology)
    for block, value in side.values.items():
        kind = "mark outlier" if block in side.outliers else "mark faint"
        canvas.mark(x, up.at(value), look.shape(topology), colour=colour, size=4, kind=kind)
    if side.estimate is None:
        return
    away = -46 if topology == look.topologies[0] else 46
    if side.estimate.low is not None and side.estimate.high is not None:
        ends = (up.at(side.estimate.low), up.at(side.estimate.high))
        canvas.line([(x + away, ends[0]), (x + away, ends[1])], kind="interval", colour=colour)
    canvas.mark(x + away, up.at(side.estimate.value), look.shape(topology), colour=colour, size=7)


def _ratios(name: str, what: str, rows: Sequence[tuple[str, MetricRow]], report: Report) -> Iterator[Picture]:
    """A line a row: the ratio, its interval, and what this session could have shown."""
    shown = [(words, row, c) for words, row in rows if (c := row.comparison) and c.ratio and c.ratio.value > 0]
    if not shown:
        return
    ends = [e for _, _, c in shown if c.ratio for e in (c.ratio.value, c.ratio.low, c.ratio.high) if e]
    high = 34 + 26 * len(shown)
    across = Axis.around(ends, 190, RIGHT - 90, is_log=True, holds=(0.95, 1.05))
    canvas = Canvas(height=high + 44)
    inside = (across.at(1 / (1 + report.margin)), across.at(1 + report.margin))
    canvas.box(inside[0], 20, inside[1] - inside[0], high - 20)
    canvas.bottom_axis(across, lambda value: f"{value:.4g}", top=20, bottom=high)
    canvas.line([(across.at(1), 14), (across.at(1), high)], kind="one")
    for number, (words, row, found) in enumerate(shown):
        y = 34 + 26 * number
        canvas.words(182, y + 4, words, anchor="end", kind="t strong" if row.headline else "t")
        if found.smallest_effect is not None:
            reach = (across.at(1 / (1 + found.smallest_effect)), across.at(1 + found.smallest_effect))
            canvas.line([(reach[0], y + 8), (reach[0], y - 8)], kind="reach")
            canvas.line([(reach[1], y + 8), (reach[1], y - 8)], kind="reach")
        if found.ratio and found.ratio.low and found.ratio.high:
            canvas.line([(across.at(found.ratio.low), y), (across.at(found.ratio.high), y)], kind="interval")
        if found.ratio:
            canvas.mark(across.at(found.ratio.value), y, "diamond", colour="inherit", size=5)
        canvas.words(RIGHT - 82, y + 4, tables.verdict(row.metric, found))
    first = shown[0][2]
    head = f"{first.candidate}/{first.baseline}"
    canvas.words((across.begin + across.end) / 2, high + 36, f"{head}, 1 is no difference", anchor="middle")
    said = "; ".join(f"{words} {ratio(c.ratio)} {tables.verdict(row.metric, c)}" for words, row, c in shown if c.ratio)
    yield Picture(
        title=f"{what}: {head}",
        svg=canvas.drawn(name, f"{what}, {head}. {said}."),
        says=f"{head} of {plural(len(shown), 'comparison')}: {said}.",
        reads=(
            f"The diamond is the ratio, the bar its 95 % interval. In the band of {percent(report.margin)} a difference is"
            f" too small to matter.{_REACH if any(c.smallest_effect is not None for *_, c in shown) else ''}"
            " A bar that crosses 1 has shown no difference."
        ),
        source="pairs of invocations of one block; Hodges-Lehmann on their log-ratios, signed-rank interval",
    )


def percentiles(cell: CellReport, look: Look) -> Iterator[Picture]:
    """Latency by percentile, for an experiment that has such metrics."""
    found: dict[str, list[tuple[float, MetricRow]]] = {}
    for row in cell.rows:
        match = _PERCENTILE.search(row.metric.name)
        if match and any(side.estimate for side in row.sides.values()):
            prefix = row.metric.name[: match.start()]
            found.setdefault(prefix, []).append((float(f"0.{match[1]}") * 100, row))
    for prefix, rows in found.items():
        if len(rows) > 1:
            yield _percentiles(prefix, sorted(rows, key=lambda pair: pair[0]), cell, look)


def _percentiles(prefix: str, rows: Sequence[tuple[float, MetricRow]], cell: CellReport, look: Look) -> Picture:
    estimates = [side.estimate for _, row in rows for side in row.sides.values() if side.estimate]
    values = [v for e in estimates for v in (e.value, e.low, e.high) if v is not None and v > 0]
    scale = scale_for(rows[0][1].metric, values)
    up = Axis.around(values, 250, 40, is_log=True)
    canvas = Canvas(height=290)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.legend(look.legend())
    canvas.words(RIGHT, 14, f"{prefix.replace('_', ' ')}, {scale.unit}", anchor="end")
    places = {
        percentile: x for (percentile, _), x in zip(rows, _spread_out([str(p) for p, _ in rows]).values(), strict=True)
    }
    said = []
    for topology in look.topologies:
        aside = 8 * (look.topologies.index(topology) - (len(look.topologies) - 1) / 2)
        line = []
        for percentile, row in rows:
            estimate = row.sides[topology].estimate
            if estimate is None or estimate.value <= 0:
                continue
            x, y = places[percentile] + aside, up.at(estimate.value)
            line.append((x, y))
            if estimate.low and estimate.high:
                ends = [(x, up.at(estimate.low)), (x, up.at(estimate.high))]
                canvas.line(ends, kind="interval", colour=look.colour(topology))
            canvas.mark(x, y, look.shape(topology), colour=look.colour(topology))
            said.append(f"p{percentile:g} on {topology} {plain(estimate.value, scale)}")
        if len(line) > 1:
            canvas.line(line, kind="l", colour=look.colour(topology))
    for percentile, x in places.items():
        canvas.words(x, 272, f"p{percentile:g}", anchor="middle")
    title = f"{upper(prefix.replace('_', ' '))} by percentile"
    words = ", ".join(said)
    return Picture(
        title=title,
        svg=canvas.drawn(name_of("percentiles", cell, prefix), f"{title}. {words}."),
        says=f"{words}.",
        reads=(
            "p99 is what 99 of 100 calls stay below. A line that bends upwards has a long tail. Bars are 95 % intervals of"
            " the median over invocations; the axis is logarithmic. A percentile that too few calls can show is left out."
        ),
        source=f"{', '.join(row.metric.name for _, row in rows)} in {runs_of(cell, look.topologies)}",
    )


def shares(cell: CellReport, look: Look) -> Iterator[Picture]:
    """Who did the work, and who used the CPU: a bar a topology, a part a node."""
    for field, what in (("share_of_work", "work"), ("cpu_seconds_per_unit", f"CPU time per {cell.unit}")):
        rows = [node for node in cell.nodes if getattr(node, field)]
        if len(cell.nodes) > 1 and rows:
            parts = [
                (topology, [(node.node, float(getattr(node, field))) for node in rows if node.topology == topology])
                for topology in look.topologies
            ]
            yield _shares(field, what, parts, cell, look)


def _shares(
    field: str, what: str, parts: Sequence[tuple[str, Sequence[tuple[str, float]]]], cell: CellReport, look: Look
) -> Picture:
    nodes = list(dict.fromkeys(node for _, found in parts for node, _ in found))
    shade = {node: _SHADES[number % len(_SHADES)] for number, node in enumerate(nodes)}
    canvas = Canvas(height=34 + 44 * len(parts))
    said = []
    for number, (topology, found) in enumerate(parts):
        y, x = 14 + 44 * number, float(LEFT)
        whole = sum(value for _, value in found) or 1.0
        canvas.words(LEFT - 8, y + 20, topology, anchor="end", kind="t strong")
        for node, value in found:
            wide = (RIGHT - LEFT) * value / whole
            canvas.box(x, y, wide, 30, kind="part", colour=shade[node])
            if wide > 12 * len(node):
                canvas.words(x + wide / 2, y + 20, f"{node} {percent(value / whole)}", anchor="middle", kind="t in")
            said.append(f"{node} of {topology} {percent(value / whole)}")
            x += wide
    title = f"Share of each node: {what}"
    words = ", ".join(said)
    return Picture(
        title=title,
        svg=canvas.drawn(name_of(field, cell), f"{title}. {words}."),
        says=f"{words}.",
        reads="Each bar is all of one topology, and each part a node. Parts of unequal length are work that is unevenly spread.",
        source=f"usage of arm {cell.subject}, counted on each node, in {runs_of(cell, look.topologies)}; medians",
    )
