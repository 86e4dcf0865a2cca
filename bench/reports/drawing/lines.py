"""Draws the lines of several arms apart from each other: each has dashes of its own."""

from __future__ import annotations

from collections.abc import Sequence

from bench.reports.drawing.svg import LEFT, Canvas

MOST_ARMS = 4  # of one picture; the tables have all
DASHES = ("", " d1", " d2", " d3")


def name_arms(canvas: Canvas, arms: Sequence[str]) -> None:
    """Which dashes are whose, where there are several."""
    if len(arms) < 2:
        return
    x = float(LEFT)
    for arm, dash in zip(arms, DASHES, strict=False):
        canvas.line([(x, 32), (x + 30, 32)], kind=f"l{dash}")
        canvas.words(x + 36, 36, arm)
        x += 50 + 7.2 * len(arm)
