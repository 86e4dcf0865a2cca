"""Shows what more CPUs for each piece of work buy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.analysis.more_cpus import MoreCpus
from bench.analysis.number_format import label, plural, ratio
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT
from bench.model import Run
from bench.reports import tables
from bench.reports.document import Chapter, Section
from bench.reports.tables import NOTHING, Table, format_side, row_scale


def chapters(report: Report, _: Sequence[Run] = ()) -> Iterator[Chapter]:
    """A chapter an experiment whose cells differ in the CPUs of each piece of work."""
    for step in report.more_cpus:
        section = Section(
            title=title(step),
            table=table(step),
            notes=tuple(notes(step)),
            source="each ratio is of the two cells' invocations in one block; interval by inverting the signed-rank test",
        )
        yield Chapter(title=f"{step.experiment}: what more CPUs each buy", sections=(section,))


def title(step: MoreCpus) -> str:
    """Which cells, and where."""
    params = ", ".join(f"{name}={value}" for name, value in step.params.items())
    return f"{step.more} each instead of {step.fewer}, on {step.topology}" + (f", {params}" if params else "")


def table(step: MoreCpus) -> Table:
    """A row a metric and arm: with fewer, with more, and the ratio of the pairs."""
    heads = [("metric", False), ("arm", False), ("unit", False), (step.fewer, True), (step.more, True)]
    return tables.table(
        [*heads, (f"{step.more}/{step.fewer}", True), ("pairs", True)],
        [tables.row(list(_cells(step, row))) for row in step.rows if row.comparison and row.comparison.pairs],
    )


def notes(step: MoreCpus) -> Iterator[str]:
    """What the subject's headline comes to, and what it is weighed against."""
    yield _headline(step)
    yield f"the nodes' CPUs are the same in both: with {step.more} each, fewer are at work at once"


def _headline(step: MoreCpus) -> str:
    row = step.rows[0]
    found = row.comparison
    if found is None or found.ratio is None:
        return f"no ratio of {label(row.metric)}: {found.why if found else 'not compared'}"
    low, high = found.ratio.low, found.ratio.high
    what = f"{label(row.metric)} of {row.arm} with {step.more} each is {ratio(found.ratio)} of that with {step.fewer}"
    if found.refused:
        return f"{what}: no verdict, for {found.why}"
    if low is None or high is None or found.pairs < FEWEST_FOR_VERDICT:
        return (
            f"{what}: {plural(found.pairs, 'pair')}, and it takes {FEWEST_FOR_VERDICT} to say whether it gains by them"
        )
    if low <= 1 <= high:
        return f"{what}: no difference is shown"
    if row.metric.better is None:
        return f"{what}: it differs"
    gains = (found.ratio.value > 1) == (row.metric.better == "higher")
    return f"{what}: it {'gains' if gains else 'loses'} by them"


def _cells(step: MoreCpus, row: MetricRow) -> Iterator[str]:
    scale = row_scale(row)
    yield from (label(row.metric), row.arm, scale.unit)
    yield from (format_side(row.sides[name], scale, row) for name in (step.fewer, step.more))
    found = row.comparison
    yield from (ratio(found.ratio), str(found.pairs)) if found and found.ratio else (NOTHING, "0")
