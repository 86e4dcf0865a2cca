"""Network: throughput and latency between nodes by each transport.

The same bytes go between two processes through Ray and past it.
"""

from bench.experiments import Experiment
from bench.experiments.network.arms import ARMS
from bench.experiments.network.metrics import METRICS
from bench.experiments.network.params import (
    PROFILES,
    Params,
    arm_checks,
    check_fits,
    guess_other_seconds,
    guess_pass_seconds,
    ray_settings,
    without_effect,
)
from bench.experiments.network.run import run

EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    guess_other_seconds=guess_other_seconds,
    run=run,
    check_fits=check_fits,
    ray_settings=ray_settings,
    without_effect=without_effect,
    arm_checks=arm_checks,
)
