"""A training of the parameter server that takes a second."""

from __future__ import annotations

from bench.experiments.parameter_server import Params

SMALL_TRAINING = Params(
    model="convolution",
    data="mnist-small-32",
    batch=20,
    learning_rate=0.05,
    iterations=20,
    evaluate_every=5,
    target_accuracy=20.0,
)
