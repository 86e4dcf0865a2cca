"""Whether a session has measured enough: by the width of its intervals, and by nothing else.

Who looked at the ratios and stopped when one pleased would find differences where there are none. A width does not
change when every log-ratio is moved by the same amount, so that what is decided here cannot favour a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bench.analysis.report import Report
from bench.analysis.stats.estimates import Estimate

FEWEST_PAIRS = 12  # an interval of fewer is narrow by luck too often


def half_width(ratio: Estimate) -> float | None:
    """How far the interval of a ratio reaches to each side, on the scale of logarithms: 0.03 is 3 %.

    None where there is no interval.
    """
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return None
    return math.sqrt(ratio.high / ratio.low) - 1


def headline_ratios(report: Report) -> list[Estimate | None]:
    """The ratio of every cell's headline; None where it has none so far."""
    rows = [cell.headline for cell in report.cells]
    return [row.comparison.ratio if row and row.comparison else None for row in rows]


def precision_reached(ratios: Iterable[Estimate | None], precision: float, *, fewest: int = FEWEST_PAIRS) -> bool:
    """Whether each ratio rests on `fewest` pairs or more and reaches no further than `precision` to each side."""
    widths = [half_width(ratio) if ratio and ratio.n >= fewest else None for ratio in ratios]
    return bool(widths) and all(width is not None and width <= precision for width in widths)
