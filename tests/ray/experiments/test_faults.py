"""Faults are injected into actors of a real Ray, and the experiments recover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench.context import NodeSlot
from bench.experiments import inference, parameter_server
from bench.experiments.parameter_server import training
from bench.experiments.toolkit.faults import FaultInjector


def an_injector(text: str) -> FaultInjector:
    return FaultInjector(plan=text, workers="Nobody", seed=1, attempt=1, nodes=())


def test_where_there_is_nothing_to_inject_into_the_run_is_told_so(local_ray: Sequence[NodeSlot]) -> None:
    injector = replace(an_injector("worker:1"), nodes=local_ray)
    injector.begin()
    injector.progress(0.0, 1.0)
    injector.progress(1.0, 1.0)
    assert list(injector.end()) == ["faults that were not injected, because no process or node could take them: worker"]
    assert list(injector.end()) == []


@pytest.mark.timeout(60)
def test_actors_that_are_killed_are_replaced_and_their_batches_answered_again(context: Any) -> None:
    context.passes = 1
    context.inject("worker:2", inference.EXPERIMENT.tolerates)
    params = inference.Params(actors=2, batch=1, inputs=600, open_loop="off", chaos="worker:2")
    samples = list(inference.run(params, context))
    assert not context.is_invalid, context.reasons  # all answers are right, and there are as many as inputs
    (success,) = [each.value for each in samples if each.metric == "success_ratio"]
    assert success is not None
    assert 0.5 < success < 1.0


@pytest.mark.timeout(90)
def test_a_worker_that_is_killed_in_training_changes_no_weight(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "TICK_SECONDS", 0.02)
    context.passes = 1
    context.inject("worker:1", parameter_server.EXPERIMENT.tolerates)
    params = parameter_server.Params(
        data="mnist-small-32",
        batch=20,
        learning_rate=0.05,
        iterations=100,
        evaluate_every=50,
        target_accuracy=20.0,
        checkpoint_every=0,
        chaos="worker:1",
    )
    samples = list(parameter_server.run(params, context))
    assert not context.is_invalid, (
        context.reasons
    )  # the arm that is not watched has had no fault: its weights are the same
    replaced = {each.arm: each.value for each in samples if each.metric == "replaced_workers"}
    assert replaced["ray-sync"] == 1.0
    rates = {each.arm: each.value for each in samples if each.metric == "throughput_samples_per_second"}
    assert rates["ddp-gloo"]  # whose processes have met anew
