"""Granularity: how long a task must last for Ray to keep the CPUs busy, and how many small jobs to put into one."""

from bench.experiments.granularity.arms import ARMS
from bench.experiments.granularity.metrics import METRICS
from bench.experiments.granularity.params import PROFILES, Params, guess_pass_seconds
from bench.experiments.granularity.run import run

__all__ = ["ARMS", "METRICS", "PROFILES", "Params", "guess_pass_seconds", "run"]
