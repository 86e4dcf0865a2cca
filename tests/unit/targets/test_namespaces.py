from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import TargetFailed
from bench.targets.local import namespaces


@pytest.mark.parametrize(
    ("taken", "subnet"),
    [
        ([], "10.231.1.0/24"),
        (["10.231.1.0/24", "127.0.0.0/8"], "10.231.2.0/24"),
        (["10.231.1.77"], "10.231.2.0/24"),
        (["10.231.0.0/22"], "10.231.4.0/24"),
        (["0.0.0.0/0"], "10.231.1.0/24"),
    ],
)
def test_the_first_free_subnet_is_chosen(taken: list[str], subnet: str):
    assert namespaces.free_subnet(taken) == subnet


@given(st.sets(st.integers(1, 254), max_size=253))
def test_a_chosen_subnet_is_never_in_use(used: set[int]):
    taken = [f"10.231.{third}.0/24" for third in used]
    assert namespaces.free_subnet(taken) not in taken


def test_a_full_range_says_so():
    with pytest.raises(TargetFailed, match="in use"):
        namespaces.free_subnet(["10.0.0.0/8"])
