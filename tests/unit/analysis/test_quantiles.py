"""Quantiles beside those of a normal distribution: R's places and line, and a picture that decides nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import NormalDist

import pytest
from made_up import RATE, made_up

from bench import analysis
from bench.analysis.stats import estimates
from bench.analysis.stats.quantiles import correlation, quantiles
from bench.reports import as_html


def test_the_places_and_the_line_are_those_of_qqnorm_and_qqline():
    found = quantiles({1: 3.0, 2: 1.0, 3: 7.0, 4: 2.0, 5: 4.0})
    # R: qqnorm(c(3, 1, 7, 2, 4))$x and the slope and intercept of qqline; its quartiles are 2 and 4.
    assert [point.block for point in found.points] == [2, 4, 1, 5, 3]
    assert [point.z for point in found.points] == pytest.approx(
        [-1.1797611, -0.4972006, 0, 0.4972006, 1.1797611], abs=1e-7
    )
    assert (found.line(0), found.slope) == pytest.approx((3.0, 2 / (2 * 0.6744898)))
    # Above 10 values a place is (i - 1/2)/n.
    assert quantiles(dict.fromkeys(range(12), 1.0)).points[0].z == pytest.approx(-1.7316644, abs=1e-7)


def test_normal_values_lie_on_the_line_and_a_stall_does_not():
    normal = {k: NormalDist(0.1, 0.05).inv_cdf((k + 0.5) / 40) for k in range(40)}
    found = quantiles(normal)
    assert correlation(found) == pytest.approx(1.0)
    assert all(point.value == pytest.approx(found.line(point.z), abs=5e-3) for point in found.points)
    stalled = correlation(quantiles({**normal, 7: 2.0}))
    assert stalled is not None
    assert stalled < 0.7
    assert correlation(quantiles({1: 1.0, 2: 1.0})) is None


def test_the_page_has_the_picture_with_words_and_marks_a_pair_that_is_far_off():
    session, runs = made_up(cells=1, blocks=12, noise=0.005)
    runs = [
        replace(run, samples=tuple(replace(s, value=s.value / 3) if s.metric == RATE.name else s for s in run.samples))
        if (run.spec.block, run.spec.topology.name) == (5, "multi")
        else run
        for run in runs
    ]
    page = " ".join(as_html.render(analysis.build(session, runs)).split())
    assert "Throughput, multi/single: how the pairs are distributed" in page
    assert "12 pairs, from 0.3 to 0.8" in page
    assert "outliers: block 5" in page
    assert "Ends that bend away from it: stalls" in page
    few = as_html.render(analysis.build(*made_up(cells=1, blocks=5)))
    assert "how the pairs are distributed" not in few


def test_verdicts_rest_on_ranks_alone():
    """A pair that is made far longer moves the cross-check, and no verdict, ratio or interval."""
    draw = random.Random(3)
    values = sorted(draw.gauss(0.2, 0.02) for _ in range(12))
    longer = [*values[:-1], values[-1] + 50]
    one, other = estimates.hodges_lehmann(values), estimates.hodges_lehmann(longer)
    assert other.low == one.low
    assert other.value == pytest.approx(one.value, abs=0.01)
    assert estimates.mean_with_t_interval(longer).value > 4
