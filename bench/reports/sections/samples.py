"""Draws every sample of the headline: run by run, and over the time of the first block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.number_format import label, scale_for
from bench.analysis.rows import MetricRow
from bench.counts import plural
from bench.model import Run, Sample
from bench.reports.document import CellView
from bench.reports.drawing.axes import Axis, log_note, ticks, value_axis
from bench.reports.drawing.picture import Picture, better
from bench.reports.drawing.svg import LEFT, RIGHT, Canvas

MOST_RUNS = 8
_STRIP = 150  # height of one run's strip


def pictures(view: CellView) -> Iterator[Picture]:
    """Every sample of the headline, run by run, and how it went over the time of the first block."""
    row = view.cell.headline
    if row is None:
        return
    of_cell = [
        run for run in view.runs if (run.spec.experiment, run.spec.cell) == (view.cell.experiment, view.cell.cell)
    ]
    drawn = [(run, found) for run in of_cell if (found := _of_headline(run, row))]
    if drawn:
        yield _raw(row, drawn, view)
        yield _over_time(row, drawn, view)


def _of_headline(run: Run, row: MetricRow) -> list[Sample]:
    return [
        sample
        for sample in _of_every_arm(run, row)
        if sample.arm == row.arm and sample.value is not None and run.status == "ok"
    ]


def _raw(row: MetricRow, drawn: Sequence[tuple[Run, list[Sample]]], view: CellView) -> Picture:
    values = [sample.value for _, found in drawn for sample in found if sample.value is not None]
    scale, up = scale_for(row.metric, values), value_axis(values, 250, 40)
    canvas = Canvas(height=304)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.legend(view.look.legend())
    canvas.words(RIGHT, 14, f"{label(row.metric)}, {scale.unit}", anchor="end")
    wide = (RIGHT - LEFT) / len(drawn)
    for number, (run, found) in enumerate(drawn):
        for is_warmup, kind in ((True, "dots warm"), (False, "dots")):
            those = [s.value for s in found if s.warmup == is_warmup and s.value is not None]
            step = wide * 0.7 / max(len(those), 1)
            begin = LEFT + wide * (number + 0.15)
            points = ((begin + step * (i + 0.5), up.at(value)) for i, value in enumerate(those))
            canvas.dots(points, colour=view.look.colour(run.spec.topology.name), kind=kind)
    canvas.words((LEFT + RIGHT) / 2, 280, "runs, in the order of the session; within each its samples", anchor="middle")
    counted = sum(not sample.warmup for _, found in drawn for sample in found)
    title = f"Raw samples: {label(row.metric)}"
    sentence = f"{plural(counted, 'sample')} that count and {plural(len(values) - counted, 'warm-up')} of {plural(len(drawn), 'run')}"
    return Picture(
        title=title,
        canvas=canvas,
        name=view.name("raw"),
        says=f"{sentence}.",
        reads=(
            "Nothing is averaged here. Pale dots are warm-ups, which do not count. Dots that drift with the order of the"
            f" session, or that jump inside a run, are reasons for care.{better(row.metric)}{log_note(up)}"
        ),
        source=f"{row.metric.name} of arm {row.arm} in {view.runs_of()}",
    )


def _over_time(row: MetricRow, drawn: Sequence[tuple[Run, list[Sample]]], view: CellView) -> Picture:
    """The first block: each sample as long as it lasted, over phases."""
    block = min(run.spec.block for run, _ in drawn)
    shown = [(run, found) for run, found in drawn if run.spec.block == block][:MOST_RUNS]
    every_arm = [_of_every_arm(run, row) for run, _ in shown]
    values = [sample.value for found in every_arm for sample in found if sample.value is not None]
    scale = scale_for(row.metric, values)
    canvas = Canvas(height=40 + (_STRIP + 44) * len(shown))
    for number, ((run, _), found) in enumerate(zip(shown, every_arm, strict=True)):
        top = 40 + (_STRIP + 44) * number
        up = value_axis(values, top + _STRIP, top + 8)
        canvas.words(LEFT, top - 4, run.spec.topology.name, kind="t strong")
        canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
        _strip(canvas, run, found, (row.arm, view.look.colour(run.spec.topology.name)), top, up)
    canvas.words(RIGHT, 14, f"{label(row.metric)}, {scale.unit}", anchor="end")
    title = f"Block {block} over time: {label(row.metric)}"
    sentence = ", ".join(
        f"{run.spec.topology.name}: {plural(len(found), 'sample')} of {row.arm}" for run, found in shown
    )
    return Picture(
        title=title,
        canvas=canvas,
        name=view.name("time"),
        says=f"{sentence}; grey: the other arms, in their turns.",
        reads=(
            "Each bar is one sample, as long as it lasted, at the height of its value; what comes before the first is"
            " start-up. Bars of one arm that rise or fall through the run: it was not yet steady, or it tired."
            f"{log_note(value_axis(values, 1, 0))}"
        ),
        source=f"{row.metric.name}, all arms, in {view.runs_of(f'b{block:02d}')}",
    )


def _of_every_arm(run: Run, row: MetricRow) -> list[Sample]:
    return [
        sample
        for sample in run.samples
        if (sample.metric, sample.node, sample.point, sample.step) == (row.metric.name, None, "", None)
    ]


def _strip(canvas: Canvas, run: Run, found: Sequence[Sample], subject: tuple[str, str], top: float, up: Axis) -> None:
    """One run along its time: its phases behind, its samples before them; `subject` is an arm and its colour."""
    zero = min(sample.interval.begin for sample in run.samples)
    along = Axis(0.0, max(sample.interval.end for sample in run.samples) - zero or 1.0, LEFT, RIGHT)
    for words, kind in (("warm-up", "phase warm"), ("counted", "phase")):
        those = [sample.interval for sample in found if sample.warmup == (words == "warm-up")]
        if those:
            begin = along.at(min(each.begin for each in those) - zero)
            end = along.at(max(each.end for each in those) - zero)
            canvas.box(begin, top, end - begin, _STRIP, kind=kind)
            canvas.words((begin + end) / 2, top - 4, words, anchor="middle")
    canvas.bottom_axis(along, lambda value: f"{value:g} s", top=top, bottom=top + _STRIP)
    for sample in found:
        if sample.value is not None:
            ends = [(along.at(t - zero), up.at(sample.value)) for t in (sample.interval.begin, sample.interval.end)]
            is_subject = sample.arm == subject[0]
            canvas.line(ends, kind="bar" if is_subject else "bar other", colour=subject[1] if is_subject else "")
