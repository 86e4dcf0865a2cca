"""Sweeps that each run makes by itself: every arm at every point, on each topology, and the two side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bench.analysis.comparison import Side
from bench.analysis.rows import MetricRow, Question, Specs
from bench.analysis.stats.estimates import LEVEL, Estimate, median_with_interval
from bench.analysis.usage import quantities
from bench.model import Metric

LOAD_TOLERANCE = 0.02  # between the medians of two loads that are the same


def sweeps(question: Question, specs: Specs, metrics: Sequence[Metric], unit: str) -> Iterator[MetricRow]:
    """Every metric at every point that it was measured at; then what a unit of work used there."""
    runs = question.usable([spec for those in specs.values() for spec in those])
    measured: dict[str, dict[tuple[str, str], None]] = {}
    for name, arm, _, point in [key for key in runs.keys if key[3]]:
        measured.setdefault(name, {})[point, arm] = None
    for metric in metrics:
        of_arm = Counter(arm for _, arm in measured.get(metric.name, ()))
        for point, arm in measured.get(metric.name, ()):
            row = question.row(specs, metric, arm, question.outcomes(metric, arm, point))
            row = replace(row, point=point, bands=bands(row.sides, points=of_arm[arm]))
            yield _at_equal_load(row, question, specs)
    keys, of_row = question.table.usage.keys
    watched = dict.fromkeys((keys[key][2], keys[key][0]) for key in of_row[runs.usage].tolist() if keys[key][2])
    for quantity in quantities(unit):
        for point, arm in watched if quantity.by_unit else ():
            yield replace(question.used(specs, quantity, arm, question.usage_at(arm, point)), point=point)


def bands(sides: Mapping[str, Side], *, points: int) -> dict[str, Estimate]:
    """By topology: the median with an interval so wide that all `points` hold their true values at once (Bonferroni).

    Of few invocations it is all they span, and its level says what that is worth.
    """
    level = 1 - (1 - LEVEL) / points
    return {
        name: median_with_interval(list(side.values.values()), level) for name, side in sides.items() if side.values
    }


def _at_equal_load(row: MetricRow, question: Question, specs: Specs) -> MetricRow:
    """Without a verdict where the sides were measured at unequal loads: a slower one then answers fewer calls, sooner."""
    found = row.comparison
    if found is None or not row.metric.load:
        return row
    read = question.outcomes(replace(row.metric, name=row.metric.load, kind="rate"), row.arm, row.point)
    sides = {name: question.side(those, read).estimate for name, those in specs.items()}
    loads = {name: sides[name] for name in (found.baseline, found.candidate)}
    if are_equal(*(load.value if load else None for load in loads.values())):
        return row
    said = ", ".join(f"{name} {load.value:.4g}" if load else f"{name} unknown" for name, load in loads.items())
    why = f"measured at unequal loads ({row.metric.load}: {said})"
    return replace(row, comparison=replace(found, verdict=None, refused=True, why=why))


def are_equal(one: float | None, other: float | None) -> bool:
    """Whether two loads are known and as good as the same."""
    if not one or not other:
        return False
    return max(one, other) <= (1 + LOAD_TOLERANCE) * min(one, other)
