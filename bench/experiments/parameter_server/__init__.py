"""Parameter server: synchronous and asynchronous gradient descent with torch, on Ray and without it."""

from bench.experiments.parameter_server.arms import ARMS
from bench.experiments.parameter_server.metrics import METRICS
from bench.experiments.parameter_server.params import (
    PROFILES,
    Params,
    busy_workers,
    check_fits,
    data_sets,
    guess_pass_seconds,
    without_effect,
)
from bench.experiments.parameter_server.run import run
from bench.experiments.toolkit import faults

__all__ = [
    "ARMS",
    "CHAOS",
    "METRICS",
    "PROFILES",
    "Params",
    "busy_workers",
    "check_fits",
    "data_sets",
    "guess_pass_seconds",
    "run",
    "without_effect",
]

CHAOS = faults.ToleratedFaults(kinds=("worker",), workers="TrainingWorker.train")
