"""Whether what the machine can do stayed the same in the course of a session: by the ceiling and by copying memory, in every run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import fmean

from bench.analysis.caveats.evidence import SESSION, Caveat, Evidence
from bench.analysis.cells import CellReport
from bench.analysis.number_format import percent
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT, LEVEL

MOST_DRIFT = 0.05  # between the first, the middle and the last third of the blocks


def drifted(evidence: Evidence) -> Iterator[Caveat]:
    """A ceiling that was another one at the start, in the middle or at the end: then so was the machine."""
    for experiment in dict.fromkeys(cell.experiment for cell in evidence.cells):
        thirds = _thirds([cell for cell in evidence.cells if cell.experiment == experiment])
        told = _drift(thirds)
        if told:
            text = (
                f"the ceiling of {experiment} drifted: of what the CPUs did in the first third of the blocks they did {told}"
                f" in the others (more than {percent(MOST_DRIFT)} apart). Shares of it, and values that are not pairs, have that too."
            )
            yield Caveat(severity="weakens", about=SESSION, text=text)


def copying_drifted(evidence: Evidence) -> Iterator[Caveat]:
    """Memory that was faster at one time than at another: it is copied before every run, and no work of Ray's is in it."""
    by_block: dict[int, list[float]] = {}
    for run in evidence.usable:
        if run.facts and run.facts.copy_bytes_per_second:
            by_block.setdefault(run.spec.block, []).append(run.facts.copy_bytes_per_second)
    told = _drift(_in_thirds(by_block))
    if told:
        text = (
            f"copying memory drifted: of what a core copied in the first third of the blocks it copied {told}"
            f" in the others (more than {percent(MOST_DRIFT)} apart). What moves bytes has that too."
        )
        yield Caveat(severity="weakens", about=SESSION, text=text)


def _drift(thirds: list[list[float]]) -> str:
    """The second and the last third as shares of the first, where they are farther apart than allowed, and not by chance."""
    levels = [fmean(third) for third in thirds]
    if not levels or max(levels) <= (1 + MOST_DRIFT) * min(levels) or not _is_no_chance(thirds):
        return ""
    first, *others = levels
    return ", then ".join(percent(each / first) for each in others)


def _thirds(cells: list[CellReport]) -> list[list[float]]:
    """By third of the blocks: the ceiling in each block, as a share of its median; empty where there is none, or few blocks."""
    shares: dict[int, list[float]] = {}
    for cell in cells:
        for row in cell.ceilings:
            if row.side.estimate and row.side.estimate.value > 0:
                for block, value in row.side.values.items():
                    shares.setdefault(block, []).append(value / row.side.estimate.value)
    return _in_thirds(shares)


def _in_thirds(shares: Mapping[int, list[float]]) -> list[list[float]]:
    """The mean of each block, by third of the blocks; empty where there are few."""
    blocks = [fmean(shares[block]) for block in sorted(shares)]
    if len(blocks) < FEWEST_FOR_VERDICT:
        return []
    ends = [len(blocks) * k // 3 for k in range(4)]
    return [blocks[one:two] for one, two in pairwise(ends)]


def _is_no_chance(groups: list[list[float]]) -> bool:
    """Whether blocks of one third are so much alike that their noise does not explain how far thirds lie apart (F test)."""
    from scipy.special import fdtrc

    every = [value for group in groups for value in group]
    within = math.fsum((value - fmean(group)) ** 2 for group in groups for value in group)
    between = math.fsum(len(group) * (fmean(group) - fmean(every)) ** 2 for group in groups)
    freedom = (len(groups) - 1, len(every) - len(groups))
    return within == 0 or float(fdtrc(*freedom, between / freedom[0] / (within / freedom[1]))) < 1 - LEVEL
