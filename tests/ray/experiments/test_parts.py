"""Where the time of work on a real Ray goes: what the worker does and what others wait for it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partialmethod
from typing import Any

import pytest

from bench import analysis
from bench.experiments import inference
from bench.experiments.inference import predictors
from bench.experiments.toolkit.placement import Place, on

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
