"""The scaling series of a cell: its arms from the slowest to the fastest, and how many times as fast each step is."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from bench.analysis.arms import ArmRow
from bench.analysis.comparison import Side
from bench.analysis.stats.estimates import hodges_lehmann
from bench.metrics import seconds
from bench.model import Arm, Metric
from bench.reports.sections import projections

HOURS = seconds("projected_hours", "8,000,000 jobs.", unit="h", means="projection")
MONTHS = {block: 2160.0 + block for block in range(6)}  # three months


def a_cell(hours: Mapping[str, Mapping[int, float]], *, metric: Metric = HOURS) -> Any:
    arms = tuple(
        ArmRow(
            arm=Arm(name=name, help="", role="subject" if name == "ray" else "peer"),
            topology="single",
            metric=metric.name,
            side=Side(values=values, estimate=hodges_lehmann(list(values.values())), spread=None, missing={}),
        )
        for name, values in hours.items()
    )
    return SimpleNamespace(rows=[SimpleNamespace(metric=metric)], arms=arms)


def lines(cell: Any) -> list[list[str]]:
    ((_, table),) = projections.step_tables(cell, ["single", "multi"])
    return [[each.words for each in row.cells] for row in table.rows]


def factor(words: str) -> float:
    return float(words.split(maxsplit=1)[0])


@pytest.mark.parametrize("subject", ["ray", "another"])
def test_arms_stand_from_the_slowest_to_the_fastest_with_factors(subject: str) -> None:
    thirds = {block: hours / 3 for block, hours in MONTHS.items()}
    days = {block: hours / 30 for block, hours in MONTHS.items()}
    found = lines(a_cell({"kernel": thirds, subject: MONTHS, "pool": days}))
    assert [row[0] for row in found] == [subject, "kernel", "pool"]
    assert [factor(row[2]) for row in found[1:]] == pytest.approx([3.0, 10.0])
    assert [factor(row[3]) for row in found[1:]] == pytest.approx([3.0, 30.0])
    assert "[" in found[0][1]


def test_factors_are_of_the_blocks_that_have_both() -> None:
    slow = {0: 100.0, 1: 200.0, 2: 400.0}
    found = lines(a_cell({"slow": slow, "fast": {1: 50.0, 2: 100.0}}))
    assert factor(found[1][2]) == pytest.approx(4.0)  # not 2.67, the ratio of the medians


def test_a_cell_without_a_projection_has_no_steps() -> None:
    other = Metric(name="hours", unit="h", better="lower", kind="time")
    assert list(projections.step_tables(a_cell({"ray": MONTHS, "pool": MONTHS}, metric=other), ["single"])) == []
    assert list(projections.step_tables(a_cell({"ray": MONTHS}), ["single"])) == []
