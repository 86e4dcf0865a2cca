"""The report for a terminal: question, answer, doubts, then the numbers, then how to read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING

from bench.analysis import Report
from bench.analysis.answer import shape
from bench.analysis.cells import CellReport
from bench.analysis.evidence import SESSION, Doubt, about
from bench.analysis.numbers import label, percent, plain, plural
from bench.reports import ledger, sweeps, tables

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 116
_ROOM = 400  # for tables: a number that is cut off is worse than a line that is long
_SIGNS = {"refuses": "!!", "weakens": " !", "note": "  "}
_STYLES = {"refuses": "bold red", "weakens": "yellow", "note": ""}


def render(report: Report, *, colour: bool = False, width: int = WIDTH) -> str:
    """The report as lines: sentences are wrapped at `width`, tables take what they need."""
    from rich.console import Console

    page = StringIO()
    console = Console(
        file=page, width=_ROOM, color_system="standard" if colour else None, force_terminal=colour, highlight=False
    )
    for part in _parts(report, width):
        console.print(part, markup=False)
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join(lines).rstrip() + "\n"


def _parts(report: Report, width: int) -> Iterator[RenderableType]:
    yield _heading(report)
    yield ""
    yield tables.entries([("Question", report.question), ("Answer", "\n".join(report.answer))], width)
    yield from _doubts(report, width)
    yield ""
    yield _title("How it was measured")
    yield tables.entries(list(_design(report)), width, indent=2)
    if len(report.cells) > 1 and report.runs.get("ok"):
        yield ""
        yield _title("The headline, cell by cell")
        yield tables.summary(report)
    for cell in report.cells:
        yield ""
        yield from _cell(report, cell, width)
    if report.cells and report.runs.get("ok"):
        yield ""
        yield _title("How to read this")
        yield tables.entries(list(_legend(report)), width, indent=2)


def _title(words: str) -> RenderableType:
    from rich.text import Text

    return Text(words, style="bold")


def _heading(report: Report) -> RenderableType:
    return _title(f"raymeter report of session {report.session}, {report.created}, target {report.target}")


def _doubts(report: Report, width: int) -> Iterator[RenderableType]:
    if not report.doubts:
        return
    yield ""
    yield _title("Reasons to doubt it (!! takes the verdict away, ! weakens it)")
    names = {about(cell): cell for cell in report.cells}
    rows = [
        (_SIGNS[severity], text, _STYLES[severity])
        for severity, text in _merged(report.doubts, names, len(report.cells))
    ]
    yield tables.signed(rows, width)


def _merged(doubts: Sequence[Doubt], cells: dict[str, CellReport], number: int) -> Iterator[tuple[str, str]]:
    """Doubts in words; one that holds for several cells is said once."""
    by_text: dict[tuple[str, str], list[str]] = {}
    for doubt in doubts:
        by_text.setdefault((doubt.severity, doubt.text), []).append(doubt.about)
    for (severity, text), places in by_text.items():
        if SESSION in places or number == 1:
            yield severity, text[:1].upper() + text[1:]
        else:
            yield severity, f"{', '.join(_place(place, cells) for place in places)}: {text}"


def _place(place: str, cells: dict[str, CellReport]) -> str:
    experiments = {cell.experiment for cell in cells.values()}
    return cells[place].cell if place in cells and len(experiments) == 1 else place


def _design(report: Report) -> Iterator[tuple[str, str]]:
    if report.topologies:
        yield "topologies", ", ".join(shape(topology) for topology in report.topologies)
    yield "link", (report.link or "not known") + (", all nodes on one machine" if report.same_host else "")
    yield (
        "repetition",
        (
            f"{plural(report.blocks, 'block')}; in each, every cell is one invocation on each topology, of"
            f" {plural(report.samples, 'sample')} of {report.sample_seconds:g} s or more"
            f" after {plural(report.warmups, 'warm-up')}"
        ),
    )
    yield "randomised", report.randomised
    yield "runs", _runs(report)
    for experiment, params in report.common_params.items():
        if params:
            yield f"{experiment}", ", ".join(f"{name}={value}" for name, value in params.items())
    if report.versions:
        yield "versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield "estimators", report.estimator
    if report.order_test:
        drift = report.order_test
        yield "drift", f"rank correlation of value and position in the session {drift.rho:.2f}, p {plain(drift.p)}"
    yield "do it again", report.command


def _runs(report: Report) -> str:
    done = ", ".join(f"{count} {status}" for status, count in sorted(report.runs.items())) or "none done"
    return f"{done}, of {report.planned} planned"


def _cell(report: Report, cell: CellReport, width: int) -> Iterator[RenderableType]:
    name = f"{cell.experiment} {cell.cell}" + (f": {cell.title}" if cell.title else "")
    yield _title(f"{name} ({_pairs(cell)})")
    topologies = [topology.name for topology in report.topologies]
    if any(side.values for row in cell.rows for side in row.sides.values()):
        yield tables.metrics(cell.rows, topologies)
    yield from _lines(tables.notes(cell), width)
    costs = tables.costs(cell, topologies)
    if costs is not None:
        yield ""
        yield _subtitle(f"What {cell.subject} used for it")
        yield costs
        yield from _lines(tables.not_counted(cell), width)
    if len({row.arm.name for row in cell.arms}) > 1:
        yield ""
        yield _subtitle(f"{cell.subject} beside the other arms, in the same invocations: {tables.headline_unit(cell)}")
        yield tables.arms(cell, topologies)
        yield from _lines(tables.cost_of_measuring_lines(cell), width)
    if cell.ledger and cell.ledger.gap:
        yield ""
        yield _subtitle(ledger.title(cell.ledger))
        yield ledger.table(cell.ledger)
    if cell.ledger and cell.headline and cell.headline.comparison and cell.headline.comparison.pairs:
        yield from _lines(ledger.notes(cell.ledger), width)
    for title, table in (*sweeps.sweeps(cell, topologies), *sweeps.curves(cell)):
        yield ""
        yield _subtitle(title)
        yield table
    if len(cell.nodes) > 1:
        yield ""
        yield _subtitle("Node by node (medians over invocations)")
        yield tables.nodes(cell)


def _lines(sentences: Iterator[str], width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    for sentence in sentences:
        yield Text(fill(sentence, width, initial_indent="   ", subsequent_indent="     "))


def _subtitle(words: str) -> RenderableType:
    from rich.text import Text

    return Text(f"  {words}", style="italic")


def _pairs(cell: CellReport) -> str:
    row = cell.headline
    if row and row.comparison:
        return plural(row.comparison.pairs, "pair")
    return plural(max((len(side.values) for side in row.sides.values()), default=0) if row else 0, "invocation")


def _legend(report: Report) -> Iterator[tuple[str, str]]:
    yield (
        "12.3 [11.9, 12.8]",
        (
            "the median over invocations, and its 95 % confidence interval: where the true value may lie;"
            " no brackets: it was the same each time, or there was one; ~: too few for 95 %"
        ),
    )
    if len(report.topologies) > 1:
        baseline, candidate = report.topologies[0].name, report.topologies[-1].name
        yield (
            f"{candidate}/{baseline}",
            "the ratio of the two, block by block; 1 is no difference; an interval that holds 1 has not shown any",
        )
        yield "could show", "the smallest difference that this many pairs find in 4 of 5 sessions"
        margin = percent(report.margin)
        yield (
            "verdict",
            (
                f"faster, slower: the interval excludes 1 and the ratio is more than {margin} off; equivalent: all of it is"
                f" within {margin}; below margin: a difference, but within {margin}; undecided: the rest; sizes and shares are"
                " higher or lower, not faster"
            ),
        )
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
    if any(cell.ledger and cell.ledger.gap for cell in report.cells):
        yield (
            "network ledger",
            (
                "means over blocks, because they add up, and Student's interval; each part is measured by itself, so what went"
                " on at the same time is counted twice, and unexplained is less by that much, or below 0"
            ),
        )
    helps = {
        label(row.metric): row.metric.help
        for cell in report.cells
        for row in cell.usage
        if row.metric.help and tables.is_used(row)
    }
    if helps:
        yield "used", "; ".join(f"{name}: {words}" for name, words in helps.items())
    yield "-", "not counted or not measured here, which is not zero"
