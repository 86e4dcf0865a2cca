"""Where the variance of a comparison is, in a sentence of a report."""

from __future__ import annotations

from bench.analysis.levels import Allocation
from bench.analysis.numbers import percent, plural


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
