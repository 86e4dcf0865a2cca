"""Says where the variance of a cell is, whether its invocations are steady, and which warm-ups were discarded."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.cells import CellReport
from bench.analysis.levels import Allocation
from bench.analysis.numbers import percent, plural
from bench.analysis.steadiness import FEWEST_INVOCATIONS, FEWEST_SAMPLES, Steadiness


def notes(cell: CellReport) -> Iterator[str]:
    """Sentences below a cell's first table."""
    if cell.allocation is not None:
        yield sentence(cell.allocation)
    if cell.steadiness:
        yield f"inside the invocations: {_steadiness(cell.steadiness)}"
    if cell.warmups > cell.declared_warmups:
        discarded = cell.warmups - cell.declared_warmups
        yield (
            f"{plural(discarded, 'turn')} after the {plural(cell.declared_warmups, 'warm-up')} declared did not count either,"
            " on any topology: values had not settled; the record has them"
        )


def _steadiness(found: tuple[Steadiness, ...]) -> str:
    by_label: dict[str, list[Steadiness]] = {}
    for each in found:
        by_label.setdefault(each.label, []).append(each)
    return "; ".join(
        (label if len(by_label) == 1 else f"{label} {', '.join(f'{each.arm} on {each.topology}' for each in those)}")
        + (f" (it takes {FEWEST_SAMPLES} in {FEWEST_INVOCATIONS} invocations)" if label.startswith("too few") else "")
        for label, those in by_label.items()
    )


def sentence(found: Allocation) -> str:
    """Between what it is that values vary, and which number of samples would be best."""
    if found.of_pairs == 0:
        where = "all of it between samples: invocations add none that shows"
    else:
        where = f"{percent(found.share_of_pairs)} between invocations, which only more blocks make less of"
    words = f"of the variance of a pair, {where}"
    if found.best_samples is None or found.pair_seconds is None:
        return words
    return (
        f"{words}; best would be {plural(found.best_samples, 'sample')} an invocation (there were {found.samples}),"
        f" at {found.sample_seconds:.2g} s a sample and {found.pair_seconds:.2g} s a pair of invocations"
    )
