"""A number agrees with its noun, in every message that has one."""

from __future__ import annotations

import pytest

from bench.counts import plural


@pytest.mark.parametrize(
    ("count", "words", "said"),
    [
        (0, ("run",), "0 runs"),
        (1, ("run",), "1 run"),
        (2, ("run",), "2 runs"),
        (2_000_000, ("sample",), "2000000 samples"),
        (1, ("CPU",), "1 CPU"),
        (1.0, ("CPU",), "1 CPU"),
        (0.5, ("CPU",), "0.5 CPUs"),
        (1.9, ("CPU",), "1.9 CPUs"),
        (64.0, ("CPU",), "64 CPUs"),
        (1, ("run has", "runs have"), "1 run has"),
        (3, ("run has", "runs have"), "3 runs have"),
    ],
)
def test_a_number_agrees_with_its_noun(count: float, words: tuple[str, ...], said: str) -> None:
    assert plural(count, *words) == said
