"""Granularity: how long a task must last to keep the CPUs busy.

It also measures how many small jobs to put into one task.
"""

from bench.experiments import Experiment
from bench.experiments.granularity.arms import ARMS
from bench.experiments.granularity.metrics import METRICS
from bench.experiments.granularity.params import PROFILES, Params, guess_pass_seconds, without_effect
from bench.experiments.granularity.run import run

EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    run=run,
    without_effect=without_effect,
)
