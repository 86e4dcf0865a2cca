"""Configurations are a function of the seed alone, and lie where the study's do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.experiments.tune.space import Search, configurations, fingerprint, levels

SEEDS = st.integers(0, 2**40)


def draw(search: Search, trials: int, seed: int = 1, hidden_below: int = 512) -> list:
    return configurations(search, trials, seed=seed, hidden_below=hidden_below)


@given(SEEDS, st.integers(1, 40), st.sampled_from(["random", "grid", "optuna"]))
def test_the_same_seed_gives_the_same_list_within_the_bounds_of_the_study(
    seed: int, trials: int, search: Search
) -> None:
    found = draw(search, trials, seed)
    assert found == draw(search, trials, seed)
    assert len(found) == trials
    for config in found:
        assert 0.001 <= config.lr <= 0.1
        assert 0.1 <= config.momentum <= 0.9
        assert 32 <= config.hidden < 512


@given(SEEDS)
def test_another_seed_gives_another_list(seed: int) -> None:
    for search in ("random", "grid"):
        assert fingerprint(draw(search, 27, seed)) != fingerprint(
            draw(search, 27, seed + 1)
        )  # 8 points have 40,320 orders


def test_sixteen_trials_begin_with_the_ten() -> None:
    assert draw("random", 16)[:10] == draw("random", 10)


@pytest.mark.parametrize(("trials", "expected"), [(1, 1), (2, 2), (8, 2), (9, 3), (16, 3), (27, 3), (28, 4)])
def test_a_grid_has_as_few_levels_as_give_enough_points(trials: int, expected: int) -> None:
    assert levels(trials) == expected
    found = draw("grid", trials)
    assert len(set(found)) == trials
    assert len({config.lr for config in draw("grid", expected**3)}) == expected


def test_the_list_is_pinned() -> None:
    """A change of it makes old sessions incomparable: it must be meant."""
    first = draw("random", 1)[0]
    assert (round(first.lr, 6), round(first.momentum, 6), first.hidden) == PINNED


PINNED = (0.090741, 0.405027, 256)
