"""Tells whether a session has measured enough, by the width of its intervals only.

A session that stopped when a ratio looks good would find differences that do not exist. The width does not change if every
log-ratio is shifted by the same amount, so this rule cannot favour a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bench.analysis.report import Report
from bench.analysis.stats.estimates import Estimate

FEWEST_PAIRS = 12  # the interval of fewer pairs is too often narrow by chance


def half_width(ratio: Estimate) -> float | None:
    """Return how far the interval of a ratio reaches in each direction, on a logarithmic scale; 0.03 is 3 %.

    None if there is no interval.
    """
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return None
    return math.sqrt(ratio.high / ratio.low) - 1


def headline_ratios(report: Report) -> list[Estimate | None]:
    """Return the ratio of every cell's headline; None for a cell that has none yet."""
    rows = [cell.headline for cell in report.cells]
    return [row.comparison.ratio if row and row.comparison else None for row in rows]


def precision_reached(ratios: Iterable[Estimate | None], precision: float, *, fewest: int = FEWEST_PAIRS) -> bool:
    """Whether each ratio rests on `fewest` pairs or more and its interval reaches at most `precision` in each direction."""
    widths = [half_width(ratio) if ratio and ratio.n >= fewest else None for ratio in ratios]
    return bool(widths) and all(width is not None and width <= precision for width in widths)
