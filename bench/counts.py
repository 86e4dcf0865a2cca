"""Writes a number with what it counts: 1 block, 6 blocks, 0.5 CPUs."""

from __future__ import annotations


def plural(n: float, word: str, words: str | None = None) -> str:
    """A number and its noun, which agree: 1 block, 6 blocks, 1 run has, 2 runs have."""
    number = f"{n:g}" if n % 1 else f"{n:.0f}"
    return f"{number} {word if n == 1 else words or word + 's'}"
