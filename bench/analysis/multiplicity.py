"""p-values corrected for the number of comparisons in a report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from bench.analysis.caveats.evidence import about
from bench.analysis.cells import CellReport
from bench.analysis.comparison import Comparison
from bench.analysis.contrasts import Contrast
from bench.analysis.rows import MetricRow
from bench.analysis.stats import estimates
from bench.counts import plural
from bench.model import MOST_PRIMARY


def adjusted(cells: Sequence[CellReport], *, primary: Collection[str] = ()) -> list[CellReport]:
    """Holm for the headlines of the cells in `primary`, Benjamini-Hochberg for the rest.

    Where no cell was named beforehand, all headlines are primary as long as they are 5 or fewer, and none of more.
    """
    compared = [(cell, row) for cell in cells for row in _rows(cell) if row.comparison]
    headlines = [row for cell, row in compared if row.headline and (not primary or about(cell) in primary)]
    corrected = _corrected([row.comparison for row in headlines], [row.comparison for _, row in compared])

    def changed(rows: Sequence[MetricRow]) -> tuple[MetricRow, ...]:
        return tuple(replace(row, comparison=corrected(row.comparison)) if row.comparison else row for row in rows)

    return [
        replace(cell, rows=changed(cell.rows), usage=changed(cell.usage), sweeps=changed(cell.sweeps)) for cell in cells
    ]


def adjusted_contrasts(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """The same for contrasts, which are a question of their own: their headlines and interactions are 5 or fewer, or none is primary."""
    effects = [effect for contrast in contrasts for effect in contrast.effects]
    corrected = _corrected(
        [each for effect in effects if effect.headline for each in effect.comparisons],
        [each for effect in effects for each in effect.comparisons],
    )
    return [contrast.changed(corrected) for contrast in contrasts]


def _corrected(
    primary: Sequence[Comparison | None], everything: Sequence[Comparison | None]
) -> Callable[[Comparison], Comparison]:
    """What gives a comparison its corrected p: Holm's among `primary`, if they are few, else Benjamini and Hochberg's."""
    chosen = {id(each): each for each in primary if each and each.p is not None}
    if len(chosen) > MOST_PRIMARY:
        chosen = {}
    others = {id(each): each for each in everything if each and each.p is not None and id(each) not in chosen}
    new: dict[int, Comparison] = {}
    for those, method, name in ((chosen, "holm", "Holm"), (others, "fdr_bh", "Benjamini-Hochberg")):
        p_values = [p for each in those.values() if (p := each.p) is not None]
        corrected = estimates.adjusted(p_values, "holm" if method == "holm" else "fdr_bh")
        for key, p in zip(those, corrected, strict=True):
            new[key] = replace(those[key], p_adjusted=p, adjustment=f"{name}, {plural(len(those), 'comparison')}")
    return lambda found: new.get(id(found), found)


def _rows(cell: CellReport) -> tuple[MetricRow, ...]:
    return (*cell.rows, *cell.usage, *cell.sweeps)
