"""Which run's timelines a report draws, and the phases of a run: start-up, warm-up turns, turns that count, by arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.analysis.cells import CellReport, slowest
from bench.analysis.usage import IDLE
from bench.model import Run

PhaseName = Literal["idle", "start-up", "warm-up", "counted"]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of a run, on the driver's clock."""

    name: PhaseName
    arm: str  # empty: of none
    turn: int
    begin: float
    end: float


def drawn(cells: Sequence[CellReport], runs: Sequence[Run]) -> list[Run]:
    """The runs whose timelines are drawn: of each experiment, those of one block of the cell that is shown first."""
    first = [slowest([each for each in cells if each.experiment == name]) for name in {c.experiment for c in cells}]
    return [run for cell in first for run in shown(cell, runs)]


def shown(cell: CellReport, runs: Sequence[Run]) -> list[Run]:
    """One good run of each topology, all of the block that is in the middle by the headline, where all have one."""
    block = median_block(cell)
    of_block = [
        run
        for run in runs
        if (run.spec.experiment, run.spec.cell, run.spec.block, run.status) == (cell.experiment, cell.cell, block, "ok")
    ]
    return list({run.spec.topology.name: run for run in of_block}.values())


def median_block(cell: CellReport) -> int | None:
    """The block with the median of the headline on the last topology; of an even number, the lower of two."""
    row = cell.headline
    measured = [side.values for side in row.sides.values() if side.values] if row else []
    if not measured:
        return None
    everywhere = {block: value for block, value in measured[-1].items() if all(block in each for each in measured)}
    ordered = sorted((everywhere or measured[-1]).items(), key=lambda each: (each[1], each[0]))
    return ordered[(len(ordered) - 1) // 2][0]


def phases(run: Run, *, warmups: int) -> tuple[Phase, ...]:
    """Those of a run in their order; `warmups`: its first turns that do not count."""
    found = {(each.begin, each.end): each for each in _timed(run, warmups)}
    ordered = sorted(found.values(), key=lambda each: each.begin)
    turns = [each for each in ordered if each.name != "idle"]
    idle = max((each.end for each in ordered if each.name == "idle"), default=None)
    if turns and idle is not None and turns[0].begin > idle:
        ordered.append(Phase(name="start-up", arm="", turn=0, begin=idle, end=turns[0].begin))
    return tuple(sorted(ordered, key=lambda each: each.begin))


def _timed(run: Run, warmups: int) -> Iterator[Phase]:
    """Every interval of a turn, watched or not, and the idle one. Curves and rows of points lie inside these."""
    watched = {(row.arm, row.turn) for row in run.usage}
    for row in run.usage:
        if row.arm == IDLE:
            yield Phase(name="idle", arm="", turn=0, begin=row.interval.begin, end=row.interval.end)
        elif row.turn > 0:
            yield _of_turn(row.arm, row.turn, row.interval.begin, row.interval.end, warmups)
    for sample in run.samples:
        if sample.turn > 0 and sample.step is None and (sample.arm, sample.turn) not in watched:
            yield _of_turn(sample.arm, sample.turn, sample.interval.begin, sample.interval.end, warmups)


def _of_turn(arm: str, turn: int, begin: float, end: float, warmups: int) -> Phase:
    return Phase(name="warm-up" if turn <= warmups else "counted", arm=arm, turn=turn, begin=begin, end=end)
