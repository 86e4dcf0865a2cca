"""Actors and peers get their places by count alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.context import NodeSlot
from bench.experiments.toolkit.placement import places, shares, spans


def some_nodes(*cpus: int) -> list[NodeSlot]:
    return [
        NodeSlot(name="head" if index == 0 else f"worker-{index}", node_id=str(index), cpus=count, threads=count)
        for index, count in enumerate(cpus)
    ]


@pytest.mark.parametrize(
    ("actors", "cpus", "expected"),
    [
        (1, (2,), [("head", 1.0, 1)]),
        (2, (2,), [("head", 1.0, 1)] * 2),
        (3, (2,), [("head", 0.6666, 1)] * 3),
        (2, (1, 1), [("worker-1", 1.0, 1), ("head", 1.0, 1)]),
        (3, (4, 4), [("worker-1", 1.0, 1), ("head", 1.0, 1), ("worker-1", 1.0, 1)]),
        (2, (0, 2), [("worker-1", 1.0, 1)] * 2),
    ],
)
def test_actors_take_the_nodes_in_turn_and_share_them(
    actors: int, cpus: tuple[int, ...], expected: list[tuple[str, float, int]]
) -> None:
    assert [(place.node.name, place.cpus, place.threads) for place in places(actors, some_nodes(*cpus))] == expected


@given(actors=st.integers(1, 60), cpus=st.lists(st.integers(1, 16), min_size=1, max_size=5))
def test_actors_always_fit_on_their_nodes(actors: int, cpus: list[int]) -> None:
    nodes = some_nodes(*cpus)
    found = places(actors, nodes)
    assert len(found) == actors
    for node in nodes:
        units = [round(place.cpus * 10_000) for place in found if place.node == node]
        assert sum(units) <= node.cpus * 10_000
        assert all(units)


@given(inputs=st.integers(1, 10_000), cpus=st.lists(st.integers(1, 16), min_size=1, max_size=5))
def test_shares_cover_every_input_once(inputs: int, cpus: list[int]) -> None:
    parts = [span for _, span in shares(inputs, some_nodes(*cpus))]
    assert [index for start, stop in parts for index in range(start, stop)] == list(range(inputs))


def test_shares_go_by_cpus() -> None:
    assert [span for _, span in shares(1_000, some_nodes(1, 3))] == [(0, 250), (250, 1_000)]


def test_the_last_batch_may_be_smaller() -> None:
    assert spans(0, 25, 10) == [(0, 10), (10, 20), (20, 25)]
