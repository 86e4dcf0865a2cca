"""Inference: a small neural network, served by a pool of actors."""

from bench.experiments import Experiment
from bench.experiments.inference.arms import ARMS
from bench.experiments.inference.metrics import METRICS
from bench.experiments.inference.params import (
    PROFILES,
    Params,
    busy_workers,
    guess_other_seconds,
    guess_pass_seconds,
    without_effect,
)
from bench.experiments.inference.run import run
from bench.experiments.inference.study import STUDY
from bench.experiments.toolkit import faults

EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    guess_other_seconds=guess_other_seconds,
    run=run,
    study=STUDY,
    busy_workers=busy_workers,
    without_effect=without_effect,
    tolerates=faults.ToleratedFaults(kinds=("worker",), workers="Predictor"),
    faults=lambda params: params.chaos,
)
