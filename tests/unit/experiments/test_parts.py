"""Work is told from waiting: what a worker does, and what the others wait for it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partialmethod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import analysis
from bench.analysis.breakdown import amounts as breakdown_amounts
from bench.context import Measured
from bench.experiments import inference
from bench.experiments.inference import predictors
from bench.experiments.toolkit import parts
from bench.experiments.toolkit.parts import WorkDone, compute_and_straggler, work_samples
from bench.experiments.toolkit.placement import Place, on
from bench.model import Interval


def workers(*done: tuple[float, float]) -> list[WorkDone]:
    return [
        WorkDone(node=f"n{number}", busy_seconds=seconds, units=units) for number, (seconds, units) in enumerate(done)
    ]


@pytest.mark.parametrize(
    ("done", "compute", "straggler"),
    [
        ([(2.0, 10), (2.0, 10)], 2.0, 0.0),
        ([(2.0, 10), (5.0, 10)], 2.0, 3.0),  # the same share each: the others wait for the slow one
        ([(3.0, 15), (3.0, 5)], 2.0, 1.0),  # the quick one took over work of the slow one
        ([(2.0, 10), (2.0, 10), (2.5, 10), (9.0, 10)], 2.0, 7.0),
        ([(4.0, 20), (0.0, 0)], 2.0, 2.0),  # one was given nothing
        ([(0.0, 0), (1.0, 0)], 0.0, 1.0),
        ([], 0.0, 0.0),
    ],
)
def test_workers_like_the_middle_one_would_take_compute_and_the_rest_is_the_stragglers(
    done: list[tuple[float, float]], compute: float, straggler: float
) -> None:
    assert compute_and_straggler(workers(*done)) == pytest.approx((compute, straggler))


some_work = st.lists(st.tuples(st.floats(0, 1e3), st.floats(0.001, 1e6)), min_size=2, max_size=9)


@given(done=some_work, sleep=st.floats(0, 1e3))
def test_a_sleep_in_the_busiest_worker_is_a_stragglers_and_no_work(
    done: list[tuple[float, float]], sleep: float
) -> None:
    done = [(seconds, 10.0) for seconds, _ in done]  # the same share each
    compute, straggler = compute_and_straggler(workers(*done))
    slowest = done.index(max(done))
    done[slowest] = (done[slowest][0] + sleep, done[slowest][1])
    assert compute_and_straggler(workers(*done)) == pytest.approx((compute, straggler + sleep))


@given(done=some_work)
def test_both_parts_together_are_what_the_busiest_worker_took(done: list[tuple[float, float]]) -> None:
    compute, straggler = compute_and_straggler(workers(*done))
    assert compute + straggler == pytest.approx(max(seconds for seconds, _ in done))
    assert min(compute, straggler) >= 0


def test_rounds_add_up_and_nodes_have_the_mean_of_their_workers() -> None:
    measured = Measured[None](results=(), interval=Interval(0, 10), arm="ray", turn=1, warmup=False)
    halves = [
        WorkDone(node=node, busy_seconds=seconds, units=1) for node, seconds in (("a", 1.0), ("a", 3.0), ("b", 1.0))
    ]
    found = {(sample.metric, sample.node): sample.value for sample in work_samples(measured, [halves, halves])}
    assert found == {
        ("compute_seconds", None): 2.0,
        ("straggler_seconds", None): 4.0,
        ("busy_seconds", "a"): 4.0,
        ("busy_seconds", "b"): 2.0,
    }


def test_the_breakdown_knows_the_parts_by_what_they_mean() -> None:
    defined = (*parts.WORK_METRICS, parts.SERIALISE, parts.QUEUE, parts.ROUND_TRIPS)
    assert {metric.means for metric in defined} == set(breakdown_amounts.PARTS)


# real runs


PARAMS = inference.Params(actors=2, batch=20, inputs=1_000, data_path="local", in_flight=1)
CALL_SECONDS = 0.02
PASS_SECONDS = CALL_SECONDS * PARAMS.inputs / PARAMS.batch / PARAMS.actors
HELD_UP_SECONDS = 4 * PASS_SECONDS


class Sleeper(predictors.Predictor):
    """Sleeps for its work, so that others on the machine do not make it slower; and still answers."""

    def is_held_up(self, seconds: float) -> None:
        """From now on the first call of a pass takes so much longer."""
        self._held_up = seconds

    def predict_span(self, vectors: Any, start: int, stop: int) -> bytes:
        begin = time.monotonic()
        time.sleep(CALL_SECONDS + (self._held_up if start == 0 else 0.0))
        self._busy_seconds += time.monotonic() - begin
        return super().predict_span(vectors, start, stop)


def a_breakdown(monkeypatch: pytest.MonkeyPatch, single: Any, multi: Any, held_up: float) -> dict[str, float]:
    """Parts of the gap between two actors on one node, and two on two nodes, of which one is held up in each pass."""
    from made_up_breakdown import a_session  # Ray's workers import this module, and know nothing of that one

    session, made_up = a_session(blocks=1, metrics=inference.METRICS, arms=inference.ARMS)
    runs = []
    for run, context, seconds in zip(made_up, (single, multi), (0.0, held_up), strict=True):
        monkeypatch.setattr(predictors.Predictors, "_spawn", partialmethod(_sleeper, seconds))
        samples = tuple(inference.run(PARAMS, context))
        assert not context.is_invalid
        runs.append(replace(run, samples=samples, usage=()))
    (cell,) = analysis.build(session, runs).cells
    assert cell.network_breakdown is not None
    return {part.name: part.seconds.value for part in cell.network_breakdown.parts if part.seconds}


def _sleeper(self: predictors.Predictors, held_up: float, place: Place, _: str) -> Any:
    import ray

    kind = ray.remote(Sleeper).options(num_cpus=place.cpus, scheduling_strategy=on(place.node))
    actor = kind.remote(self._weights, self._own_vectors, place.threads)
    actor.is_held_up.remote(held_up)
    return actor


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_worker_that_sleeps_is_found_in_the_stragglers_part_and_nowhere_else(
    context: Any, two_halves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = a_breakdown(monkeypatch, context, two_halves, 0.0)
    after = a_breakdown(monkeypatch, context, two_halves, HELD_UP_SECONDS)
    assert set(before) == {"serialise/copy", "queue and schedule", "compute", "straggler", "unexplained"}
    # The other worker has meanwhile done all else, so that a pass takes as long as that one call.
    expected = (HELD_UP_SECONDS + CALL_SECONDS - PASS_SECONDS) / PARAMS.inputs
    assert after["straggler"] - before["straggler"] == pytest.approx(expected, rel=0.25)
    for name in set(before) - {"straggler"}:
        assert abs(after[name] - before[name]) < 0.25 * expected, name
