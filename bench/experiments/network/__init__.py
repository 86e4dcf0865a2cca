"""Network: what the network costs, and what Ray adds to it. The same bytes between two processes, by every transport."""

from bench.experiments.network.arms import ARMS
from bench.experiments.network.metrics import METRICS
from bench.experiments.network.params import PROFILES, Params, check_fits, guess_pass_seconds, ray_settings
from bench.experiments.network.run import run

__all__ = ["ARMS", "METRICS", "PROFILES", "Params", "check_fits", "guess_pass_seconds", "ray_settings", "run"]
