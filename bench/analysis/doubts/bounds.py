"""Whether what the CPUs can do stayed the same in the course of a session: by the ceiling, which is measured in every run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from bench.analysis.cells import CellReport
from bench.analysis.doubts.evidence import SESSION, Doubt, Evidence
from bench.analysis.numbers import percent
from bench.analysis.statistics.stats import FEWEST_FOR_VERDICT

MOST_DRIFT = 0.05  # between the first, the middle and the last third of the blocks


def drifted(evidence: Evidence) -> Iterator[Doubt]:
    """A ceiling that was another one at the start, in the middle or at the end: then so was the machine."""
    for experiment in dict.fromkeys(cell.experiment for cell in evidence.cells):
        cells = [cell for cell in evidence.cells if cell.experiment == experiment]
        thirds = _thirds(cells)
        if thirds and max(thirds) > (1 + MOST_DRIFT) * min(thirds):
            first, *others = thirds
            told = ", then ".join(percent(each / first) for each in others)
            text = (
                f"the ceiling of {experiment} drifted: of what the CPUs did in the first third of the blocks they did {told}"
                f" in the others (more than {percent(MOST_DRIFT)} apart). Shares of it, and values that are not pairs, have that too."
            )
            yield Doubt(severity="weakens", about=SESSION, text=text)


def _thirds(cells: list[CellReport]) -> list[float]:
    """The ceiling in each third of the blocks, as a share of its own median; empty where there is none, or few blocks."""
    shares: dict[int, list[float]] = {}
    for cell in cells:
        for row in cell.arms:
            is_bound = row.arm.role == "ceiling" and cell.headline and row.metric == cell.headline.metric.name
            if is_bound and row.side.estimate and row.side.estimate.value > 0:
                for block, value in row.side.values.items():
                    shares.setdefault(block, []).append(value / row.side.estimate.value)
    blocks = sorted(shares)
    if len(blocks) < FEWEST_FOR_VERDICT:
        return []
    ends = [len(blocks) * k // 3 for k in range(4)]
    return [median([s for b in blocks[one:two] for s in shares[b]]) for one, two in pairwise(ends)]
