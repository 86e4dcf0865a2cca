"""The bands of simulated sweeps hold all points at once as often as they promise."""

from __future__ import annotations

import random

from bench.analysis.comparison import side
from bench.analysis.sweeps import bands

POINTS = 8


def test_a_band_holds_every_point_in_95_of_100_sweeps_and_single_intervals_do_not():
    draw, inside, single = random.Random(5), 0, 0
    for _ in range(300):
        sweep = [side({block: draw.gauss(1.0, 0.1) for block in range(20)}) for _ in range(POINTS)]
        found = [bands({"single": each}, points=POINTS)["single"] for each in sweep]
        inside += all(band.low <= 1.0 <= band.high for band in found if band.low is not None and band.high is not None)
        single += all(e.low <= 1.0 <= e.high for each in sweep if (e := each.estimate) and e.low and e.high)
    assert inside >= 0.95 * 300 - 8
    assert single < 0.9 * 300
