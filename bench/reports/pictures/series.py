"""Pictures along an axis: sweeps point by point, curves step by step, samples over the time of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from bench.analysis.cells import CellReport
from bench.analysis.curves import Curve
from bench.analysis.numbers import label, percent, plural, quantity, scale_for
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import LEVEL
from bench.model import Metric, Run, Sample
from bench.reports.pictures.session import RIGHT, Look, Picture, name_of, runs_of, ticks, upper
from bench.reports.pictures.svg import LEFT, Axis, Canvas
from bench.reports.sections import tables

MOST_ARMS = 4  # of one picture; the tables have all
MOST_RUNS = 8
_STRIP = 150  # height of one run's strip
_LOG_FROM = 8.0  # greatest over least: beyond that only a logarithm shows the small ones
_DASHES = ("", " d1", " d2", " d3")


def sweeps(cell: CellReport, look: Look) -> Iterator[Picture]:
    """A picture a metric that was measured at several points."""
    for name in dict.fromkeys(row.metric.name for row in cell.sweeps):
        rows = [row for row in cell.sweeps if row.metric.name == name and _values([row])]
        points = list(dict.fromkeys(row.point for row in rows))
        if len(points) > 1:
            yield _sweep(rows, points, cell, look)


def _values(rows: Sequence[MetricRow]) -> list[float]:
    return [side.estimate.value for row in rows for side in row.sides.values() if side.estimate]


def _up(values: Sequence[float], bottom: float, top: float, *, can_be_log: bool = True) -> Axis:
    least = min(values)
    return Axis.around(values, bottom, top, is_log=can_be_log and least > 0 and max(values) / least > _LOG_FROM)


def _sweep(rows: Sequence[MetricRow], points: Sequence[str], cell: CellReport, look: Look) -> Picture:
    metric = rows[0].metric
    arms = list(dict.fromkeys(row.arm for row in rows))
    kept = sorted(arms, key=lambda arm: arm != cell.subject)[:MOST_ARMS]
    drawn = [row for row in rows if row.arm in kept]
    values = _values(drawn)
    ends = [end for row in drawn for band in row.bands.values() for end in (band.low, band.high) if end is not None]
    scale, up = scale_for(metric, values), _up([*values, *ends], 250, 56, can_be_log=metric.kind != "ratio")
    canvas = Canvas(height=300)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.legend(look.legend())
    _names_of_arms(canvas, kept)
    wide = (RIGHT - LEFT) / len(points)
    place = {point: LEFT + wide * (number + 0.5) for number, point in enumerate(points)}
    every = -(-len(points) * 60 // int(RIGHT - LEFT)) or 1
    for number, point in enumerate(points):
        if number % every == 0:
            canvas.words(
                place[point], 272 + (12 * (number // every % 2) if len(points) > 6 else 0), point[:16], anchor="middle"
            )
    for arm, dash in zip(kept, _DASHES, strict=False):
        for topology in look.topologies:
            found = [
                (place[row.point], up.at(side.estimate.value))
                for row in drawn
                if row.arm == arm and (side := row.sides.get(topology)) and side.estimate
            ]
            _band(canvas, [row for row in drawn if row.arm == arm], topology, place, up, look)
            if len(found) > 1:
                canvas.line(found, kind=f"l{dash}", colour=look.colour(topology))
            for x, y in found:
                canvas.mark(x, y, look.shape(topology), colour=look.colour(topology), size=4)
    title = f"{upper(label(metric))} point by point"
    of_subject = [row for row in drawn if row.arm == kept[0]]
    said = "; ".join(
        f"{row.point}: "
        + ", ".join(f"{t} {tables.side_in_words(row.sides.get(t), scale, row)}" for t in look.topologies)
        for row in (of_subject[0], of_subject[-1])
    )
    left_out = f" {plural(len(arms) - len(kept), 'arm')} left out; the table has all." if len(arms) > len(kept) else ""
    return Picture(
        title=f"{title}, {scale.unit}" if scale.unit else title,
        svg=canvas.drawn(name_of("sweep", cell, metric.name), f"{title}. {kept[0]}, first and last point: {said}."),
        says=f"{kept[0]} in {scale.unit or 'its unit'}, first and last point: {said}.{left_out}",
        reads=f"A mark is a median over invocations, a line one arm on one topology.{_of_bands(drawn)} {_better(metric)}{_log(up)}",
        source=f"{metric.name} in {runs_of(cell, look.topologies)}",
    )


def _band(
    canvas: Canvas, rows: Sequence[MetricRow], topology: str, place: Mapping[str, float], up: Axis, look: Look
) -> None:
    """The simultaneous intervals of an arm's points, joined."""
    found = [
        (place[row.point], up.at(band.low), up.at(band.high))
        for row in rows
        if (band := row.bands.get(topology)) and band.low is not None and band.high is not None
    ]
    if len(found) > 1:
        above, below = [(x, y) for x, _, y in found], [(x, y) for x, y, _ in reversed(found)]
        canvas.area([*above, *below], colour=look.colour(topology), kind="range")


def _of_bands(rows: Sequence[MetricRow]) -> str:
    """What the bands promise; less where there are too few invocations for it."""
    levels = [band.level for row in rows for band in row.bands.values() if band.level is not None]
    if not levels:
        return ""
    points = len({row.point for row in rows})
    whole = 1 - points * (1 - min(levels))
    promise = "95 %" if whole >= LEVEL - 1e-9 else f"{percent(max(0.0, whole))}, of so few invocations"
    return f" In a band the medians of all {plural(points, 'point')} lie at once, with {promise} (Bonferroni)."


def _names_of_arms(canvas: Canvas, arms: Sequence[str]) -> None:
    if len(arms) < 2:
        return
    x = float(LEFT)
    for arm, dash in zip(arms, _DASHES, strict=False):
        canvas.line([(x, 32), (x + 30, 32)], kind=f"l{dash}")
        canvas.words(x + 36, 36, arm)
        x += 50 + 7.2 * len(arm)


def _better(metric: Metric) -> str:
    return f"{'Higher' if metric.better == 'higher' else 'Lower'} is better."


def _log(axis: Axis) -> str:
    return " The axis is logarithmic." if axis.is_log else ""


def curves(cell: CellReport, look: Look) -> Iterator[Picture]:
    """A picture a metric that is a curve, and a point."""
    shown = [curve for curve in cell.curves if len(curve.steps) > 1]
    for (name, point), found in groupby(
        sorted(shown, key=lambda curve: (curve.metric.name, curve.point)), key=lambda c: (c.metric.name, c.point)
    ):
        yield _curves(name_of("curve", cell, f"{name} {point}"), list(found), cell, look)


def _curves(name: str, found: Sequence[Curve], cell: CellReport, look: Look) -> Picture:
    metric, point = found[0].metric, found[0].point
    arms = list(dict.fromkeys(curve.arm for curve in found))[:MOST_ARMS]
    drawn = [curve for curve in found if curve.arm in arms]
    values = [value for curve in drawn for value in (*curve.low, *curve.high)]
    scale, up = scale_for(metric, values), _up(values, 250, 56, can_be_log=metric.kind != "ratio")
    along = Axis(min(c.steps[0] for c in drawn), max(c.steps[-1] for c in drawn), LEFT + 8, RIGHT - 8)
    canvas = Canvas(height=304)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.bottom_axis(along, lambda value: f"{value:g}", top=56, bottom=250)
    canvas.words((LEFT + RIGHT) / 2, 294, metric.axis, anchor="middle")
    canvas.legend(look.legend())
    _names_of_arms(canvas, arms)
    said = []
    for curve in drawn:
        colour, dash = look.colour(curve.topology), _DASHES[arms.index(curve.arm)]
        above = [(along.at(x), up.at(y)) for x, y in zip(curve.steps, curve.high, strict=True)]
        below = [(along.at(x), up.at(y)) for x, y in zip(curve.steps, curve.low, strict=True)]
        canvas.area([*above, *reversed(below)], colour=colour, kind="range")
        middle = [(along.at(x), up.at(y)) for x, y in zip(curve.steps, curve.middle, strict=True)]
        canvas.line(middle, kind=f"l{dash}", colour=colour)
        said.append(
            f"{curve.arm} on {curve.topology} from {quantity(metric, curve.middle[0])} to"
            f" {quantity(metric, curve.middle[-1])} at {curve.steps[-1]:g}"
        )
    title = f"{upper(label(metric))} along {metric.axis}" + (f", {point}" if point else "")
    words = "; ".join(said)
    return Picture(
        title=title,
        svg=canvas.drawn(name, f"{title}. {words}."),
        says=f"{words}.",
        reads=(
            "The line is the median over invocations, the band reaches from the least to the greatest. "
            f"{_better(metric)}{_log(up)}"
        ),
        source=f"{metric.name} in {runs_of(cell, look.topologies)}",
    )


def samples(cell: CellReport, runs: Sequence[Run], look: Look) -> Iterator[Picture]:
    """Every sample of the headline, run by run, and how it went over the time of the first block."""
    row = cell.headline
    if row is None:
        return
    of_cell = [run for run in runs if (run.spec.experiment, run.spec.cell) == (cell.experiment, cell.cell)]
    drawn = [(run, found) for run in of_cell if (found := _of_headline(run, row))]
    if drawn:
        yield _raw(row, drawn, cell, look)
        yield _over_time(row, drawn, cell, look)


def _of_headline(run: Run, row: MetricRow) -> list[Sample]:
    return [
        sample
        for sample in run.values.get((row.metric.name, row.arm, None, ""), ())
        if sample.value is not None and run.status == "ok"
    ]


def _raw(row: MetricRow, drawn: Sequence[tuple[Run, list[Sample]]], cell: CellReport, look: Look) -> Picture:
    values = [sample.value for _, found in drawn for sample in found if sample.value is not None]
    scale, up = scale_for(row.metric, values), _up(values, 250, 40)
    canvas = Canvas(height=304)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.legend(look.legend())
    canvas.words(RIGHT, 14, f"{label(row.metric)}, {scale.unit}", anchor="end")
    wide = (RIGHT - LEFT) / len(drawn)
    for number, (run, found) in enumerate(drawn):
        for is_warmup, kind in ((True, "dots warm"), (False, "dots")):
            those = [s.value for s in found if s.warmup == is_warmup and s.value is not None]
            step = wide * 0.7 / max(len(those), 1)
            begin = LEFT + wide * (number + 0.15)
            points = ((begin + step * (i + 0.5), up.at(value)) for i, value in enumerate(those))
            canvas.dots(points, colour=look.colour(run.spec.topology.name), kind=kind)
    canvas.words((LEFT + RIGHT) / 2, 280, "runs, in the order of the session; within each its samples", anchor="middle")
    counted = sum(not sample.warmup for _, found in drawn for sample in found)
    title = f"Raw samples: {label(row.metric)}"
    said = f"{plural(counted, 'sample')} that count and {plural(len(values) - counted, 'warm-up')} of {plural(len(drawn), 'run')}"
    return Picture(
        title=title,
        svg=canvas.drawn(name_of("raw", cell), f"{title}. {said}."),
        says=f"{said}.",
        reads=(
            "Nothing is averaged here. Pale dots are warm-ups, which do not count. Dots that drift with the order of the"
            f" session, or that jump inside a run, are reasons for care. {_better(row.metric)}{_log(up)}"
        ),
        source=f"{row.metric.name} of arm {row.arm} in {runs_of(cell, look.topologies)}",
    )


def _over_time(row: MetricRow, drawn: Sequence[tuple[Run, list[Sample]]], cell: CellReport, look: Look) -> Picture:
    """The first block: each sample as long as it lasted, over phases."""
    block = min(run.spec.block for run, _ in drawn)
    shown = [(run, found) for run, found in drawn if run.spec.block == block][:MOST_RUNS]
    every_arm = [_of_every_arm(run, row) for run, _ in shown]
    values = [sample.value for found in every_arm for sample in found if sample.value is not None]
    scale = scale_for(row.metric, values)
    canvas = Canvas(height=40 + (_STRIP + 44) * len(shown))
    for number, ((run, _), found) in enumerate(zip(shown, every_arm, strict=True)):
        top = 40 + (_STRIP + 44) * number
        up = _up(values, top + _STRIP, top + 8)
        canvas.words(LEFT, top - 4, run.spec.topology.name, kind="t strong")
        canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
        _strip(canvas, run, found, (row.arm, look.colour(run.spec.topology.name)), top, up)
    canvas.words(RIGHT, 14, f"{label(row.metric)}, {scale.unit}", anchor="end")
    title = f"Block {block} over time: {label(row.metric)}"
    said = ", ".join(f"{run.spec.topology.name}: {plural(len(found), 'sample')} of {row.arm}" for run, found in shown)
    return Picture(
        title=title,
        svg=canvas.drawn(name_of("time", cell), f"{title}. {said}."),
        says=f"{said}; grey: the other arms, in their turns.",
        reads=(
            "Each bar is one sample, as long as it lasted, at the height of its value; what comes before the first is"
            " start-up. Bars of one arm that rise or fall through the run: it was not yet steady, or it tired."
            f"{_log(_up(values, 1, 0))}"
        ),
        source=f"{row.metric.name}, all arms, in {runs_of(cell, look.topologies).replace('b*', f'b{block:02d}')}",
    )


def _of_every_arm(run: Run, row: MetricRow) -> list[Sample]:
    return [
        sample
        for (name, _, node, point), found in run.values.items()
        if (name, node, point) == (row.metric.name, None, "")
        for sample in found
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
