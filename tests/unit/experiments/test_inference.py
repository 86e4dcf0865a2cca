"""Inference yields true numbers: counted, checked, and refused where an answer is wrong."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bench import params as parameters
from bench.context import Measured
from bench.errors import BadInput
from bench.experiments import inference, load
from bench.experiments.inference import Params, arms, metrics
from bench.experiments.inference.predictors import Answers
from bench.experiments.inference.run import _fault, check, most_outstanding
from bench.model import Interval, Sample


def values(samples: list[Sample], metric: str, arm: str = "ray") -> list[float | None]:
    return [sample.value for sample in samples if (sample.metric, sample.arm) == (metric, arm)]


def some_calls(*latencies: float, failures: int = 0) -> Answers:
    return Answers(values=[], latencies=list(latencies), nodes=[], failures=failures, replaced=0)


def measured(*passes: metrics.Pass, seconds: float = 2.0, arm: str = "ray") -> Measured[metrics.Pass]:
    return Measured(results=passes, interval=Interval(10.0, 10.0 + seconds), arm=arm, turn=1, warmup=False)


# declarations


def test_the_index_knows_inference_and_its_headline() -> None:
    experiment = load("inference")
    assert experiment.metrics[0].name == "throughput_inputs_per_second"
    assert experiment.arms[0].role == "subject"
    assert len({metric.name for metric in experiment.metrics}) == len(experiment.metrics)


@pytest.mark.parametrize(
    "setting",
    ["actors=0", "actors=1001", "batch=0", "inputs=0", "in_flight=0", "data=imagenet", "data_path=near", "dtype=int8"],
)
def test_bad_params_are_refused(setting: str) -> None:
    with pytest.raises(BadInput):
        parameters.settings(Params, [setting])


def test_a_batch_larger_than_all_inputs_is_refused() -> None:
    with pytest.raises(BadInput, match="A batch of 100 does not fit into 50 inputs"):
        Params(batch=100, inputs=50)


def test_every_number_has_a_unit_and_every_parameter_help() -> None:
    for parameter in parameters.declared(Params).values():
        assert parameter.help
        assert parameter.choices or parameter.unit


@pytest.mark.parametrize("name", ["tiny", "lab", "full"])
def test_every_cell_of_a_profile_can_be_run(name: str) -> None:
    for grid in inference.PROFILES[name].grids:
        for chosen in itertools.product(*grid.values()):
            Params(**parameters.complete(Params, dict(zip(grid, chosen, strict=True))))


def test_lab_has_the_two_steps_of_the_study_and_what_it_confounds() -> None:
    grids = inference.PROFILES["lab"].grids
    first = set(itertools.product(grids[0]["actors"], grids[0]["batch"], grids[0]["inputs"]))
    assert {(actors, batch, 100_000) for actors in (1, 10) for batch in (1, 10, 100, 1_000)} == first
    assert any((grid["actors"], grid["batch"], grid["inputs"]) == ((10,), (10,), (1_000_000,)) for grid in grids)
    assert inference.PROFILES["lab"].samples == 5


# arithmetic


def test_throughput_counts_every_input_of_every_pass() -> None:
    done = metrics.Pass(problem=None, digest="d", calls=some_calls(0.1))
    found = list(metrics.samples(arms.RAY, measured(done, done, done), Params(inputs=500)))
    assert values(found, "throughput_inputs_per_second") == [3 * 500 / 2.0]


def test_peers_have_a_throughput_and_nothing_else() -> None:
    done = metrics.Pass(problem=None, digest="d")
    found = list(metrics.samples(arms.POOL, measured(done, arm="pool"), Params(inputs=500)))
    assert [(sample.metric, sample.value) for sample in found] == [("throughput_inputs_per_second", 250.0)]


@pytest.mark.parametrize(
    ("count", "share", "expected"), [(1, 50, 1), (2, 50, 1), (100, 90, 90), (1_000, 99, 990), (1_001, 99, 991)]
)
def test_a_percentile_is_a_value_that_was_measured(count: int, share: int, expected: float) -> None:
    assert metrics.percentile([float(value) for value in range(1, count + 1)], share) == expected


def test_a_percentile_of_few_calls_is_missing_with_the_reason() -> None:
    done = metrics.Pass(problem=None, digest="d", calls=some_calls(*[0.1] * 99))
    found = list(metrics.latencies([measured(done)]))
    assert values(found, "closed_loop_latency_p50_seconds") == [0.1]
    (missing,) = [sample for sample in found if sample.metric == "closed_loop_latency_p90_seconds"]
    assert (missing.value, missing.reason) == (None, "99 calls; p90 needs 100")


def test_percentiles_are_of_all_calls_of_an_invocation_and_never_averaged() -> None:
    quick, slow = (metrics.Pass(problem=None, digest="d", calls=some_calls(*[each] * 500)) for each in (1.0, 3.0))
    p50, p90, p99 = metrics.latencies([measured(quick), measured(quick), measured(slow)])
    assert (p50.value, p90.value, p99.value) == (1.0, 3.0, 3.0)


def test_failed_calls_are_counted_and_give_no_rate() -> None:
    calls = some_calls(*[0.1] * 6, failures=2)
    done = metrics.Pass(problem=_fault(calls), digest="d", calls=calls)
    found = list(metrics.samples(arms.RAY, measured(done), Params(inputs=500)))
    assert values(found, "success_ratio") == [0.75]
    assert values(found, "throughput_inputs_per_second") == [None]
    assert {sample.reason for sample in found if sample.reason} == {"2 calls failed, and 0 actors were replaced"}
    assert _fault(calls, is_faulty=True) is None  # of injected faults it is what they cost


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"batch": 10}, 784 * 8 + 1),
        ({"batch": 10, "dtype": "float32"}, 784 * 4 + 1),
        ({"batch": 10, "data_path": "by-reference"}, 16 / 10 + 1),
        ({"batch": 1, "data_path": "local"}, 17),
    ],
)
def test_payload_is_what_the_calls_carry(changes: dict[str, Any], expected: float) -> None:
    assert metrics.payload_bytes_per_input(Params(**changes)) == expected


@pytest.mark.parametrize(
    ("request_bytes", "in_flight", "expected"), [(6_272.0, 8, 1_000), (6_272_000.0, 8, 16), (627_200.0, 8, 106)]
)
def test_requests_without_an_answer_fit_into_the_object_store(
    request_bytes: float, in_flight: int, expected: int
) -> None:
    assert most_outstanding(request_bytes, in_flight) == expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (b"\1\2\3", None),
        (b"\1\2", "2 answers to 3 inputs"),
        (b"\1\2\3\4", "4 answers to 3 inputs"),
        (b"\1\3\2", "2 of 3 answers are wrong"),
    ],
)
def test_answers_are_checked_one_by_one(answers: bytes, expected: str | None) -> None:
    assert check(answers, b"\1\2\3") == expected
