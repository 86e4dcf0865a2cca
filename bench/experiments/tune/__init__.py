"""Tune: hyperparameter search on handwritten digits with Ray Tune.

The models are trained with TensorFlow.
"""

from bench.experiments import Experiment
from bench.experiments.tune.arms import ARMS
from bench.experiments.tune.metrics import METRICS
from bench.experiments.tune.params import (
    PROFILES,
    Params,
    busy_workers,
    check_fits,
    data_sets,
    guess_pass_seconds,
    without_effect,
)
from bench.experiments.tune.run import run
from bench.experiments.tune.study import STUDY

EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    run=run,
    study=STUDY,
    stand_ins={"mnist": "mnist-small"},
    check_fits=check_fits,
    data_sets=data_sets,
    busy_workers=busy_workers,
    without_effect=without_effect,
)
