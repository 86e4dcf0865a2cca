"""Shows what each node did: a row a node, and how work and CPU time were shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench.analysis.cells import CellReport
from bench.analysis.number_format import percent, quantity
from bench.analysis.usage import NodeRow
from bench.counts import plural
from bench.model import Metric
from bench.reports import tables
from bench.reports.document import CellView, Section, Short
from bench.reports.drawing.picture import Picture
from bench.reports.drawing.svg import LEFT, RIGHT, Canvas
from bench.reports.sections import timelines, usage
from bench.reports.tables import LIKE_IDLE, NOTHING, Table

_SHADES = ("#56B4E9", "#009E73", "#CC79A7", "#F0E442", "#BBBBBB")  # of nodes; black words can be read on each

_PERCENT = Metric(name="", unit="%", better=None, kind="size")
_SHORT = ("sent_bytes_per_second", "received_bytes_per_second", "sent_bytes_per_unit", "peak_memory_bytes")
MOST_NODES = 3  # of a topology in the short form


def sections(view: CellView) -> Iterator[Section]:
    """Where anything is known of a node."""
    if view.cell.nodes:
        yield Section(
            title="Node by node (medians over invocations)",
            table=table(view.cell),
            notes=(*usage.counted_longer(view.cell), *timelines.left_out(view)),
            source=f"usage of arm {view.cell.subject} on each node, in {view.record}",
            draw=partial(pictures, view),
            short=short(view) if view.is_shown_first else None,
        )


def short(view: CellView) -> Short:
    """CPU, network and memory of each node; of many nodes of a topology the busiest and the idlest."""
    columns = [each for each in _shown(view.cell) if each[1] in _SHORT]
    columns.sort(key=lambda column: _SHORT.index(column[1]))
    cpu = ("cpu_percent", "peak_cpu_percent")
    lines = []
    for topology in view.topologies:
        rows = [row for row in view.cell.nodes if row.topology == topology]
        between = len(rows) - MOST_NODES
        if between > 0:
            ordered = sorted(rows, key=lambda row: -(row.cpu_percent or 0.0))
            rows = [*ordered[: MOST_NODES - 1], ordered[-1]]
        lines += [
            tables.row(
                [
                    f"{topology} {row.node}",
                    " / ".join(_of_node(row, field, _PERCENT) for field in cpu),
                    *(_of_node(row, field, metric) for _, field, metric in columns),
                ]
            )
            for row in rows
        ]
        if between > 0:
            lines.insert(-1, tables.row([f"... {plural(between, 'node')} of {topology} between"]))
    heads = [("", False), ("CPU / peak", True), *((head, True) for head, _, _ in columns)]
    bytes_are_counted = any(field == "sent_bytes_per_second" for _, field, _ in columns)
    title = f"Nodes{view.short_name}{'' if bytes_are_counted else ' (bytes are not counted)'}"
    return Short(title=title, table=tables.table(heads, lines))


def table(cell: CellReport) -> Table:
    """A row a node: share of the work, CPU, bytes in and out, peaks."""
    shown = _shown(cell)
    heads = [("topology", False), ("node", False), *((head, True) for head, _, _ in shown)]
    return tables.table(
        heads,
        (
            tables.row([row.topology, row.node, *(_of_node(row, field, metric) for _, field, metric in shown)])
            for row in cell.nodes
        ),
    )


def _shown(cell: CellReport) -> list[tuple[str, str, Metric | None]]:
    """The columns in which a node has a value."""
    columns = _node_columns(cell.unit)
    return [column for column in columns if any(getattr(row, column[1]) is not None for row in cell.nodes)]


def _node_columns(unit: str) -> tuple[tuple[str, str, Metric | None], ...]:
    cpu = Metric(name="", unit="s", better="lower", kind="time")
    size = Metric(name="", unit="B", better="lower", kind="size")
    rate = Metric(name="", unit="B/s", better="lower", kind="rate")
    count = Metric(name="", unit="segments", better="lower", kind="count")
    return (
        ("work", "share_of_work", None),
        ("CPU use", "cpu_percent", _PERCENT),
        ("peak CPU", "peak_cpu_percent", _PERCENT),
        ("sent", "sent_bytes_per_second", rate),
        ("received", "received_bytes_per_second", rate),
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
    if field in row.like_idle:
        return LIKE_IDLE
    if metric is _PERCENT:
        return percent(value / 100)
    if metric is None:
        return percent(value)
    text = quantity(metric, value)
    return text.removesuffix("s") if metric.kind == "count" and value == 1 else text


def pictures(view: CellView) -> Iterator[Picture]:
    """Who did the work, and who used the CPU: a bar a topology, a part a node. Then what each used over time."""
    for field, what in (("share_of_work", "work"), ("cpu_seconds_per_unit", f"CPU time per {view.cell.unit}")):
        rows = [node for node in view.cell.nodes if getattr(node, field)]
        if len(view.cell.nodes) > 1 and rows:
            parts = [
                (topology, [(node.node, float(getattr(node, field))) for node in rows if node.topology == topology])
                for topology in view.topologies
            ]
            yield _shares(field, what, parts, view)
    yield from timelines.pictures(view)


def _shares(field: str, what: str, parts: Sequence[tuple[str, Sequence[tuple[str, float]]]], view: CellView) -> Picture:
    nodes = list(dict.fromkeys(node for _, found in parts for node, _ in found))
    shade = {node: _SHADES[number % len(_SHADES)] for number, node in enumerate(nodes)}
    canvas = Canvas(height=34 + 44 * len(parts))
    sentences = []
    for number, (topology, found) in enumerate(parts):
        y, x = 14 + 44 * number, float(LEFT)
        whole = sum(value for _, value in found) or 1.0
        canvas.words(LEFT - 8, y + 20, topology, anchor="end", kind="t strong")
        for node, value in found:
            wide = (RIGHT - LEFT) * value / whole
            canvas.box(x, y, wide, 30, kind="part", colour=shade[node])
            if wide > 12 * len(node):
                canvas.words(x + wide / 2, y + 20, f"{node} {percent(value / whole)}", anchor="middle", kind="t in")
            sentences.append(f"{node} of {topology} {percent(value / whole)}")
            x += wide
    title = f"Share of each node: {what}"
    words = ", ".join(sentences)
    return Picture(
        title=title,
        canvas=canvas,
        name=view.name(field),
        says=f"{words}.",
        reads="Each bar is all of one topology, and each part a node. Parts of unequal length are work that is unevenly spread.",
        source=f"usage of arm {view.cell.subject}, counted on each node, in {view.runs_of()}; medians",
    )
