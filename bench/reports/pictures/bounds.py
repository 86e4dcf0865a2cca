"""The most that the CPUs could do, in the picture of what was done: by the ceilings measured in the same invocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.cells import CellReport
from bench.analysis.numbers import Scale, plain
from bench.reports.pictures.svg import Axis, Canvas

REACH = 2.0  # times what was measured: a line farther off would press all else together, and is named at the edge
_HALF = 70  # of a line's width


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The median of a ceiling on one topology, in the unit of the headline."""

    topology: str
    arm: str
    value: float


def of_cell(cell: CellReport) -> tuple[Bound, ...]:
    """Those that were measured in the headline's metric."""
    return tuple(
        Bound(topology=row.topology, arm=row.arm.name, value=row.side.estimate.value)
        for row in cell.ceilings
        if row.side.estimate
    )


def in_reach(bounds: Sequence[Bound], values: Sequence[float]) -> list[float]:
    """Those that a picture of `values` has room for."""
    least, most = min(values) / REACH, max(values) * REACH
    return [bound.value for bound in bounds if least <= bound.value <= most]


def draw(canvas: Canvas, up: Axis, places: Mapping[str, float], bounds: Sequence[Bound], scale: Scale) -> None:
    """A dotted line a bound, over the column of its topology; at the edge, with an arrow, where it lies beyond."""
    for bound in bounds:
        x, y = places[bound.topology], up.at(bound.value)
        canvas.line([(x - _HALF, y), (x + _HALF, y)], kind="reach")
        away = "↑ " if bound.value > up.high else "↓ " if bound.value < up.low else ""
        canvas.words(x, y - 5, f"{away}{bound.arm} {plain(bound.value, scale)}", anchor="middle")


def in_words(bounds: Sequence[Bound], scale: Scale) -> str:
    """What they are, in a sentence; nothing where no ceiling was measured."""
    if not bounds:
        return ""
    told = ", ".join(f"{bound.arm} {plain(bound.value, scale)} on {bound.topology}" for bound in bounds)
    return f" The most that the CPUs can do, dotted: {told}."
