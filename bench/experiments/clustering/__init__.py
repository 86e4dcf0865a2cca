"""Clustering: many small jobs of k-means, of which none is lost and none is counted twice."""

from bench.experiments.clustering.arms import ARMS
from bench.experiments.clustering.metrics import METRICS
from bench.experiments.clustering.params import (
    PROFILES,
    Params,
    breaks_cluster,
    check_fits,
    check_input,
    guess_pass_seconds,
    without_effect,
)
from bench.experiments.clustering.run import run
from bench.experiments.toolkit import faults

__all__ = [
    "ARMS",
    "CHAOS",
    "METRICS",
    "PROFILES",
    "Params",
    "breaks_cluster",
    "check_fits",
    "check_input",
    "guess_pass_seconds",
    "run",
    "without_effect",
]

CHAOS = faults.ToleratedFaults(kinds=faults.KINDS, workers="Worker.do")
