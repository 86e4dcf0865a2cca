"""A report as sentences and tables in their order: what text, Markdown and HTML write, each in its own way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis import Report
from bench.analysis.answer import shape
from bench.analysis.caveats.evidence import SESSION, Caveat, Severity, about
from bench.analysis.cells import CellReport
from bench.analysis.numbers import label, percent, plain, plural, with_interval
from bench.model import Run
from bench.reports.sections import (
    convergence,
    environment,
    grid,
    levels,
    more_cpus,
    network_breakdown,
    profiles,
    reached,
    scaling,
    several,
    steps,
    sweeps,
    tables,
)
from bench.reports.sections.grid import Table

CAVEATS = "Caveats"
DESIGN = "How it was measured"
SUMMARY = "The headline, cell by cell"
LEGEND = "How to read this"
LISTED = 12  # lines of a listing, where there is little room


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table with what it is called, and remarks on it. The first section of a cell needs no title."""

    title: str = ""
    table: Table | None = None
    notes: tuple[str, ...] = ()
    listing: tuple[str, ...] = ()  # lines as they are; where there is little room, the first of them
    source: str = ""  # where its numbers come from; said where there is room


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One cell."""

    title: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, kw_only=True)
class Document:
    """All that a report says in words and tables."""

    title: str
    question: str
    answer: tuple[str, ...]
    caveats: tuple[tuple[Severity, str], ...]
    design: tuple[tuple[str, str], ...]
    summary: Table | None  # None: one cell is its own summary
    chapters: tuple[Chapter, ...]
    legend: tuple[tuple[str, str], ...]


def compose(report: Report, runs: Sequence[Run] = ()) -> Document:
    """The report in words. With `runs`, those of the report, their profiles too."""
    names = {about(cell): cell for cell in report.cells}
    is_run = bool(report.runs.get("ok"))
    return Document(
        title=", ".join(
            [f"raymeter report of session {report.session}", report.created, f"target {report.target}", *report.stamps]
        ),
        question=report.question,
        answer=report.answer,
        caveats=tuple(_merged(report.caveats, names, len(report.cells))),
        design=tuple(_design(report)),
        summary=tables.summary(report) if len(report.cells) > 1 and is_run else None,
        chapters=(
            *(
                Chapter(title=f"{cell_title(cell)} ({_pairs(cell)})", sections=tuple(_sections(report, cell, runs)))
                for cell in report.cells
            ),
            *_ladders(report),
            *_more_cpus(report),
            *_several(report),
        ),
        legend=tuple(_legend(report)) if report.cells and is_run else (),
    )


def cell_title(cell: CellReport) -> str:
    """A cell, and what makes it what it is."""
    marks = f" ({', '.join(cell.marks)})" if cell.marks else ""
    return f"{cell.experiment} {cell.cell}" + (f": {cell.title}" if cell.title else "") + marks


def _merged(caveats: Sequence[Caveat], cells: dict[str, CellReport], number: int) -> Iterator[tuple[Severity, str]]:
    """Caveats in words; one that holds for several cells is said once."""
    by_text: dict[tuple[Severity, str], list[str]] = {}
    for caveat in caveats:
        by_text.setdefault((caveat.severity, caveat.text), []).append(caveat.about)
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
    yield from _chosen(report)
    for experiment, params in report.common_params.items():
        if params:
            yield f"{experiment}", ", ".join(f"{name}={value}" for name, value in params.items())
    if report.gates:
        yield "gate", environment.gate(report.gates)
    if report.circumstances:
        yield "circumstances", "; ".join(map(environment.circumstances, report.circumstances))
    if report.vetoed:
        yield "vetoed", environment.vetoed(report.vetoed)
    if report.versions:
        yield "versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield "estimators", report.estimator
    if report.order_test:
        drift = report.order_test
        yield "drift", f"rank correlation of value and position in the session {drift.rho:.2f}, p {plain(drift.p)}"
    yield "do it again", report.command


def _chosen(report: Report) -> Iterator[tuple[str, str]]:
    """What was asked about beforehand, and what was left out."""
    if report.primary:
        yield (
            "asked about",
            f"{', '.join(report.primary)}: named beforehand, so that Holm's correction is for these alone",
        )
    if report.ended:
        yield "ended early", f"{report.ended}; {plural(report.left_out_blocks, 'block')} left out"
    if report.unfit:
        yield "left out", f"too large for these nodes: {'; '.join(report.unfit)}"
    if report.dropped:
        yield "dropped", f"the budget had no room for {', '.join(report.dropped)}"


def _runs(report: Report) -> str:
    done = ", ".join(f"{count} {status}" for status, count in sorted(report.runs.items())) or "none done"
    return f"{done}, of {report.planned} planned"


def shortened(section: Section) -> tuple[str, ...]:
    """The first lines of a listing, and where the others are."""
    left = len(section.listing) - LISTED
    return section.listing if left <= 1 else (*section.listing[:LISTED], f"... {left} more lines: {section.source}")


def _sections(report: Report, cell: CellReport, runs: Sequence[Run]) -> Iterator[Section]:
    topologies = [topology.name for topology in report.topologies]
    record = f"results/{report.session}/runs/*-{cell.experiment}-{cell.cell}/samples.jsonl"
    once = f"one value an invocation of arm {cell.subject}, in {record}"
    has_values = any(side.values for row in cell.rows for side in row.sides.values())
    yield Section(
        table=tables.metrics(cell.rows, topologies) if has_values else None,
        notes=(*tables.notes(cell), *(levels.notes(cell) if has_values else ())),
        source=f"{once}; {report.estimator}",
    )
    costs = tables.costs(cell, topologies)
    if costs is not None:
        yield Section(
            title=f"What {cell.subject} used for it",
            table=costs,
            notes=tuple(tables.not_counted(cell)),
            source=f"counted on each node at both ends of every interval that counts, in {record}",
        )
    if len({row.arm.name for row in cell.arms}) > 1:
        yield Section(
            title=f"{cell.subject} beside the other arms, in the same invocations: {tables.headline_unit(cell)}",
            table=tables.arms(cell, topologies),
            notes=(*tables.cost_of_measuring_lines(cell), *several.of_arms(report, cell)),
            source=f"one value an invocation of each arm, in {record}",
        )
    for title, table in steps.ladders(cell, topologies):
        yield Section(title=title, table=table, source=f"one value an invocation of each arm, in {record}")
    yield from _cost(report, cell)
    yield from _network_breakdown(cell)
    for title, table in (*sweeps.sweeps(cell, topologies), *sweeps.curves(cell)):
        yield Section(title=title, table=table, source=f"one value an invocation and point, in {record}")
    if cell.reached:
        yield Section(title=reached.TITLE, table=reached.table(cell), source=reached.SOURCE)
    if cell.guards:
        yield Section(
            title=convergence.TITLE,
            table=convergence.table(cell),
            notes=tuple(convergence.notes(cell)),
            source="MLPerf's test of reference convergence points: means without the least and the greatest, one-sided 5 %",
        )
    if remarks := tuple(sweeps.notes(cell)):
        yield Section(notes=remarks)
    if len(cell.nodes) > 1:
        yield Section(
            title="Node by node (medians over invocations)",
            table=tables.nodes(cell),
            source=f"usage of arm {cell.subject} on each node, in {record}",
        )
    for profile in profiles.of_cell(cell, runs):
        yield Section(title=f"Profile: {profile.title}", listing=profiles.listing(profile), source=profile.source)


def _cost(report: Report, cell: CellReport) -> Iterator[Section]:
    """What the work cost on each topology, where there is a price."""
    own = [each for each in report.costs if (each.experiment, each.cell) == (cell.experiment, cell.cell)]
    if own:
        yield Section(
            title=f"What a million {own[0].unit}s cost, at {report.price_per_cpu_hour} a CPU hour",
            table=grid.table(
                [("topology", False), (own[0].currency, True), ("n", True)],
                (grid.row([each.topology, with_interval(each.per_million), str(each.per_million.n)]) for each in own),
            ),
            source="the price of all CPUs of the topology, busy or not, over the steady rate; start-up is not in it",
        )


def _network_breakdown(cell: CellReport) -> Iterator[Section]:
    if cell.network_breakdown is None:
        return
    has_pairs = bool(cell.headline and cell.headline.comparison and cell.headline.comparison.pairs)
    notes = tuple(network_breakdown.notes(cell.network_breakdown)) if has_pairs else ()
    if cell.network_breakdown.gap:
        yield Section(
            title=network_breakdown.title(cell.network_breakdown),
            table=network_breakdown.table(cell.network_breakdown),
            notes=notes,
            source="the blocks that have both topologies; what each part rests on is in its row",
        )
    elif notes:
        yield Section(notes=notes)


def title_of_scaling(report: Report, experiment: str) -> str:
    """Of the chapter about the ladders of `experiment`, of which there is one at least."""
    parameter = next(ladder.parameter for ladder in report.ladders if ladder.experiment == experiment)
    return f"{experiment}: how it grows with {parameter}"


def _ladders(report: Report) -> Iterator[Chapter]:
    """A chapter an experiment that was run with several numbers of workers."""
    for experiment in dict.fromkeys(ladder.experiment for ladder in report.ladders):
        those = [ladder for ladder in report.ladders if ladder.experiment == experiment]
        cards = [
            Section(
                title=scaling.title(ladder),
                table=scaling.table(ladder),
                notes=tuple(scaling.notes(ladder)),
                source="medians over blocks; speed-ups inside the blocks; intervals of the law by drawing blocks",
            )
            for ladder in those
        ]
        best = tuple(scaling.at_best(those))
        if best:
            cards.append(Section(title="each arm at its best", notes=best))
        yield Chapter(title=title_of_scaling(report, experiment), sections=tuple(cards))


def _more_cpus(report: Report) -> Iterator[Chapter]:
    """A chapter an experiment whose cells differ in the CPUs of each piece of work."""
    for experiment in dict.fromkeys(step.experiment for step in report.more_cpus):
        yield Chapter(
            title=f"{experiment}: what more CPUs each buy",
            sections=tuple(
                Section(
                    title=more_cpus.title(step),
                    table=more_cpus.table(step),
                    notes=tuple(more_cpus.notes(step)),
                    source="each ratio is of the two cells' invocations in one block; interval by inverting the signed-rank test",
                )
                for step in report.more_cpus
                if step.experiment == experiment
            ),
        )


def _several(report: Report) -> Iterator[Chapter]:
    """A chapter an experiment that has three cells or more."""
    for experiment in dict.fromkeys(one.experiment for one in report.several if not one.cell):
        yield Chapter(
            title=f"{experiment}: its cells beside each other",
            sections=tuple(
                Section(
                    title=several.title(one),
                    table=several.table(one, report.cells),
                    notes=tuple(several.notes(one)),
                    source="ranks of the subject's headline inside each block that has every cell",
                )
                for one in report.several
                if (one.experiment, one.cell) == (experiment, "")
            ),
        )


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
    if report.several:
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
        if row.metric.help and tables.is_used(row)
    }
    if helps:
        yield "used", "; ".join(f"{name}: {words}" for name, words in helps.items())
    yield "-", "not counted or not measured here, which is not zero"
