"""The experiment that CONTRIBUTING shows measures on a real Ray."""

from __future__ import annotations

from typing import Any

from bench.experiments import Experiment


def test_it_measures_and_credits_the_nodes_that_did_the_work(echo: Experiment[Any], context: Any) -> None:
    samples = list(echo.run(echo.params(calls=20), context))
    assert all(sample.value and sample.value > 0 for sample in samples)
    assert samples
    assert context.credits["ray"]
    assert all(credit == {"head": 20} for credit in context.credits["ray"])
