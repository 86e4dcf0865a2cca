"""Says which settings an experiment recommends, of all its cells: those of the cell where they reach the largest share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.analysis.cells import CellReport
from bench.analysis.number_format import label, percent, plain, quantity
from bench.analysis.rows import MetricRow
from bench.metrics import meaning
from bench.model import Metric


@dataclass(frozen=True, kw_only=True)
class Recommended:
    """The settings of one cell on one topology, and the share of the best possible that its subject reaches with them."""

    cell: CellReport
    settings: Mapping[Metric, float]
    of: Metric  # the metric of the share
    share: float


def recommended(cells: Sequence[CellReport], topology: str) -> Recommended | None:
    """Those of the cell that reaches the largest share; None where no cell recommends any on this topology."""
    return max(filter(None, (_of(cell, topology) for cell in cells)), key=lambda each: each.share, default=None)


def sentence(cells: Sequence[CellReport], topology: str) -> str:
    """What the user should set; empty where no cell recommends anything."""
    best = recommended(cells, topology)
    if best is None:
        return ""
    where = f"{topology} with {best.cell.title}" if best.cell.title else topology
    settings = ", ".join(f"{label(metric)} {_amount(metric, value)}" for metric, value in best.settings.items())
    return (
        f"Best settings on {where}: {settings}. With them {best.cell.subject} reaches {percent(best.share)}"
        f" ({label(best.of)})."
    )


def _of(cell: CellReport, topology: str) -> Recommended | None:
    rows = [row for row in cell.rows if row.arm == cell.subject and not row.point]
    of = meaning("share at recommended settings", [row.metric for row in rows])
    settings = {row.metric: _values(row, topology) for row in rows if row.metric.means == "recommended setting"}
    shares = next((_values(row, topology) for row in rows if row.metric == of), {})
    blocks = [block for block in shares if all(block in values for values in settings.values())]
    if of is None or not blocks:
        return None
    # Blocks may differ in it, and a mean of two sizes is none that was measured.
    by_block = {block: tuple(values[block] for values in settings.values()) for block in blocks}
    named = Counter(by_block.values())
    best = max(sorted(named), key=lambda chosen: named[chosen])
    return Recommended(
        cell=cell,
        settings=dict(zip(settings, best, strict=True)),
        of=of,
        share=median(shares[block] for block in blocks if by_block[block] == best),
    )


def _amount(metric: Metric, value: float) -> str:
    return plain(value) if metric.kind == "count" else quantity(metric, value)  # no "1 objects"


def _values(row: MetricRow, topology: str) -> Mapping[int, float]:
    side = row.sides.get(topology)
    return side.values if side else {}
