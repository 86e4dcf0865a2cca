"""Two sessions in seeded simulations: how often they alarm, and what they find."""

from __future__ import annotations

import numpy as np
from made_up import RATE

from bench.analysis.two_samples import two_samples
from bench.history.confirming import LEVEL

ALARMS = ("faster", "slower")

PAIRS = 200


def found(one, other, metric=RATE, **changes):
    return two_samples(metric, one, other, **{"margin": 0.02} | changes)


def sessions(seed, blocks=6, faster=1.0, noise=0.04):
    """A baseline, a candidate and a fresh session of it: 200 of each, skewed as real values are."""
    draw = np.random.default_rng(seed)
    for _ in range(PAIRS):
        logs = draw.normal(0, noise, (3, blocks)) + draw.exponential(noise / 2, (3, blocks))
        one, other, fresh = 1000 * np.exp(logs)
        yield list(one), list(faster * other), list(faster * fresh)


def test_without_a_difference_few_pairs_alarm_and_hardly_any_alarm_is_confirmed():
    # 5 % of 200 are 10 or so: 200 pairs of each of three sizes together, so that luck with a seed decides nothing
    alarms = confirmed = 0
    for one, other, fresh in (each for seed, blocks in ((1, 6), (2, 10), (3, 20)) for each in sessions(seed, blocks)):
        first = found(one, other).verdict
        if first in ALARMS:
            alarms += 1
            confirmed += found(one, fresh, level=LEVEL).verdict == first
    assert 0.02 * 3 * PAIRS < alarms <= 0.07 * 3 * PAIRS
    assert confirmed <= 0.01 * 3 * PAIRS


def test_a_tenth_is_found_in_4_of_5_where_the_plan_says_it_can_be_and_is_confirmed():
    seen = [found(one, other) for one, other, _ in sessions(4, blocks=8, faster=0.9, noise=0.05)]
    able = [each for each in seen if each.smallest_effect <= 0.1]
    assert len(able) > PAIRS / 2
    assert sum(each.verdict == "slower" for each in able) >= 0.8 * len(able)
    again = [found(one, fresh, level=LEVEL).verdict for one, _, fresh in sessions(4, blocks=12, faster=0.9)]
    assert again.count("slower") >= 0.8 * PAIRS
