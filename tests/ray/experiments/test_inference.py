"""Inference on a real Ray: every arm answers every input, and wrong answers are refused."""

from __future__ import annotations

from typing import Any

import pytest

from bench.experiments import inference
from bench.experiments.inference import Params
from bench.experiments.inference.peers import InferencePeers
from bench.experiments.inference.predictors import Predictors
from bench.experiments.toolkit import response_times
from bench.experiments.toolkit.process_pool import PeerProcesses
from bench.model import Sample

ANSWERS = "inference: answers to 600 mnist inputs, seed 7"


def values(samples: list[Sample], metric: str, arm: str = "ray") -> list[float | None]:
    return [sample.value for sample in samples if (sample.metric, sample.arm) == (metric, arm)]


@pytest.mark.timeout(120)
def test_cells_arms_and_topologies_agree_on_the_answers(context: Any, two_halves: Any) -> None:
    cells = [
        (context, Params(actors=1, batch=1, inputs=600, open_loop="off")),
        (
            context,
            Params(actors=2, batch=70, inputs=600, data_path="by-reference", dtype="float32", open_loop_seconds=0.1),
        ),
        (two_halves, Params(actors=3, batch=100, inputs=600, data_path="local", open_loop_seconds=0.1)),
    ]
    digests: set[str] = set()
    for place, params in cells:
        found = list(inference.run(params, place))
        assert not place.is_invalid
        digests |= place.digests[ANSWERS]
        assert {sample.arm for sample in found} == {arm.name for arm in inference.ARMS}
        under_load = {metric.name for metric in response_times.METRICS if params.open_loop != "off"}
        others = {metric.name for metric in inference.METRICS if metric not in response_times.METRICS}
        assert {sample.metric for sample in found} == others | under_load
        for sample in found:
            if sample.metric == "throughput_inputs_per_second":
                assert sample.value is not None
                assert sample.value * sample.interval.seconds == pytest.approx(2 * params.inputs)
        startup, first = (values(found, name)[0] for name in ("startup_seconds", "first_result_seconds"))
        assert startup is not None
        assert first is not None
        assert first > startup > 0
        assert values(found, "success_ratio") == [1.0]
        loads = len(response_times.SHARES) + 1 if under_load else 0
        for arm, shares in place.credits.items():
            passes = shares[: -2 * loads] if arm == "ray" and loads else shares
            assert all(sum(credit.values()) == params.inputs for credit in passes)
    assert len(digests) == 1
    assert all(all(credit.values()) for credit in two_halves.credits["ray"])  # both nodes did some


@pytest.mark.timeout(60)
def test_peers_that_are_left_out_start_no_process(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    start = PeerProcesses.start.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        PeerProcesses, "start", classmethod(lambda *given: (started.append(len(given[2])), start(*given))[1])
    )
    context.arms = ("ray", "empty-calls")
    found = list(inference.run(Params(batch=100, inputs=600, open_loop="off"), context))
    assert not context.is_invalid
    assert {sample.arm for sample in found} == {"ray", "empty-calls"}
    assert sum(started) == 0


@pytest.mark.timeout(60)
def test_a_wrong_answer_of_one_arm_gives_a_reason_and_an_invalid_run(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = InferencePeers.all_cpus
    monkeypatch.setattr(InferencePeers, "all_cpus", lambda self: bytes([right(self)[0] ^ 1]) + right(self)[1:])
    found = list(inference.run(Params(batch=100, inputs=600, open_loop="off"), context))
    (wrong,) = [sample for sample in found if sample.arm == "numpy-all-cpus"]
    assert (wrong.value, wrong.reason) == (None, "1 of 600 answers are wrong")
    assert values(found, "throughput_inputs_per_second") != [None]
    assert context.is_invalid
    assert len(context.digests[ANSWERS]) == 2


@pytest.mark.timeout(60)
def test_a_wrong_answer_under_load_gives_a_reason_and_an_invalid_run(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Predictors.request
    monkeypatch.setattr(Predictors, "request", lambda self, slot, _: right(self, slot, (5, 6)))
    found = list(inference.run(Params(batch=100, inputs=600, open_loop_seconds=0.05), context))
    assert context.is_invalid
    assert all("gave a wrong answer" in reason for reason in context.reasons)
    under_load = [sample for sample in found if sample.metric.startswith("response_time")]
    assert len(under_load) == 12
    assert all(sample.value is None for sample in under_load)
    assert None not in values(found, "throughput_inputs_per_second")


@pytest.mark.timeout(60)
def test_actors_and_peers_end_with_the_run_even_when_it_is_left_early(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    for kind in (Predictors, PeerProcesses):
        close = kind.close
        monkeypatch.setattr(kind, "close", lambda self, close=close: (closed.append(type(self)), close(self)))
    running = inference.run(Params(batch=100, inputs=600, open_loop="off"), context)
    while next(running).metric != "throughput_inputs_per_second":
        pass
    running.close()  # type: ignore[attr-defined]
    assert set(closed) == {Predictors, PeerProcesses}
