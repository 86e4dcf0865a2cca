"""Clustering: many small k-means jobs, none lost, none counted twice."""

from bench.experiments import Experiment
from bench.experiments.clustering.arms import ARMS
from bench.experiments.clustering.metrics import METRICS
from bench.experiments.clustering.params import (
    PROFILES,
    Params,
    check_fits,
    check_input,
    guess_other_seconds,
    guess_pass_seconds,
    impossible_arms,
    without_effect,
)
from bench.experiments.clustering.run import run
from bench.experiments.clustering.study import STUDY
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
    check_fits=check_fits,
    check_input=check_input,
    without_effect=without_effect,
    impossible_arms=impossible_arms,
    tolerates=faults.ToleratedFaults(kinds=faults.KINDS, workers="Worker.do"),
    faults=lambda params: params.chaos,
)
