"""Draws what each node used over the time of one run: CPU, memory, network and disk, with the run's phases behind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.number_format import Scale, noun, percent, scale_for
from bench.analysis.timelines import Phase, phases, ranked
from bench.counts import plural
from bench.metrics import rate, size
from bench.model import Metric, Run
from bench.reports.document import CellView
from bench.reports.drawing.axes import Axis
from bench.reports.drawing.picture import Picture
from bench.reports.drawing.svg import LEFT, RIGHT, Canvas
from bench.timeline import Timeline

MOST_NODES = 3  # side by side
POINTS, LEAST_POINTS = 360, 60  # of all nodes side by side: a unit of the picture's width has no room for more
MOST_POINTS = 6_000  # of all pictures of a page, about a MiB
_TOP, _HIGH, _ROOM, _BETWEEN = 62, 52, 26, 16  # of the first row; of a row; above each; between nodes
_NETWORK, _DISK = rate("network", "B/s"), rate("disk", "B/s")
_MEMORY = size("memory", "B")


@dataclass(frozen=True)
class _Row:
    """One small picture a node: a quantity and the other one that shares its axis."""

    title: str  # with {unit}
    quantities: tuple[str, ...]
    metric: Metric | None  # None: a share of the node's CPUs


class _Placed:
    """A row in the picture: its unit, and its axis, which ends in a round number."""

    def __init__(self, row: _Row, top: float, base: float) -> None:
        self.row, self.base = row, base
        self.scale = scale_for(row.metric, [top]) if row.metric else Scale(1.0, "")
        self.high = ceiling(top / self.scale.divisor)
        self.up = Axis(0.0, self.high, base, base - _HIGH)


_ROWS = (
    _Row("CPU, % of the node's CPUs", ("cpus",), None),
    _Row("memory, {unit}", ("memory_bytes",), _MEMORY),
    _Row(
        "network, {unit}: received, and sent (dashed)", ("received_bytes_per_second", "sent_bytes_per_second"), _NETWORK
    ),
    _Row(
        "disk, {unit}: read, and written (dashed)",
        ("disk_read_bytes_per_second", "disk_written_bytes_per_second"),
        _DISK,
    ),
)


def pictures(view: CellView) -> Iterator[Picture]:
    """A picture a topology and block that is drawn, of which one is shown at a time: the median block first."""
    drawn = _drawn(view)
    points = max(LEAST_POINTS, min(POINTS, MOST_POINTS // max(len(drawn), 1)))
    ranks = ranked(view.cell)
    its = [(run, _nodes(run, points)) for run in drawn if _is_of(view, run) and run.spec.block in ranks]
    tops = [_top(row, its) for row in _ROWS]
    blocks = list(ranks)
    its.sort(key=lambda each: (view.topologies.index(each[0].spec.topology.name), blocks.index(each[0].spec.block)))
    for run, nodes in its:
        yield _picture(run, nodes, tops, view, ranks)


def left_out(view: CellView) -> Iterator[str]:
    """Where the page has timelines of other cells alone."""
    drawn = _drawn(view)
    if drawn and not any(_is_of(view, run) for run in drawn):
        yield "no use over time is drawn of this cell, for which the page has no room: it is in runs/*/files/timeline.json.gz"


def _drawn(view: CellView) -> list[Run]:
    """The runs of all cells whose timelines the page has."""
    return [run for run in view.runs if any(map(len, run.timelines))]


def _is_of(view: CellView, run: Run) -> bool:
    """Whether a run is one of the view's cell."""
    return (run.spec.experiment, run.spec.cell) == (view.cell.experiment, view.cell.cell)


def _top(row: _Row, runs: Sequence[tuple[Run, list[Timeline]]]) -> float:
    """The greatest that is drawn of a row on any node, so that the axes of all pictures are the same."""
    values = [
        value / _divisor(row, run.spec.topology.cpus_per_node)
        for run, nodes in runs
        for timeline in nodes
        for name in row.quantities
        for value in timeline.peak[name]
        if math.isfinite(value)
    ]
    most = max(values, default=0.0)
    return max(most, 100.0) if row.metric is None else most


def _divisor(row: _Row, cpus: int) -> float:
    return 1.0 if row.metric else cpus / 100


def _nodes(run: Run, points: int) -> list[Timeline]:
    """The first nodes, which have no more than so many points together."""
    nodes = [each for each in run.timelines if len(each)][:MOST_NODES]
    return [each.at_most(points // len(nodes)) for each in nodes]


def _picture(
    run: Run, nodes: list[Timeline], tops: Sequence[float], view: CellView, ranks: Mapping[int, str]
) -> Picture:
    drawing, topology = _Drawing(run, nodes, tops, view), run.spec.topology.name
    others = sum(map(bool, map(len, run.timelines))) - len(nodes)
    more = f"; {plural(others, 'other node is', 'other nodes are')} in the record" if others > 0 else ""
    means = ", ".join(filter(None, map(drawing.mean_cpu, drawing.recorded)))
    block, row = run.spec.block, view.cell.headline
    rank = ranks[block] if len(ranks) > 1 else ""
    chosen = f", the {rank} one of {len(ranks)} by {noun(row.metric)}" if row and rank else ""
    return Picture(
        title=f"CPU, memory, network and disk over time: {topology}",
        canvas=drawing.draw(),
        name=view.name("timeline", f"{topology}-{block}"),
        group=view.name("timelines", topology),
        choice=f"block {block}" + (f", {rank}" if rank else ""),
        says=(
            f"{view.cell.experiment} {view.cell.cell} in block {block}{chosen}{more}."
            + (f" While turns of {view.cell.subject} counted, CPU use was {means}." if means else "")
        ),
        reads=(
            "Ten readings a second; a line is the mean of those that lie at one place, a pale band reaches to the greatest of"
            " them. All nodes and topologies have the same axes. Shaded: the turns, each with its arm; what comes before the"
            " first is start-up. A gap: nothing was read, since an arm was timed unwatched. Bytes include idle traffic."
        ),
        source=f"runs/{run.spec.folder}/files/timeline.json.gz; turns from its samples.jsonl",
    )


class _Drawing:
    """The picture of one run in the making: a column a node, a row a quantity."""

    def __init__(self, run: Run, nodes: list[Timeline], tops: Sequence[float], view: CellView) -> None:
        self.nodes = nodes
        self.recorded = [each for each in run.timelines if len(each)][:MOST_NODES]  # the same, not thinned
        self._cpus = run.spec.topology.cpus_per_node
        self._subject = view.cell.subject
        self._colour = view.look.colour(run.spec.topology.name)
        self._phases = phases(run, warmups=max(view.cell.warmups, run.spec.warmups))
        self._begin = min(each.ends[0] - each.seconds[0] for each in self.nodes)
        self._seconds = max(each.ends[-1] for each in self.nodes) - self._begin
        self._bottom = _TOP + len(_ROWS) * (_HIGH + _ROOM) - _ROOM
        self._canvas = Canvas(height=self._bottom + 42)
        self._rows = [
            _Placed(row, top, _TOP + at * (_HIGH + _ROOM) + _HIGH)
            for at, (row, top) in enumerate(zip(_ROWS, tops, strict=True))
        ]

    def draw(self) -> Canvas:
        """All of it."""
        self._legend()
        wide = (RIGHT - LEFT + _BETWEEN) / len(self.nodes)
        for number, timeline in enumerate(self.nodes):
            left = LEFT + wide * number
            along = Axis(0.0, max(self._seconds, 0.1), left, left + wide - _BETWEEN)
            self._canvas.words(left, 40, timeline.node, kind="t strong")
            for phase in self._phases:
                self._shade(phase, along)
            for row in self._rows:
                self._node(row, timeline, along)
            for tick in along.ticks()[:: len(self.nodes)]:
                self._canvas.words(along.at(tick), self._bottom + 16, f"{tick:g}", anchor="middle")
        for row in self._rows:
            self._axis(row)
        self._canvas.words((LEFT + RIGHT) / 2, self._bottom + 36, "seconds of the run", anchor="middle")
        return self._canvas

    def mean_cpu(self, timeline: Timeline) -> str:
        """What a node used of its CPUs, in the mean over the turns of the subject that count."""
        those = [
            (each.begin, each.end) for each in self._phases if each.name == "counted" and each.arm == self._subject
        ]
        used = [
            (timeline.mean["cpus"][at], timeline.seconds[at])
            for at, end in enumerate(timeline.ends)
            if any(begin <= end - timeline.seconds[at] / 2 <= last for begin, last in those)
        ]
        known = [(cpus, seconds) for cpus, seconds in used if math.isfinite(cpus)]
        covered = math.fsum(seconds for _, seconds in known)
        if not covered:
            return ""
        share = math.fsum(cpus * seconds for cpus, seconds in known) / covered / self._cpus
        return f"{percent(round(share, 2))} on {timeline.node}"

    def _legend(self) -> None:
        there = {(each.name, each.arm == self._subject) for each in self._phases}
        entries = (
            ("warm-up", "phase warm", "", {("warm-up", True), ("warm-up", False)}),
            (f"{self._subject}, counted", "range", self._colour, {("counted", True)}),
            ("other arms, counted", "phase", "", {("counted", False)}),
        )
        x = float(LEFT)
        for words, kind, colour, shown_for in entries:
            if there & shown_for:
                self._canvas.box(x, 5, 12, 12, kind=kind, colour=colour)
                self._canvas.words(x + 18, 15, words)
                x += 32 + 9 * len(words)  # words are larger where the page is narrow

    def _shade(self, phase: Phase, along: Axis) -> None:
        """One turn, behind all rows of a node."""
        if phase.name in ("idle", "start-up"):
            return
        left, right = along.at(phase.begin - self._begin), along.at(phase.end - self._begin)
        is_its = phase.arm == self._subject and phase.name == "counted"
        kind = "range" if is_its else "phase warm" if phase.name == "warm-up" else "phase"
        colour = self._colour if is_its else ""
        self._canvas.box(left, _TOP, right - left, self._bottom - _TOP, kind=kind, colour=colour)
        self._canvas.tip(f"turn {phase.turn}, {phase.arm}, {phase.name}: {phase.end - phase.begin:.3g} s")

    def _axis(self, row: _Placed) -> None:
        """What a row shows, and the numbers at its left."""
        self._canvas.words(LEFT, row.base - _HIGH - 7, row.row.title.format(unit=row.scale.unit))
        for tick in (0.0, row.high / 2, row.high):
            y = row.up.at(tick)
            self._canvas.line([(LEFT, y), (RIGHT, y)], kind="grid")
            self._canvas.words(LEFT - 6, y + 4, f"{tick:g}", anchor="end")

    def _node(self, row: _Placed, timeline: Timeline, along: Axis) -> None:
        """One row of one node: a line a quantity, in the middle of what each point covers."""
        divisor = row.scale.divisor * _divisor(row.row, self._cpus)
        lines = [
            [
                (
                    along.at(timeline.ends[at] - timeline.seconds[at] / 2 - self._begin),
                    row.up.at(timeline.mean[name][at] / divisor),
                    row.up.at(timeline.peak[name][at] / divisor),
                    dash,
                )
                for at in stretch
                if math.isfinite(timeline.mean[name][at])
            ]
            for name, dash in zip(row.row.quantities, ("", " d2"), strict=False)
            for stretch in timeline.stretches()
        ]
        drawn = [points for points in lines if len(points) > 1]
        for points in drawn:
            dash = points[0][3]
            if timeline.readings_per_point > 1 and not dash:
                self._canvas.range([point[:3] for point in points], colour=self._colour)
            self._canvas.line([point[:2] for point in points], kind=f"fine{dash}", colour=self._colour)
        if not drawn:
            # Between two lines of the grid, and on none.
            self._canvas.words(along.begin + 8, row.base - _HIGH / 4 + 4, "not counted here")


def ceiling(value: float) -> float:
    """The least round number that is not below `value`, where an axis ends."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(digit * power for digit in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if digit * power >= value * 0.999)
