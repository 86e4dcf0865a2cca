"""Series without a change seldom have one."""

from __future__ import annotations

import numpy as np
import pytest

from bench.analysis.stats.change_points import change_points


@pytest.mark.parametrize("length", [10, 30])
def test_of_series_without_a_change_few_have_one(length):
    draw = np.random.default_rng(length)
    series = [list(np.exp(draw.normal(0, 0.05, length) + draw.exponential(0.05, length))) for _ in range(200)]
    assert 0 < sum(bool(change_points(each)) for each in series) <= 0.08 * 200
