"""Checks whether the machine's speed stayed the same during a session, by the ceiling and by the memory copies in every run."""

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
    """A ceiling that differs between the first, middle and last third of the blocks: so did the machine."""
    for experiment in dict.fromkeys(cell.experiment for cell in evidence.cells):
        thirds = _thirds([cell for cell in evidence.cells if cell.experiment == experiment])
        drift = _drift(thirds)
        if drift:
            text = (
                f"the ceiling of {experiment} drifted: in the later thirds of the blocks the CPUs reached {drift} of what they reached in the first"
                f" (more than {percent(MOST_DRIFT)} apart). Shares of it, and values that are not paired, contain this drift."
            )
            yield Caveat(severity="weakens", about=SESSION, text=text)


def copying_drifted(evidence: Evidence) -> Iterator[Caveat]:
    """A speed of memory copies that differs between thirds of the session. They are measured before every run, without Ray."""
    by_block: dict[int, list[float]] = {}
    for run in evidence.usable:
        if run.facts and run.facts.copy_bytes_per_second:
            by_block.setdefault(run.spec.block, []).append(run.facts.copy_bytes_per_second)
    drift = _drift(_in_thirds(by_block))
    if drift:
        text = (
            f"copying memory drifted: in the later thirds of the blocks a core copied {drift} of what it copied in the first"
            f" (more than {percent(MOST_DRIFT)} apart). Everything that moves bytes contains this drift."
        )
        yield Caveat(severity="weakens", about=SESSION, text=text)


def _drift(thirds: list[list[float]]) -> str:
    """Return the later thirds as shares of the first, if they differ by more than MOST_DRIFT and not by chance; else empty."""
    levels = [fmean(third) for third in thirds]
    if not levels or max(levels) <= (1 + MOST_DRIFT) * min(levels) or not _is_no_chance(thirds):
        return ""
    first, *others = levels
    return ", then ".join(percent(level / first) for level in others)


def _thirds(cells: list[CellReport]) -> list[list[float]]:
    """Return the ceiling of each block as a share of its median, by third of the blocks; empty if there are too few blocks."""
    shares: dict[int, list[float]] = {}
    for cell in cells:
        for row in cell.ceilings:
            if row.side.estimate and row.side.estimate.value > 0:
                for block, value in row.side.values.items():
                    shares.setdefault(block, []).append(value / row.side.estimate.value)
    return _in_thirds(shares)


def _in_thirds(shares: Mapping[int, list[float]]) -> list[list[float]]:
    """Return the mean of each block, by third of the blocks; empty if there are too few."""
    blocks = [fmean(shares[block]) for block in sorted(shares)]
    if len(blocks) < FEWEST_FOR_VERDICT:
        return []
    ends = [len(blocks) * k // 3 for k in range(4)]
    return [blocks[one:two] for one, two in pairwise(ends)]


def _is_no_chance(groups: list[list[float]]) -> bool:
    """Whether the differences between thirds exceed what the noise within them explains (F test)."""
    from scipy.special import fdtrc

    all_values = [value for group in groups for value in group]
    within = math.fsum((value - fmean(group)) ** 2 for group in groups for value in group)
    between = math.fsum(len(group) * (fmean(group) - fmean(all_values)) ** 2 for group in groups)
    freedom = (len(groups) - 1, len(all_values) - len(groups))
    return within == 0 or float(fdtrc(*freedom, between / freedom[0] / (within / freedom[1]))) < 1 - LEVEL
