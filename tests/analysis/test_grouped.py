from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.stats.grouped import Groups, known

VALUES = st.lists(st.tuples(st.integers(0, 4), st.floats(-1e9, 1e9)), max_size=20)


@given(VALUES)
def test_each_group_has_its_own_sum_and_its_greatest(pairs):
    groups = Groups(np.array([group for group, _ in pairs], dtype=np.intp), 5)
    values = np.array([value for _, value in pairs], dtype=float)
    own = [[value for group, value in pairs if group == wanted] for wanted in range(5)]
    assert groups.sizes.tolist() == [len(those) for those in own]
    assert groups.sums(values).astype(float) == pytest.approx([math.fsum(those) for those in own], rel=1e-15, abs=1e-9)
    assert known(groups.most(values)) == [max(those, default=None) for those in own]


def test_what_was_not_counted_takes_the_sum_and_leaves_the_greatest():
    groups = Groups(np.array([0, 0, 1, 1], dtype=np.intp), 2)
    values = np.array([1.0, math.nan, math.nan, math.nan])
    assert known(groups.sums(values)) == [None, None]
    assert known(groups.most(values)) == [1.0, None]
