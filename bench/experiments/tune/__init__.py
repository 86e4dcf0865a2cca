"""Tune: hyperparameter search on handwritten digits with TensorFlow, by Ray Tune."""

from bench.experiments.tune.arms import ARMS
from bench.experiments.tune.metrics import METRICS
from bench.experiments.tune.params import PROFILES, Params, busy_workers, check_fits, data_sets, guess_pass_seconds
from bench.experiments.tune.run import run

__all__ = [
    "ARMS",
    "METRICS",
    "PROFILES",
    "Params",
    "busy_workers",
    "check_fits",
    "data_sets",
    "guess_pass_seconds",
    "run",
]
