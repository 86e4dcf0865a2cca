"""The bands of a sweep hold all of its points at once, where each interval of 95 % by itself would let some out."""

from __future__ import annotations

import pytest
from made_up import METRICS, made_up

from bench import analysis
from bench.analysis.comparison import side
from bench.analysis.stats.estimates import median_with_interval
from bench.analysis.sweeps import bands
from bench.reports import as_html
from tests.unit.analysis.test_sweeps import GOODPUT, swept

POINTS = 8


def test_a_band_is_the_interval_at_the_level_of_bonferroni():
    values = {block: 1.0 + block / 100 for block in range(30)}
    (band,) = bands({"single": side(values)}, points=POINTS).values()
    assert band == median_with_interval(list(values.values()), 1 - 0.05 / POINTS)
    assert band.level == pytest.approx(0.99375, abs=0.006)
    assert band.level >= 0.99375
    assert bands({"single": side({1: "not measured"})}, points=POINTS) == {}


def test_the_page_draws_them_and_says_what_they_promise():
    for blocks, promise in ((12, "with 95 % (Bonferroni)"), (6, "with 94 %, of so few invocations (Bonferroni)")):
        session, runs = made_up(cells=1, blocks=blocks, metrics=(*METRICS, GOODPUT))
        report = analysis.build(session, [swept(run) for run in runs])
        rows = [row for row in report.cells[0].sweeps if row.metric == GOODPUT]
        assert [set(row.bands) for row in rows] == [{"single", "multi"}] * 4
        assert f"all 2 points lie at once, {promise}" in as_html.render(report)
