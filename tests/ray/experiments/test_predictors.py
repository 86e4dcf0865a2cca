"""Actors hold the network by reference, answer alike by every data path, and leave the weights as they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from bench.context import NodeSlot
from bench.errors import RunInvalid
from bench.experiments.inference import mlp
from bench.experiments.inference.predictors import DataPath, Predictor, Predictors
from bench.experiments.toolkit.placement import places, spans

pytestmark = pytest.mark.timeout(60)

Make = Callable[..., Predictors]


@pytest.fixture
def some_predictors(local_ray: Sequence[NodeSlot]) -> Iterator[Make]:
    made: list[Predictors] = []

    def make(layers: mlp.Layers | None = None, actors: int = 2, data_path: DataPath = "by-value") -> Predictors:
        made.append(
            Predictors(
                places(actors, local_ray),
                layers if layers is not None else mlp.make_layers(7, "float64"),
                vectors=("random", 7, "float64"),
                data_path=data_path,
                in_flight=2,
            )
        )
        return made[-1]

    yield make
    for predictors in made:
        predictors.close()


def bytes_ever_put() -> int:
    """What the raylet's store has taken in since it started."""
    import ray
    from ray._private.internal_api import node_stats

    node = ray.nodes()[0]
    stats = node_stats(node["NodeManagerAddress"], node["NodeManagerPort"], include_memory_info=False)
    return int(stats.store_stats.cumulative_created_bytes)


@pytest.mark.parametrize("data_path", ["by-value", "by-reference", "local"])
def test_every_data_path_gives_the_same_answers(some_predictors: Make, data_path: DataPath) -> None:
    predictors = some_predictors(data_path=data_path)
    predictors.ready()
    parts = spans(0, 5_100, 300)  # on past the last distinct vector
    found = predictors.predict(parts)
    layers, vectors = mlp.make_layers(7, "float64"), mlp.make_vectors("random", 7, "float64")
    assert b"".join(found.values) == mlp.answer_all(layers, vectors, 0, 5_100, 1_000)
    assert predictors.inputs_by_node(found.nodes, parts) == {"head": 5_100.0}
    empty = predictors.skip(parts)
    assert [len(value) for value in empty.values] == [stop - start for start, stop in parts]


def test_actors_tell_what_they_did_since_they_were_asked_and_only_of_work(some_predictors: Make) -> None:
    predictors = some_predictors()
    predictors.ready()
    begin = time.monotonic()
    predictors.predict(spans(0, 600, 50))
    took = time.monotonic() - begin
    done = predictors.take_work_done()
    assert sum(worker.units for worker in done) == 600
    assert {worker.node for worker in done} == {"head"}
    assert all(0 < worker.busy_seconds < took for worker in done)
    predictors.skip(spans(0, 600, 50))
    assert len(predictors.call(spans(0, 600, 50)).values) == 12
    assert [(worker.busy_seconds, worker.units) for worker in predictors.take_work_done()] == [(0.0, 0), (0.0, 0)]


def test_weights_of_10_mb_are_put_once_for_20_calls(some_predictors: Make) -> None:
    layers = mlp.make_layers(1, "float64", (784, 1_600, 10))
    assert sum(weights.nbytes for weights, _ in layers) > 10_000_000
    before = bytes_ever_put()
    predictors = some_predictors(layers)
    predictors.ready()
    assert len(predictors.predict(spans(0, 20, 1)).values) == 20
    assert 10_000_000 < bytes_ever_put() - before <= 20_000_000


def test_weights_are_read_only_and_unchanged_after_use(some_predictors: Make) -> None:
    layers = mlp.make_layers(7, "float64")
    predictors = some_predictors(layers)
    assert predictors.ready() == {mlp.fingerprint(layers)}
    predictors.predict(spans(0, 200, 10))
    assert predictors.ready() == {mlp.fingerprint(layers)}


@pytest.mark.filterwarnings("error")
def test_an_actor_warns_of_nothing_when_its_weights_are_read_only() -> None:
    layers = mlp.make_layers(7, "float64")
    for weights, biases in layers:
        weights.flags.writeable = biases.flags.writeable = False
    actor = Predictor(layers, ("random", 7, "float64"), 1)
    assert len(actor.predict_span(None, 4_990, 5_010)) == 20
    assert not actor.ready().writable


@pytest.mark.parametrize("actors", [1, 2, 3])
def test_every_actor_has_one_thread_whatever_its_node_has(some_predictors: Make, actors: int) -> None:
    predictors = some_predictors(actors=actors)
    assert {place.threads for place in predictors.places} == {1}
    predictors.ready()  # raises where an actor has others


def test_an_actor_with_other_threads_than_asked_for_is_refused(
    some_predictors: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictors = some_predictors(actors=1)
    (worker,) = predictors._pool.workers
    monkeypatch.setattr(worker, "place", replace(worker.place, threads=9))
    with pytest.raises(RunInvalid, match="An actor on head has 1 native threads, not 9"):
        predictors.ready()
