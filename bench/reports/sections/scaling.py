"""Cards of scaling as tables: what each number of workers gives, and the law that fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.ladders import Ladder
from bench.analysis.numbers import plain, quantity
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT
from bench.analysis.stats.scaling import Bounds, Point
from bench.reports.sections import grid
from bench.reports.sections.grid import Table

HEADS = (
    ("workers", True),
    ("rate", True),
    ("n", True),
    ("speed-up", True),
    ("efficiency", True),
    ("serial fraction", True),
    ("", False),
)


def title(ladder: Ladder) -> str:
    """Which arm, where, and of which params."""
    return f"{ladder.arm} on {_place(ladder)}"


def _place(ladder: Ladder) -> str:
    params = ", ".join(f"{name}={value}" for name, value in ladder.params.items())
    return ladder.topology + (f", {params}" if params else "")


def table(ladder: Ladder) -> Table:
    """A row a number of workers."""
    return grid.table(HEADS, [grid.row(_cells(ladder, point)) for point in ladder.card.points])


def notes(ladder: Ladder) -> Iterator[str]:
    """The law in words, or why there is none."""
    card = ladder.card
    if card.points and card.points[0].workers > 1:
        yield (
            f"speed-ups are against {card.points[0].workers} {ladder.parameter}, and one was not measured:"
            " what these lose against one does not show"
        )
    fractions = [point.serial_fraction for point in card.points if point.serial_fraction is not None]
    if any(fraction > 1 for fraction in fractions):
        yield f"a serial fraction above 1: so many {ladder.parameter} do less than the fewest"
    if any(fraction < 0 for fraction in fractions):
        yield f"a serial fraction below 0: so many {ladder.parameter} do more than as many times the fewest"
    if card.refusal:
        yield f"no law is fitted: {card.refusal}"
    if card.law is None:
        return
    found = (
        ("contention", card.law.contention),
        ("coherency", card.law.coherency),
        (f"best number of {ladder.parameter}", card.law.best_workers),
    )
    told = "; ".join(f"{name} {_bounds(bounds)}" for name, bounds in found if bounds)
    yield f"fitted law ({card.law.name}): {told or 'nothing can be told'}"
    yield from card.law.reasons


def at_best(ladders: Sequence[Ladder]) -> Iterator[str]:
    """Arms beside each other, each with the number of workers that it does most with; a line a topology and params.

    Nothing is said from fewer invocations than a verdict needs: the table has the rates, and how many each is from.
    """
    for place in dict.fromkeys(_place(ladder) for ladder in ladders):
        bests = [
            (ladder, max(ladder.card.points, key=lambda point: point.rate))
            for ladder in ladders
            if _place(ladder) == place
        ]
        (lead, first), *others = bests
        told = [f"{lead.arm} does most with {lead.parameter}={first.workers}, {quantity(lead.metric, first.rate)}"]
        told += [
            f"{one.arm} with {one.parameter}={best.workers}, {best.rate / first.rate:.2f} times that"
            for one, best in others
        ]
        if others and all(point.n >= FEWEST_FOR_VERDICT for _, point in bests):
            yield f"on {place}: {'; '.join(told)}"


def _cells(ladder: Ladder, point: Point) -> list[str]:
    return [
        str(point.workers),
        quantity(ladder.metric, point.rate),
        str(point.n),
        f"{point.speed_up:.2f}",
        f"{point.efficiency:.0%}",
        "-" if point.serial_fraction is None else f"{point.serial_fraction:.3f}",
        "more workers than CPUs" if point.is_crowded else "",
    ]


def _bounds(bounds: Bounds) -> str:
    return f"{plain(bounds.value)} [{plain(bounds.low)}, {plain(bounds.high)}]"
