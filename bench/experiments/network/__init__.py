"""Network: what the network costs, and what Ray adds to it. The same bytes between two processes, by every transport."""

from bench.experiments import Experiment
from bench.experiments.network.arms import ARMS
from bench.experiments.network.metrics import METRICS
from bench.experiments.network.params import PROFILES, Params, check_fits, guess_pass_seconds, ray_settings
from bench.experiments.network.run import run

EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    run=run,
    check_fits=check_fits,
    ray_settings=ray_settings,
)
