"""Which settings carry large objects best, over all cells of the experiment `network`: in one sentence, with what they reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.analysis.breakdown.costs import NETWORK
from bench.analysis.cells import CellReport
from bench.analysis.numbers import percent, plural

SIZE, STREAMS, CHUNK, SHARE = (
    *("recommended_object_bytes", "recommended_streams", "chunk_bytes"),
    "recommended_share_of_raw_tcp",
)
MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Recommended:
    """The settings of one cell on one topology, and the share of raw TCP that put and get reach at them."""

    object_bytes: float
    streams: float
    chunk_bytes: float
    store_pages: str
    share: float


def recommended(cells: Sequence[CellReport], topology: str) -> Recommended | None:
    """Those of the cell that comes nearest to raw TCP; None where none was measured between nodes."""
    found = [each for cell in cells if cell.experiment == NETWORK and (each := _of(cell, topology))]
    return max(found, key=lambda each: each.share, default=None)


def sentence(cells: Sequence[CellReport], topology: str) -> str:
    """What a person should set; empty where nothing says it."""
    best = recommended(cells, topology)
    if best is None:
        return ""
    return (
        f"Large objects go best on {topology} with objects of {best.object_bytes / MIB:.3g} MiB,"
        f" {plural(round(best.streams), 'object')} on their way at once, chunks of {best.chunk_bytes / MIB:.3g} MiB and the"
        f" store's pages touched {best.store_pages}: put and get reach {percent(best.share)} of raw TCP."
    )


def _of(cell: CellReport, topology: str) -> Recommended | None:
    values = {
        row.metric.name: side.values
        for row in cell.rows
        if row.arm == cell.subject and not row.point and (side := row.sides.get(topology))
    }
    whole = [values.get(name, {}) for name in (SIZE, STREAMS, CHUNK, SHARE)]
    blocks = [block for block in whole[0] if all(block in each for each in whole)]
    if not blocks:
        return None
    # Blocks may differ in it, and a mean of two sizes is none that was measured.
    named = Counter(tuple(each[block] for each in whole[:3]) for block in blocks)
    best = max(sorted(named), key=lambda settings: named[settings])
    return Recommended(
        object_bytes=best[0],
        streams=best[1],
        chunk_bytes=best[2],
        store_pages=str(cell.params.get("store_pages", "at-use")),
        share=median(values[SHARE][b] for b in blocks if tuple(each[b] for each in whole[:3]) == best),
    )
