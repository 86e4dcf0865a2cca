"""Noise between blocks alone is seldom taken for a drift of the ceiling."""

from __future__ import annotations

import random
from dataclasses import replace

from made_up import ARMS, SINGLE, made_up

from bench import analysis


def test_noise_between_blocks_alone_is_seldom_flagged() -> None:
    flagged = 0
    for seed in range(60):
        session, runs = made_up(blocks=6, noise=0.04, cells=1, topologies=(SINGLE,), seed=seed, arms=(ARMS[0], ARMS[3]))
        varied = random.Random(seed)
        speeds = {block: varied.gauss(1, 0.04) for block in range(1, 7)}
        runs = [
            replace(
                run, samples=tuple(replace(s, value=s.value and s.value * speeds[run.spec.block]) for s in run.samples)
            )
            for run in runs
        ]
        flagged += any("ceiling of" in caveat.text for caveat in analysis.build(session, runs).caveats)
    assert flagged <= 7
