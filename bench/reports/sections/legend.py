"""Says how to read the tables of a report."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis import Report
from bench.analysis.number_format import label, percent
from bench.analysis.usage import LIKE_IDLE
from bench.reports import tables
from bench.reports.sections.usage import is_used


def entries(report: Report) -> Iterator[tuple[str, str]]:
    """Words and signs of the tables that `report` has; none, where nothing was run."""
    if not report.cells or not report.runs.get("ok"):
        return
    yield (
        "12.3 [11.9, 12.8]",
        (
            "the median over invocations, and its 95 % confidence interval: where the true value may lie;"
            " no brackets: it was the same each time, or there was one; ~: too few for 95 %"
        ),
    )
    yield from _comparisons(report)
    yield "*", "the headline: the metric that answers the question"
    if any(len({row.arm.name for row in cell.arms}) > 1 for cell in report.cells):
        yield (
            "share",
            (
                "how much the subject does of what the arm does (rates) or how much sooner it is done (times);"
                " below 1 the arm does better"
            ),
        )
        yield (
            "role",
            (
                "ceiling: the most these CPUs can do; peer: another way to do the work; calls: the same calls without the"
                " work; control: the subject while raymeter does not watch"
            ),
        )
    if report.multiple_comparisons:
        yield (
            "mean rank",
            (
                "where it stands inside each block beside the others, 1 is best, in the mean over blocks; Friedman's test asks"
                " whether they differ at all, and ranks so far apart that any two would be by chance in 5 of 100 sessions differ"
            ),
        )
    if any(cell.network_breakdown and cell.network_breakdown.gap for cell in report.cells):
        yield (
            "network breakdown",
            (
                "means over blocks, because they add up, and Student's interval; each part is measured by itself, so what went"
                " on at the same time is counted twice, and unexplained is less by that much, or below 0"
            ),
        )
    helps = {
        label(row.metric): row.metric.help
        for cell in report.cells
        for row in cell.usage
        if row.metric.help and is_used(row)
    }
    if helps:
        yield "used", "; ".join(f"{name}: {words}" for name, words in helps.items())
    if any(row.like_idle for cell in report.cells for row in cell.nodes):
        yield (
            tables.LIKE_IDLE,
            f"{LIKE_IDLE}: beyond what idle nodes send and receive in the same time, it is no more than that once again",
        )
    yield "-", "not counted or not measured here, which is not zero"


def _comparisons(report: Report) -> Iterator[tuple[str, str]]:
    """Of ratios: of topologies, of the cells of a change, and what is said of them."""
    if len(report.topologies) > 1:
        baseline, candidate = report.topologies[0].name, report.topologies[-1].name
        yield (
            f"{candidate}/{baseline}",
            "the ratio of the two, block by block; 1 is no difference; an interval that holds 1 has not shown any",
        )
        yield "could show", "the smallest difference that this many pairs find in 4 of 5 sessions"
    if report.contrasts:
        yield (
            "after/before",
            "the factor of a change: the value with it divided by the one without, in the same block",
        )
    if report.contrasts and len(report.topologies) > 1:
        yield (
            "gains more, less",
            "the factor of a change on one topology divided by that on the other, in the same block, is not 1",
        )
    if report.contrasts or len(report.topologies) > 1:
        margin = percent(report.margin)
        yield (
            "verdict",
            (
                f"faster, slower: the interval excludes 1 and the ratio is more than {margin} off; equivalent: all of it is"
                f" within {margin}; below margin: a difference, but within {margin}; undecided: the rest; sizes and shares are"
                " higher or lower, not faster"
            ),
        )
