"""Shows each metric of a cell on each topology, with the ratio and the verdict where there are two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.cells import CellReport
from bench.analysis.comparison import NOT_MEASURED, Comparison, Side
from bench.analysis.levels import Allocation
from bench.analysis.number_format import Scale, label, noun, percent, plain
from bench.analysis.rows import MetricRow
from bench.analysis.steadiness import FEWEST_INVOCATIONS, FEWEST_SAMPLES, Steadiness
from bench.counts import plural
from bench.reports import tables
from bench.reports.document import CellView, Section
from bench.reports.tables import NOTHING, Cell, Table


def sections(view: CellView) -> Iterator[Section]:
    """The first of a cell: it needs no title."""
    cell = view.cell
    has_values = any(side.values for row in cell.rows for side in row.sides.values())
    yield Section(
        table=table(cell.rows, view.topologies) if has_values else None,
        notes=(*notes(cell), *(_levels(cell) if has_values else ())),
        source=f"one value an invocation of arm {cell.subject}, in {view.record}; {view.report.estimator}",
    )


def table(rows: Sequence[MetricRow], topologies: Sequence[str]) -> Table:
    """Each metric that has a value on each topology, with the ratio and the verdict where there are two."""
    rows = [row for row in rows if any(side.values for side in row.sides.values())]
    compared = next((row.comparison for row in rows if row.comparison), None)
    shows = any(_smallest(row.comparison) for row in rows)
    columns = [("metric", False), ("unit", False), *((name, True) for name in topologies)]
    if compared:
        columns += [(tables.ratio_head(compared), True), ("verdict", False)]
        columns += [("could show", True)] if shows else []
    else:
        columns += [(f"5-95 % on {name}", True) for name in topologies]
    lines = []
    for row in rows:
        scale = tables.row_scale(row)
        cells: list[Cell | str] = [
            Cell(label(row.metric), "strong" if row.headline else ""),
            scale.unit,
            *(tables.format_side(row.sides.get(name), scale, row) for name in topologies),
        ]
        if compared:
            cells += tables.ratio_and_verdict(row) + ([_smallest(row.comparison)] if shows else [])
        else:
            cells += [_range(row.sides.get(name), scale) for name in topologies]
        lines.append(tables.row(cells, is_headline=row.headline))
    return tables.table(columns, lines)


def _smallest(found: Comparison | None) -> str:
    return percent(found.smallest_effect) if found and found.smallest_effect is not None else ""


def _range(side: Side | None, scale: Scale) -> str:
    if side is None or side.spread is None:
        return NOTHING
    return f"{plain(side.spread.p05 / scale.divisor)} to {plain(side.spread.p95 / scale.divisor)}"


def notes(cell: CellReport) -> Iterator[str]:
    """Why a row is empty, what was undecided, which pairs are missing."""
    empty: dict[str, list[str]] = {}
    for row in cell.rows:
        reasons = dict.fromkeys(reason for side in row.sides.values() for reason in side.missing.values())
        if not any(side.values for side in row.sides.values()):
            empty.setdefault("; ".join(list(reasons)[:3]), []).append(label(row.metric))
    for reason, names in empty.items():
        if reason == NOT_MEASURED:
            yield f"not measured with these settings: {', '.join(names)}"
            continue
        what = "nothing" if len(names) == len(cell.rows) else f"no {', no '.join(names)}"
        yield f"{what} measured: {reason}" if reason else f"{what} measured"
    yield from _missing_on_one_side(cell)
    headline = cell.headline
    found = headline.comparison if headline else None
    if headline and found and found.missing and found.pairs:
        gaps: dict[str, list[int]] = {}
        for block, why in found.missing.items():
            gaps.setdefault(why, []).append(block)
        yield "no pair in " + "; ".join(f"block {', '.join(map(str, blocks))} ({why})" for why, blocks in gaps.items())
    if headline and found and found.verdict == "undecided":
        yield f"{noun(headline.metric)} is undecided: {found.why}"


def _missing_on_one_side(cell: CellReport) -> Iterator[str]:
    """Why a topology has no value of a metric that another topology has."""
    gaps: dict[tuple[str, str], list[str]] = {}
    for row in cell.rows:
        if any(side.values for side in row.sides.values()):
            for topology, side in row.sides.items():
                if side.missing and not side.values:
                    reason = next(iter(side.missing.values()))
                    gaps.setdefault((topology, reason), []).append(label(row.metric))
    for (topology, reason), names in gaps.items():
        yield f"no {', no '.join(names)} on {topology}: {reason}"


def _levels(cell: CellReport) -> Iterator[str]:
    """Where the variance is, whether invocations are steady, what warm-ups were discarded."""
    if cell.allocation is not None:
        yield describe_allocation(cell.allocation)
    if cell.steadiness:
        yield f"inside the invocations: {_steadiness(cell.steadiness)}"
    if cell.warmups > cell.declared_warmups:
        discarded = cell.warmups - cell.declared_warmups
        yield (
            f"{plural(discarded, 'turn')} after the {plural(cell.declared_warmups, 'warm-up')} declared did not count either,"
            " on any topology: values had not settled; the record has them"
        )


def _steadiness(found: tuple[Steadiness, ...]) -> str:
    by_label: dict[str, list[Steadiness]] = {}
    for each in found:
        by_label.setdefault(each.label, []).append(each)
    return "; ".join(
        (label if len(by_label) == 1 else f"{label} {', '.join(f'{each.arm} on {each.topology}' for each in those)}")
        + (f" (it takes {FEWEST_SAMPLES} in {FEWEST_INVOCATIONS} invocations)" if label.startswith("too few") else "")
        for label, those in by_label.items()
    )


def describe_allocation(found: Allocation) -> str:
    """Between what it is that values vary, and which number of samples would be best."""
    if found.of_pairs == 0:
        where = "all of it between samples: invocations add none that shows"
    else:
        where = f"{percent(found.share_of_pairs)} between invocations, which only more blocks make less of"
    words = f"of the variance of a pair, {where}"
    if found.best_samples is None or found.pair_seconds is None:
        return words
    return (
        f"{words}; best would be {plural(found.best_samples, 'sample')} an invocation (there were {found.samples}),"
        f" at {found.sample_seconds:.2g} s a sample and {found.pair_seconds:.2g} s a pair of invocations"
    )
