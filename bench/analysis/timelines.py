"""Which run's timelines a report draws, and the phases of a run: start-up, warm-up turns, turns that count, by arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.analysis.cells import CellReport, slowest
from bench.analysis.usage import IDLE
from bench.model import Run

PhaseName = Literal["idle", "start-up", "warm-up", "counted"]
MOST_BLOCKS, FEWEST_BLOCKS = 6, 3  # of a cell: all blocks of so many, of more the median, the fastest and the slowest
MOST_RUNS = 48  # of a page


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of a run, on the driver's clock."""

    name: PhaseName
    arm: str  # empty: of none
    turn: int
    begin: float
    end: float


def drawn(cells: Sequence[CellReport], runs: Sequence[Run]) -> list[Run]:
    """The runs whose timelines are drawn: some blocks of each cell, of the cell that is shown first before all others."""
    names = dict.fromkeys(cell.experiment for cell in cells)
    first = [slowest([cell for cell in cells if cell.experiment == name]) for name in names]
    ordered = [*first, *(cell for cell in cells if all(cell is not each for each in first))]
    for most_blocks in (MOST_BLOCKS, FEWEST_BLOCKS):
        of_cells = [shown(cell, runs, most_blocks=most_blocks) for cell in ordered]
        if sum(map(len, of_cells)) <= MOST_RUNS:
            break
    found: list[Run] = []
    for those in of_cells:
        if not found or len(found) + len(those) <= MOST_RUNS:
            found += those
    return found


def shown(cell: CellReport, runs: Sequence[Run], *, most_blocks: int = MOST_BLOCKS) -> list[Run]:
    """The good runs of each topology in the blocks that are drawn, the one in the middle by the headline first."""
    ranks = ranked(cell)
    chosen = [block for block, rank in ranks.items() if len(ranks) <= most_blocks or rank]
    of_blocks = {
        (run.spec.block, run.spec.topology.name): run
        for run in runs
        if (run.spec.experiment, run.spec.cell, run.status) == (cell.experiment, cell.cell, "ok")
    }
    return [run for block in chosen for (of, _), run in of_blocks.items() if of == block]


def ranked(cell: CellReport) -> dict[int, str]:
    """The blocks that can be drawn, and which of them are "median", "fastest" and "slowest" on the last topology.

    Those with the headline on every topology, or where there is none, on the last one. The median comes first, of an even
    number the lower of two; the others follow in their order.
    """
    row = cell.headline
    measured = [side.values for side in row.sides.values() if side.values] if row else []
    if row is None or not measured:
        return {}
    everywhere = {block: value for block, value in measured[-1].items() if all(block in each for each in measured)}
    ordered = sorted((everywhere or measured[-1]).items(), key=lambda each: (each[1], each[0]))
    median = ordered[(len(ordered) - 1) // 2][0]
    lowest, highest = ("fastest", "slowest") if row.metric.better == "lower" else ("slowest", "fastest")
    names = {ordered[0][0]: lowest, ordered[-1][0]: highest, median: "median"}
    return {
        block: names.get(block, "") for block in [median, *sorted(block for block, _ in ordered if block != median)]
    }


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
