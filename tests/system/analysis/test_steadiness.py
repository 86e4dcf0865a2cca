"""Correlated noise in simulated sessions is called steady as often as the level says."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from bench.analysis.steadiness import judged


def correlated(draw, *, invocations, samples, phi, cv):
    """Logs of an AR(1) process, one stretch of it an invocation: its own start, not that of the one before."""
    values = np.empty((invocations, samples))
    values[:, 0] = draw.normal(0, cv, invocations)
    for turn in range(1, samples):
        values[:, turn] = phi * values[:, turn - 1] + draw.normal(0, cv * math.sqrt(1 - phi**2), invocations)
    return values


def label(values, level=0.95):
    return judged(values.tolist(), arm="ray", topology="single", level=level, margin=0.02).label


@pytest.mark.parametrize("phi", [0.75, 0.85])
@pytest.mark.parametrize("cv", [0.03, 0.23])
@pytest.mark.parametrize(("invocations", "samples"), [(6, 4), (12, 5), (12, 20)])
def test_correlated_noise_is_called_steady_95_times_in_100(phi, cv, invocations, samples):
    draw = np.random.default_rng(2)
    labels = Counter(
        label(correlated(draw, invocations=invocations, samples=samples, phi=phi, cv=cv)) for _ in range(1000)
    )
    # The rule allows 5 %; 1,000 draws of exactly that give up to 6.4 % in 98 of 100 cases.
    assert 1000 - labels["steady"] <= 64
    assert labels["steady"] + labels["drifting"] + labels["not steady"] == 1000


def test_a_test_of_one_series_would_have_called_the_same_noise_a_drift():
    draw = np.random.default_rng(2)
    alarms = 0
    for _ in range(300):
        one = correlated(draw, invocations=1, samples=20, phi=0.8, cv=0.03)[0]
        alarms += abs(one[:10].mean() - one[10:].mean()) > 2.1 * math.sqrt((one[:10].var() + one[10:].var()) / 9)
    assert alarms / 300 > 0.3
