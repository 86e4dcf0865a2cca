"""Tune's overhead on a real Ray."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from bench.experiments import tune_overhead
from bench.experiments.tune_overhead import TESTS


def test_rays_harness_runs_and_takes_no_less_than_the_minimum(local_ray: Sequence[Any]) -> None:
    pytest.importorskip("pyarrow")
    kept = os.environ.get("TEST_OUTPUT_JSON")
    done = tune_overhead.run_test(TESTS[1], trials=2, trial_seconds=2)
    assert done.states == {"TERMINATED": 2}
    assert done.seconds >= 2.0
    assert os.environ.get("TEST_OUTPUT_JSON") == kept
