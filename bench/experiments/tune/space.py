"""Draws the configurations that a search tries: a function of the run's seed alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

from bench.experiments.tune.training import Config

Search = Literal["random", "grid", "optuna"]

LR = (0.001, 0.1)
MOMENTUM = (0.1, 0.9)
LEAST_HIDDEN = 32


def configurations(search: Search, trials: int, *, seed: int, hidden_below: int) -> list[Config]:
    """The trials of a search, in order; those of a longer search begin with those of a shorter one, but for the grid.

    Of `optuna` these are stand-ins: what it tries depends on what came of the trials before.
    """
    if search == "grid":
        return _grid(trials, seed=seed, hidden_below=hidden_below)
    return [_draw(random.Random(f"{seed}/{number}"), hidden_below) for number in range(trials)]


def fingerprint(configs: Sequence[Config]) -> str:
    """A checksum of configurations and their order."""
    return sha256(repr(list(configs)).encode()).hexdigest()


def levels(trials: int) -> int:
    """The fewest levels a parameter that give a grid of at least so many points."""
    return next(count for count in itertools.count(1) if count**3 >= trials)


def _draw(draw: random.Random, hidden_below: int) -> Config:
    return Config(
        lr=draw.uniform(*LR), momentum=draw.uniform(*MOMENTUM), hidden=draw.randrange(LEAST_HIDDEN, hidden_below)
    )


def _grid(trials: int, *, seed: int, hidden_below: int) -> list[Config]:
    """Points of an even grid, in an order drawn from the seed; as many as asked for."""
    count = levels(trials)
    middles = [(level + 0.5) / count for level in range(count)]
    points = [
        Config(
            lr=LR[0] + lr * (LR[1] - LR[0]),
            momentum=MOMENTUM[0] + momentum * (MOMENTUM[1] - MOMENTUM[0]),
            hidden=int(LEAST_HIDDEN + hidden * (hidden_below - LEAST_HIDDEN)),
        )
        for lr, momentum, hidden in itertools.product(middles, repeat=3)
    ]
    random.Random(f"{seed}/grid").shuffle(points)
    return points[:trials]
