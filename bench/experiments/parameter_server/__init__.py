"""Parameter server: synchronous and asynchronous training with torch.

Gradient descent on Ray and, as peers, without it.
"""

from bench.experiments import Experiment
from bench.experiments.parameter_server.arms import ARMS
from bench.experiments.parameter_server.metrics import METRICS
from bench.experiments.parameter_server.params import (
    PROFILES,
    Params,
    arm_checks,
    busy_workers,
    check_fits,
    data_sets,
    guess_after_seconds,
    guess_other_seconds,
    guess_pass_seconds,
    without_effect,
)
from bench.experiments.parameter_server.run import run
from bench.experiments.parameter_server.study import STUDY
from bench.experiments.toolkit import faults

EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    guess_other_seconds=guess_other_seconds,
    guess_after_seconds=guess_after_seconds,
    run=run,
    study=STUDY,
    stand_ins={"cifar10": "mnist-small-32"},
    check_fits=check_fits,
    data_sets=data_sets,
    busy_workers=busy_workers,
    without_effect=without_effect,
    arm_checks=arm_checks,
    tolerates=faults.ToleratedFaults(kinds=("worker",), workers="TrainingWorker.train"),
    faults=lambda params: params.chaos,
)
