"""Inference: a small neural network in a pool of actors answers many inputs."""

from bench.experiments.inference.arms import ARMS
from bench.experiments.inference.metrics import METRICS
from bench.experiments.inference.params import PROFILES, Params, busy_workers, guess_pass_seconds, without_effect
from bench.experiments.inference.run import run
from bench.experiments.toolkit import faults

__all__ = [
    "ARMS",
    "CHAOS",
    "METRICS",
    "PROFILES",
    "Params",
    "busy_workers",
    "guess_pass_seconds",
    "run",
    "without_effect",
]

CHAOS = faults.ToleratedFaults(kinds=("worker",), workers="Predictor")
