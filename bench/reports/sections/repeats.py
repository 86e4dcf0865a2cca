"""Shows the few repeats of a cell one by one, with their mean beside their median."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, median

from bench.analysis.number_format import Scale, label, plain, scale_for
from bench.analysis.repeats import Repeat, of
from bench.metrics import seconds
from bench.model import Metric
from bench.reports import tables
from bench.reports.document import CellView, Section
from bench.reports.tables import NOTHING, Cell, Row, Table

_SECONDS = seconds("pass_seconds")


def sections(view: CellView) -> Iterator[Section]:
    """Where a topology has two or more of them."""
    row, found = view.cell.headline, view.cell.repeats
    if row and any(len(of(found, topology)) > 1 for topology in view.topologies):
        yield Section(
            title=f"Repeats of {view.cell.subject}: seconds of a pass, and {label(row.metric)}",
            table=table(row.metric, found, [name for name in view.topologies if of(found, name)]),
            source=f"the samples that count of {row.metric.name}, in {view.record}",
        )


def table(metric: Metric, found: Sequence[Repeat], topologies: Sequence[str]) -> Table:
    """A row a repeat, then their mean and their median; two columns a topology."""
    value = scale_for(metric, [each.value for each in found])
    took = Scale(1.0, "s") if metric.kind != "time" or metric.unit != "s" else None  # the headline may be just that
    keys = sorted({(each.block, each.turn or 0) for each in found})
    by_topology = {name: {(each.block, each.turn or 0): each for each in of(found, name)} for name in topologies}
    heads, columns = [("repeat", False)], []
    for name in topologies:
        here = by_topology[name]
        if took:
            heads.append((f"{name}, s", True))
            columns.append(([here[key].seconds if key in here else None for key in keys], took))
        heads.append((f"{name}, {value.unit}", True))
        columns.append(([here[key].value if key in here else None for key in keys], value))
    is_one_each = len({block for block, _ in keys}) == len(keys)
    rows = [
        tables.row([_name(*key, is_one_each=is_one_each), *(_cell(values[at], scale) for values, scale in columns)])
        for at, key in enumerate(keys)
    ]
    return tables.table(heads, [*rows, _summary("mean", fmean, columns), _summary("median", median, columns)])


def _name(block: int, turn: int, *, is_one_each: bool) -> str:
    return f"block {block}" if is_one_each or not turn else f"block {block}, turn {turn}"


def _cell(value: float | None, scale: Scale) -> str:
    return NOTHING if value is None else plain(value / scale.divisor)


def _summary(
    name: str, of_values: Callable[[Sequence[float]], float], columns: Sequence[tuple[list[float | None], Scale]]
) -> Row:
    known = [([value for value in values if value is not None], scale) for values, scale in columns]
    cells = (Cell(_cell(of_values(values) if values else None, scale), "strong") for values, scale in known)
    return tables.row([Cell(name, "strong"), *cells])
