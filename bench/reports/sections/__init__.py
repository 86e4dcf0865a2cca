"""Composes a report from its sections: one ordered list, which text, Markdown and HTML walk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.counts import plural
from bench.model import Run
from bench.reports.document import CellView, Chapter, Document, Section, cell_title
from bench.reports.drawing.picture import Picture
from bench.reports.sections import (
    arms,
    as_in_study,
    caveats,
    contrasts,
    convergence,
    cost,
    curves,
    design,
    invocations,
    key_figures,
    legend,
    metrics,
    network_breakdown,
    nodes,
    normality,
    percentiles,
    profiled_arms,
    profiles,
    projections,
    ratios,
    repeats,
    samples,
    scaling,
    summary,
    sweeps,
    time_to_target,
    usage,
)

Topic = Callable[[Report, Sequence[Run]], Iterable[Chapter]]
"""Makes chapters of a report and the runs it was built from. Chapters of one title become one."""


_LONG = 100  # letters of a note: shorter ones are written where they apply


def each_cell(sections: Callable[[CellView], Iterable[Section]]) -> Topic:
    """A topic that has sections in the chapter of each cell."""

    def chapters(report: Report, runs: Sequence[Run]) -> Iterator[Chapter]:
        for cell in report.cells:
            view = CellView(cell=cell, report=report, runs=runs)
            yield Chapter(
                title=f"{cell_title(cell)} ({_pairs(cell)})",
                short=f"{cell.experiment} {cell.cell}",
                sections=tuple(
                    replace(section, notes=tuple(map(view.briefly, section.notes))) for section in sections(view)
                ),
            )

    return chapters


def drawn_for_each_cell(pictures: Callable[[CellView], Iterable[Picture]]) -> Topic:
    """A topic that has pictures alone in the chapter of each cell."""
    return each_cell(lambda view: (Section(draw=partial(pictures, view)),))


SECTIONS: tuple[Topic, ...] = (
    summary.chapters,
    contrasts.chapters,
    profiled_arms.chapters,
    each_cell(metrics.sections),
    each_cell(repeats.sections),
    drawn_for_each_cell(invocations.pictures),
    drawn_for_each_cell(ratios.pictures),
    drawn_for_each_cell(percentiles.pictures),
    drawn_for_each_cell(normality.pictures),
    each_cell(usage.sections),
    each_cell(arms.sections),
    each_cell(projections.sections),
    each_cell(cost.sections),
    each_cell(network_breakdown.sections),
    each_cell(sweeps.sections),
    each_cell(curves.sections),
    drawn_for_each_cell(samples.pictures),
    each_cell(time_to_target.sections),
    each_cell(convergence.sections),
    each_cell(sweeps.missing_points),
    each_cell(nodes.sections),
    each_cell(profiles.sections),
    as_in_study.chapters,
    scaling.chapters,
)


def compose(report: Report, runs: Sequence[Run] = ()) -> Document:
    """The report as sections. With `runs`, those of the report, their samples and profiles too."""
    return Document(
        title=", ".join(
            [f"raymeter report of session {report.session}", report.created, f"target {report.target}", *report.stamps]
        ),
        question=report.question,
        answer=report.answer,
        caveats=tuple(caveats.entries(report)),
        design=tuple(design.entries(report)),
        chapters=_chapters(report, runs),
        legend=tuple(legend.entries(report)),
        figures=tuple(key_figures.entries(report)),
        more=(
            ("Everything", f"bench report {report.session} --detail"),
            ("With pictures", f"bench report {report.session} --format html -o report.html"),
        ),
    )


def _chapters(report: Report, runs: Sequence[Run]) -> tuple[Chapter, ...]:
    found: dict[str, Chapter] = {}
    for topic in SECTIONS:
        for chapter in topic(report, runs):
            before = found.get(chapter.title)
            sections = (*before.sections, *chapter.sections) if before else chapter.sections
            found[chapter.title] = replace(chapter, sections=sections)
    first: dict[str, Chapter] = {}  # by note, the chapter that has it
    return tuple(_with_new_notes(chapter, first) for chapter in found.values())


def _with_new_notes(chapter: Chapter, first: dict[str, Chapter]) -> Chapter:
    """Without the long notes that a chapter before it has: a reference stands for them."""

    def only_new(section: Section) -> Section:
        long = [note for note in section.notes if len(note) > _LONG]
        before = [first[note] for note in long if first.setdefault(note, chapter) is not chapter]
        notes = [note for note in section.notes if first.get(note, chapter) is chapter]
        for name, count in Counter(each.short or each.title for each in before).items():
            notes.append(f"{plural(count, 'note')} of {name} {'applies' if count == 1 else 'apply'} here too")
        return replace(section, notes=tuple(notes))

    return replace(chapter, sections=tuple(map(only_new, chapter.sections)))


def _pairs(cell: CellReport) -> str:
    row = cell.headline
    if row and row.comparison:
        return plural(row.comparison.pairs, "pair")
    return plural(max((len(side.values) for side in row.sides.values()), default=0) if row else 0, "invocation")
