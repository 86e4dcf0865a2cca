"""Draws a metric along its axis for several cells in one picture: a line a level of the parameter that is varied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.contrasts import Contrast, format_value
from bench.analysis.curves import Curve
from bench.analysis.number_format import label, quantity, scale_for
from bench.model import Metric
from bench.reports.document import name_of
from bench.reports.drawing import colours
from bench.reports.drawing.axes import Axis, log_note, ticks, value_axis
from bench.reports.drawing.picture import Picture, better, upper
from bench.reports.drawing.svg import DASHES, LEFT, RIGHT, Canvas

MOST_LEVELS = len(colours.LEVELS)  # of one picture

Key = tuple[str, str]
"""Metric and arm of a curve."""


def pictures(report: Report, contrasts: Sequence[Contrast]) -> Iterator[Picture]:
    """For each parameter that is varied, and each metric with an axis, a picture an arm."""
    cells = {cell.cell: cell for cell in report.cells if cell.experiment == contrasts[0].experiment}
    groups: dict[tuple[str, tuple[str, ...]], list[Contrast]] = {}
    for each in contrasts:
        groups.setdefault((each.baseline, each.parameters), []).append(each)
    for those in groups.values():
        levels = {those[0].baseline: those[0].before} | {each.candidate: each.after for each in those}
        names = {cell: ", ".join(map(format_value, values.values())) for cell, values in levels.items()}
        by_key: dict[Key, list[tuple[str, Curve]]] = {}
        for cell, name in names.items():
            for key, curve in _curves(cells[cell]):
                by_key.setdefault(key, []).append((name, curve))
        of_metric: dict[str, list[Key]] = {}  # all arms of a metric follow each other
        for key in by_key:
            of_metric.setdefault(key[0], []).append(key)
        for keys in of_metric.values():
            for key in keys:
                yield from _of_arm(by_key[key], those[0], report)


def _curves(cell: CellReport) -> Iterator[tuple[Key, Curve]]:
    """Those of a cell that are lines of an arm; a point, as a trial is, has no other cell's beside it."""
    for curve in cell.curves:
        if len(curve.steps) > 1 and not curve.point:
            yield (curve.metric.name, curve.arm), curve


def _of_arm(found: Sequence[tuple[str, Curve]], change: Contrast, report: Report) -> Iterator[Picture]:
    """One picture, or several where there are more levels than colours."""
    names = list(dict.fromkeys(name for name, _ in found))
    for number in range(0, len(names) if len(names) > 1 else 0, MOST_LEVELS):
        some = names[number : number + MOST_LEVELS]
        yield _picture([(name, curve) for name, curve in found if name in some], some, change, report)


def _name(metric: Metric) -> str:
    """accuracy by seconds, or loss along iterations where the name does not say it."""
    return label(metric) if label(metric).endswith(metric.axis) else f"{label(metric)} along {metric.axis}"


def _picture(drawn: Sequence[tuple[str, Curve]], names: Sequence[str], change: Contrast, report: Report) -> Picture:
    metric, arm = drawn[0][1].metric, drawn[0][1].arm
    parameter = ", ".join(change.parameters)
    topologies = [topology.name for topology in report.topologies]
    values = [value for _, curve in drawn for value in curve.middle]
    scale, up = (
        scale_for(metric, values),
        value_axis(values, 250, 56, can_be_log=metric.kind != "ratio" and metric.unit != "%"),
    )
    steps = [step for _, curve in drawn for step in (curve.steps[0], curve.steps[-1])]
    along = Axis(min(steps), max(steps), LEFT + 8, RIGHT - 8)
    canvas = Canvas(height=304)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.bottom_axis(along, lambda value: f"{value:g}", top=56, bottom=250)
    canvas.words((LEFT + RIGHT) / 2, 294, metric.axis, anchor="middle")
    canvas.legend([(name, colour, "square") for name, colour in zip(names, colours.LEVELS, strict=False)])
    canvas.legend_of_arms(topologies)
    sentences = []
    for name, curve in drawn:
        dash = DASHES[topologies.index(curve.topology) % len(DASHES)]
        middle = [(along.at(x), up.at(y)) for x, y in zip(curve.steps, curve.middle, strict=True)]
        canvas.line(middle, kind=f"l{dash}", colour=colours.LEVELS[names.index(name)])
        if curve.topology == drawn[0][1].topology:  # each level at a place of its own, so that words keep apart
            x, y = middle[(len(middle) - 1) * (names.index(name) + 1) // (len(names) + 1)]
            canvas.words(x, y - 5, name, anchor="middle")
        last = quantity(metric, curve.middle[-1])
        sentences.append(f"{name} on {curve.topology} to {last} at {curve.steps[-1]:.4g}")
    group = name_of(f"overlaid-{change.experiment}-{metric.name}-{change.where}-{parameter}-{names[0]}")
    return Picture(
        title=f"{upper(_name(metric))}, by {parameter}: {arm}" + (f", {change.where}" if change.where else ""),
        canvas=canvas,
        name=name_of(f"{group}-{arm}"),
        says=f"{upper(parameter)} {'; '.join(sentences)}.",
        reads=(
            f"A line is the median over the invocations of one cell. Its colour, and the word on it, is the value of"
            f" {parameter}; its dashes are the topology.{better(metric)}{log_note(up)}"
        ),
        source=f"{metric.name} of {arm} in runs/*-{change.experiment}-*/samples.jsonl; median over invocations",
        group=group,
        choice=arm,
    )
