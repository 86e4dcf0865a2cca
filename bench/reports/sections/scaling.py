"""Shows how an experiment scales: what each number of workers gives, the law that fits, and how much stayed serial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from bench.analysis import Report
from bench.analysis.number_format import label, noun, plain, quantity, scale_for
from bench.analysis.scaling_series import ScalingSeries
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT
from bench.analysis.stats.scaling import Bounds, Point
from bench.counts import plural
from bench.model import Run
from bench.reports import tables
from bench.reports.document import Chapter, Section, name_of
from bench.reports.drawing.axes import REACH, Axis, ticks
from bench.reports.drawing.picture import Look, Picture, upper
from bench.reports.drawing.svg import DASHES, LEFT, MOST_ARMS, RIGHT, Canvas
from bench.reports.tables import Table

_TOP, _BOTTOM = 34, 250
HEADS = (
    ("n", True),
    ("speed-up", True),
    ("efficiency", True),
    ("serial fraction", True),
    ("", False),
)


def chapters(report: Report, _: Sequence[Run] = ()) -> Iterator[Chapter]:
    """A chapter an experiment that was run with several numbers of workers."""
    for experiment, parameter in dict.fromkeys((each.experiment, each.parameter) for each in report.scaling_series):
        those = [each for each in report.scaling_series if (each.experiment, each.parameter) == (experiment, parameter)]
        cards = [
            Section(
                title=title(series),
                table=table(series),
                notes=tuple(notes(series)),
                source="medians over blocks; speed-ups inside the blocks; intervals of the law by drawing blocks",
            )
            for series in those
        ]
        best = tuple(at_best(those))
        drawn = partial(pictures, report, those)
        last = Section(title="each arm at its best" if best else "", notes=best, draw=drawn)
        yield Chapter(title=f"{experiment}: how it grows with {parameter}", sections=(*cards, last))


def title(series: ScalingSeries) -> str:
    """By what it is judged, which arm, where, and of which params."""
    return f"{upper(label(series.metric))}: {series.arm} on {_place(series)}"


def _place(series: ScalingSeries) -> str:
    params = ", ".join(f"{name}={value}" for name, value in series.params.items())
    return series.topology + (f", {params}" if params else "")


def table(series: ScalingSeries) -> Table:
    """A row a number of workers."""
    heads = ((series.parameter, True), (label(series.metric), True), *HEADS)
    return tables.table(heads, [tables.row(_cells(series, point)) for point in series.card.points])


def _value(series: ScalingSeries, point: Point) -> str:
    """What was measured: a time is kept as how often it goes into a second."""
    return quantity(series.metric, 1 / point.rate if series.metric.kind == "time" else point.rate)


def notes(series: ScalingSeries) -> Iterator[str]:
    """Describe the law, or why there is none."""
    card = series.card
    if series.missing:
        yield _survivors(series)
    if card.points and card.points[0].workers > 1:
        fewest = card.points[0].workers
        fewer = [each for each in series.without if each < fewest]
        why = f"no run with {fewer[0]} has a {noun(series.metric)}" if fewer else "one was not measured"
        yield (
            f"speed-ups are against {fewest} {series.parameter}, and {why}:"
            f" what these lose against {fewer[0] if fewer else 'one'} does not show"
        )
    fractions = [point.serial_fraction for point in card.points if point.serial_fraction is not None]
    if any(fraction > 1 for fraction in fractions):
        yield f"a serial fraction above 1: so many {series.parameter} do less than the fewest"
    if any(fraction < 0 for fraction in fractions):
        yield f"a serial fraction below 0: so many {series.parameter} do more than as many times the fewest"
    if card.refusal:
        yield f"no law is fitted: {card.refusal}"
    if card.law is None:
        return
    found = (
        ("contention", card.law.contention),
        ("coherency", card.law.coherency),
        (f"best number of {series.parameter}", card.law.best_workers),
    )
    coefficients = "; ".join(f"{name} {_bounds(bounds)}" for name, bounds in found if bounds)
    yield f"fitted law ({card.law.name}): {coefficients or 'nothing can be told'}"
    yield from card.law.reasons


def _survivors(series: ScalingSeries) -> str:
    """What the speed-ups leave out, such as trainings that did not reach the target."""
    have = f"{plural(series.missing, 'run has', 'runs have')} none"
    longer = " and would take longer" if series.metric.means == "time to target" else ""
    return f"speed-ups are of the runs that have a {noun(series.metric)}: {have}{longer}"


def at_best(all_series: Sequence[ScalingSeries]) -> Iterator[str]:
    """Arms beside each other, each with the number of workers that it does most with; a line a topology and params.

    Nothing is said from fewer invocations than a verdict needs: the table has the rates, and how many each is from.
    """
    rates = [series for series in all_series if series.metric.kind != "time"]
    for place in dict.fromkeys(map(_place, rates)):
        bests = [
            (series, max(series.card.points, key=lambda point: point.rate))
            for series in rates
            if _place(series) == place
        ]
        (lead, first), *others = bests
        sentences = [f"{lead.arm} does most with {lead.parameter}={first.workers}, {quantity(lead.metric, first.rate)}"]
        sentences += [
            f"{one.arm} with {one.parameter}={best.workers}, {best.rate / first.rate:.2f} times that"
            for one, best in others
        ]
        if others and all(point.n >= FEWEST_FOR_VERDICT for _, point in bests):
            yield f"on {place}: {'; '.join(sentences)}"


def _cells(series: ScalingSeries, point: Point) -> list[str]:
    return [
        str(point.workers),
        _value(series, point),
        str(point.n),
        f"{point.speed_up:.2f}",
        f"{point.efficiency:.0%}",
        "-" if point.serial_fraction is None else f"{point.serial_fraction:.3f}",
        "more workers than CPUs" if point.is_crowded else "",
    ]


def _bounds(bounds: Bounds) -> str:
    return f"{plain(bounds.value)} [{plain(bounds.low)}, {plain(bounds.high)}]"


def pictures(report: Report, those: Sequence[ScalingSeries]) -> Iterator[Picture]:
    """The speed-up of all arms by each metric; then for each arm the rate, and the serial fraction where there is one."""
    look = Look.of(report)
    for _, found in groupby(sorted(those, key=_measure), key=_measure):
        yield from _speed_ups(list(found), look)
    for _, found in groupby(sorted((each for each in those if each.metric.kind != "time"), key=_key), key=_key):
        all_series = list(found)
        yield _rates(all_series, look)
        if any(point.serial_fraction is not None for series in all_series for point in series.card.points):
            yield _serial(all_series, look)


def _key(series: ScalingSeries) -> str:
    """What scaling series have in common that go into one picture: all but the topology."""
    return ", ".join([series.arm, *(f"{name}={value}" for name, value in series.params.items())])


def _measure(series: ScalingSeries) -> str:
    """The same, but for the arm."""
    return ", ".join([label(series.metric), *(f"{name}={value}" for name, value in series.params.items())])


def _speed_ups(all_series: Sequence[ScalingSeries], look: Look) -> Iterator[Picture]:
    """Every arm and topology beside the ideal: a picture for each base, or several where there are more arms than dashes."""
    for base in sorted({_base(series) for series in all_series}):
        same = [series for series in all_series if _base(series) == base]
        arms = list(dict.fromkeys(series.arm for series in same))
        for number in range(0, len(arms), MOST_ARMS):
            shown = arms[number : number + MOST_ARMS]
            yield _speed_up([series for series in same if series.arm in shown], shown, look)


def _base(series: ScalingSeries) -> int:
    """The number of workers that its speed-ups are against."""
    return series.card.points[0].workers


def _speed_up(all_series: Sequence[ScalingSeries], arms: Sequence[str], look: Look) -> Picture:
    first = all_series[0]
    points = [point for series in all_series for point in series.card.points]
    fewest, most = _base(first), max(point.workers for point in points)
    up = Axis.around([point.speed_up for point in points], _BOTTOM, _TOP + 14, is_log=True, holds=(1.0, most / fewest))
    canvas, along = _canvas(all_series, look)
    canvas.left_axis(up, lambda value: f"{value:.3g}", right=RIGHT)
    canvas.legend_of_arms(arms)
    ideal = [(along.at(fewest), up.at(1.0)), (along.at(most), up.at(most / fewest))]
    canvas.line(ideal, kind="reach")
    canvas.words(along.at(most) - 4, up.at(most / fewest) - 6, "ideal", anchor="end")
    sentences = []
    for series in all_series:
        colour = look.colour(series.topology)
        places = [(along.at(point.workers), up.at(point.speed_up)) for point in series.card.points]
        canvas.line(places, kind=f"l{DASHES[arms.index(series.arm)]}", colour=colour)
        for x, y in places:
            canvas.mark(x, y, look.shape(series.topology), colour=colour, size=4)
        last = series.card.points[-1]
        sentences.append(f"{series.arm} on {series.topology} {last.speed_up:.2f} at {last.workers}")
    left_out = "".join(
        f" Of {series.arm} on {series.topology}, {_survivors(series)}." for series in all_series if series.missing
    )
    return _picture(
        canvas,
        all_series,
        kind=f"speed-up-{first.metric.name}-{fewest}-{arms[0]}",
        title=f"Speed-up by {_measure(first)}, against {first.parameter}{f', relative to {fewest}' if fewest > 1 else ''}",
        says=f"Speed-up by {noun(first.metric)}: {'; '.join(sentences)}.",
        reads=(
            f"A mark is the median over blocks of how many times as fast it is as with {fewest}, each block by itself. On the"
            f" dotted line twice as many {first.parameter} are twice as fast. Both axes are logarithmic.{left_out}{_crowded(all_series)}"
        ),
    )


def _rates(all_series: Sequence[ScalingSeries], look: Look) -> Picture:
    metric = all_series[0].metric
    curves = [point for each in all_series if each.card.law for point in each.card.law.curve]
    values = [p.rate for each in all_series for p in each.card.points] + [v for p in curves for v in (p.low, p.high)]
    near = [each.ceiling for each in all_series if each.ceiling and each.ceiling <= REACH * max(values)]
    scale, up = scale_for(metric, values), Axis.around([*values, *near], _BOTTOM, _TOP, holds=(0.0,))
    canvas, along = _canvas(all_series, look)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    sentences = []
    for series in all_series:
        colour, law = look.colour(series.topology), series.card.law
        if series.ceiling:
            y = up.at(series.ceiling)
            canvas.line([(along.begin, y), (along.end, y)], kind="reach", colour=colour)
        if law and law.curve:
            canvas.range([(along.at(p.workers), up.at(p.low), up.at(p.high)) for p in law.curve], colour=colour)
            canvas.line([(along.at(point.workers), up.at(point.rate)) for point in law.curve], colour=colour)
        for point in series.card.points:
            canvas.mark(along.at(point.workers), up.at(point.rate), look.shape(series.topology), colour=colour)
        best = max(series.card.points, key=lambda point: point.rate)
        fitted = f", along {law.name}" if law else ", no law"
        of = f" of {quantity(metric, series.ceiling)}, the most that the CPUs can do" if series.ceiling else ""
        sentences.append(f"{series.topology} has its most at {best.workers}: {quantity(metric, best.rate)}{of}{fitted}")
    words = "; ".join(sentences)
    return _picture(
        canvas,
        all_series,
        kind="rates",
        title=f"{upper(label(metric))} against {all_series[0].parameter}, {_key(all_series[0])}",
        says=f"{words}.",
        reads=(
            "A mark is the median over blocks. The line is the law that fits (USL, or Amdahl's where USL is no better), and"
            " its band what 95 % of the fits to blocks drawn anew say; without a line there were too few points to fit one."
            f"{' Dotted: the ceiling, at the upper edge where it lies above.' if any(x.ceiling for x in all_series) else ''}"
            f"{_crowded(all_series)}"
        ),
    )


def _serial(all_series: Sequence[ScalingSeries], look: Look) -> Picture:
    found = {
        series.topology: [(p.workers, p.serial_fraction) for p in series.card.points if p.serial_fraction is not None]
        for series in all_series
    }
    values = [fraction for points in found.values() for _, fraction in points]
    up = Axis.around(values, _BOTTOM, _TOP, holds=(0.0,))
    canvas, along = _canvas(all_series, look)
    canvas.left_axis(up, lambda value: f"{value:.3g}", right=RIGHT)
    for topology, points in found.items():
        places = [(along.at(workers), up.at(fraction)) for workers, fraction in points]
        if len(places) > 1:
            canvas.line(places, colour=look.colour(topology))
        for x, y in places:
            canvas.mark(x, y, look.shape(topology), colour=look.colour(topology))
    words = "; ".join(
        f"{topology} from {points[0][1]:.3f} at {points[0][0]} to {points[-1][1]:.3f} at {points[-1][0]}"
        for topology, points in found.items()
        if points
    )
    return _picture(
        canvas,
        all_series,
        kind="serial",
        title=f"Serial fraction against {all_series[0].parameter}, {_key(all_series[0])}",
        says=f"{words}.",
        reads=(
            "The share of the work that would have to be serial to explain the speed-up (Karp and Flatt). Level: some of it"
            " is serial. Rising: what the workers cost each other grows with their number. Below 0: more than linear."
            f"{_crowded(all_series)}"
        ),
    )


def _canvas(all_series: Sequence[ScalingSeries], look: Look) -> tuple[Canvas, Axis]:
    """With the axis of workers below, which is logarithmic: a scaling series doubles."""
    workers = [point.workers for series in all_series for point in series.card.points]
    along = Axis.around(workers, LEFT + 8, RIGHT - 8, is_log=True)
    canvas = Canvas(height=304)
    for count in sorted(set(workers)):
        x = along.at(count)
        canvas.line([(x, _TOP), (x, _BOTTOM)], kind="grid")
        canvas.words(x, _BOTTOM + 16, str(count), anchor="middle")
    canvas.words((LEFT + RIGHT) / 2, 294, all_series[0].parameter, anchor="middle")
    drawn = {series.topology for series in all_series}
    canvas.legend([entry for entry in look.legend() if entry[0] in drawn])
    return canvas, along


def _crowded(all_series: Sequence[ScalingSeries]) -> str:
    crowded = [point.workers for series in all_series for point in series.card.points if point.is_crowded]
    return f" From {min(crowded)} on there are more workers than CPUs." if crowded else ""


def _picture(
    canvas: Canvas, all_series: Sequence[ScalingSeries], *, kind: str, title: str, says: str, reads: str
) -> Picture:
    first = all_series[0]
    arms = ", ".join(dict.fromkeys(series.arm for series in all_series))
    return Picture(
        title=title,
        canvas=canvas,
        name=name_of(f"scaling-{kind}-{first.experiment}-{_key(first)}"),
        says=says,
        reads=reads,
        source=f"{first.metric.name} of {arms} in runs/*-{first.experiment}-*/samples.jsonl; median over blocks",
    )
