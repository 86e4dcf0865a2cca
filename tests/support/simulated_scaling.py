"""Throughputs by the number of workers, drawn about a known law."""

from __future__ import annotations

import random

from bench.analysis.stats import scaling

LADDER = (1, 2, 5, 10, 15, 20)


def simulated(
    workers: tuple[int, ...], *, noise: float, blocks: int, seed: int, coherency: float = 0.002
) -> scaling.Values:
    generator = random.Random(seed)
    return {
        count: {
            block: scaling.usl(count, rate=1.0, contention=0.1, coherency=coherency)
            * generator.lognormvariate(0, noise)
            for block in range(blocks)
        }
        for count in workers
    }
