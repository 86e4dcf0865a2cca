"""Trainings on a real Ray: the same weights by every arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from small_training import SMALL_TRAINING

from bench.context import NodeSlot
from bench.data import images
from bench.errors import RunFailed
from bench.experiments import parameter_server
from bench.experiments.parameter_server import arms, checkpoints
from bench.experiments.parameter_server.learner import Batches, Learner
from bench.experiments.parameter_server.server import TrainingPlan
from bench.experiments.parameter_server.snapshots import Snapshot
from bench.experiments.parameter_server.training import Trainers, TrainingPass
from bench.experiments.toolkit.placement import places
from bench.model import Sample


def values(samples: Sequence[Sample], metric: str, arm: str = "ray-sync") -> list[float | None]:
    return [sample.value for sample in samples if (sample.metric, sample.arm) == (metric, arm)]


class Started:
    """Trainers that are ended with the test."""

    def __init__(self, nodes: Sequence[NodeSlot], folder: Path) -> None:
        self.nodes = nodes
        self.folder = folder
        self.all: list[Trainers] = []

    def __call__(self, workers: int = 2, servers: int = 1, **params: Any) -> Trainers:
        import ray

        held = images.load("mnist-small-32", 7, "uint8")
        found = Trainers(
            params=replace(SMALL_TRAINING, **params),
            seed=7,
            learner=Learner("convolution", 7),
            images=ray.put(held.train_x),
            classes=ray.put(held.train_y),
            # Without CPUs of Ray's, so that those of several tests have room beside each other.
            places=[replace(place, cpus=0.0) for place in places(workers, self.nodes)],
            server_nodes=[self.nodes[0]] * servers,
            folder=self.folder,
        )
        self.all.append(found)
        assert found.ready() == [1] * workers
        return found

    def close(self) -> None:
        for trainers in self.all:
            trainers.close()


@pytest.fixture
def start(local_ray: Sequence[NodeSlot], tmp_path: Path) -> Iterator[Started]:
    started = Started(local_ray, tmp_path)
    yield started
    started.close()


@pytest.fixture(scope="module")
def trainers(local_ray: Sequence[NodeSlot], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainers]:
    """Two workers and a server, which several tests use one after the other."""
    started = Started(local_ray, tmp_path_factory.mktemp("checkpoints"))
    yield started()
    started.close()


def plan(mode: str = "sync", **other: Any) -> TrainingPlan:
    given: dict[str, Any] = {
        "workers": 2,
        "begin": 0,
        "iterations": 20,
        "learning_rate": 0.05,
        "momentum": 0.9,
        "staleness_bound": -1,
        "evaluate_every": 5,
        "checkpoint_every": 0,
    }
    return TrainingPlan(mode=mode, **{**given, **other})


def last(done: TrainingPass) -> Snapshot:
    return done.snapshots()[-1]


def by_hand(workers: int, iterations: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The weights that one process gets when it averages the workers' gradients itself."""
    import torch

    held = images.load("mnist-small-32", 7, "uint8")
    learner = Learner("convolution", 7)
    batches = Batches(held.train_x, held.train_y, size=20, seed=7)
    optimizer = torch.optim.SGD(learner.module.parameters(), lr=0.05, momentum=0.9)
    for iteration in range(iterations):
        gradients = []
        for rank in range(workers):
            learner.compute(batches.take(iteration * workers + rank))
            gradients.append(learner.message.copy())
        learner.message[:] = np.mean(gradients, axis=0)
        optimizer.step()
    return learner.state.copy()


def test_synchronous_workers_get_the_weights_that_one_process_gets(trainers: Trainers) -> None:
    done = trainers.train(plan(), name="sync")
    assert np.abs(last(done).state - by_hand(2, 20)).max() < 1e-5
    assert np.abs(last(done).state - trainers.initial).max() > 0.01
    assert [snapshot.iteration for snapshot in done.snapshots()] == [5, 10, 15, 20]
    assert done.samples == 2 * 20 * 20
    again = trainers.train(plan(), name="sync")
    assert np.array_equal(last(again).state, last(done).state)


@pytest.mark.parametrize(("transport", "servers"), [("objects", 1), ("sharded", 3), ("direct", 1)])
def test_every_transport_gives_the_very_same_weights(
    start: Started, trainers: Trainers, transport: Any, servers: int
) -> None:
    others = start(servers=servers, transport=transport, prefetch=False)
    assert np.array_equal(
        last(others.train(plan(), name=transport)).state, last(trainers.train(plan(), name="sync")).state
    )


def test_gloo_and_plain_torch_get_the_weights_that_they_must(trainers: Trainers) -> None:
    trainers.join_peers()
    for _ in range(2):  # the second time begins at the same weights
        assert np.abs(last(trainers.together(plan())).state - by_hand(2, 20)).max() < 1e-5
        assert np.abs(last(trainers.alone(plan(), 1)).state - by_hand(1, 20)).max() < 1e-5


def test_asynchronous_gradients_are_counted_and_their_staleness_too(trainers: Trainers) -> None:
    done = trainers.train(plan("async", iterations=60, staleness_bound=1), name="async")
    counts = done.all_counts[0]
    assert sum(counts.staleness.values()) == 60
    # While a worker makes a gradient the other one goes from one step behind it to two ahead, where it waits.
    assert max(counts.staleness) <= 3
    assert last(done).iteration == 60
    assert sum(report.steps for report in done.reports) == 60 + counts.refused


def test_a_training_that_is_resumed_ends_at_the_very_same_weights(start: Started) -> None:
    import ray

    trainers = start(transport="compressed")
    straight = trainers.train(plan(checkpoint_every=10), name="straight")
    half = trainers.train(plan(checkpoint_every=10, iterations=10), name="half")
    checkpoint = ray.get(trainers.servers[0].checkpoint.remote())
    assert np.array_equal(checkpoint.state, last(half).state)
    path = checkpoints.write(start.folder, "half", checkpoint)
    found = checkpoints.read(path, length=len(trainers.initial), parameters=trainers.parameters)
    resumed = trainers.train(plan(checkpoint_every=10, begin=10, iterations=10), name="resumed", start=found)
    assert np.array_equal(last(resumed).state, last(straight).state)
    # Half precision gives other weights than single: near them, because what it loses is made good.
    exact = by_hand(2, 20)
    apart = np.linalg.norm(last(straight).state - exact) / np.linalg.norm(exact - trainers.initial)
    assert 0 < apart < 0.05


@contextmanager
def killed(actor: Any, when: Callable[[], bool]) -> Iterator[None]:
    """Kill `actor` as soon as `when` is true: a training has no fixed seconds, so that a timer may fire too late."""
    import ray

    is_over = Event()

    def kill() -> None:
        while not when():
            if is_over.wait(0.001):
                return
        ray.kill(actor)

    killer = Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        is_over.set()
        killer.join()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_worker_that_dies_is_replaced_and_counted(start: Started, mode: str) -> None:
    import ray

    trainers = start()
    (server,) = trainers.servers
    long = plan(mode, iterations=2_000, learning_rate=0.001, evaluate_every=1_000)
    with killed(trainers.workers[1], when=lambda: ray.get(server.version.remote()) >= 20):
        done = trainers.train(long, name=mode)
    assert done.replaced == 1
    assert done.lost_seconds > 0
    assert last(done).iteration == 2_000
    if mode == "sync":
        assert np.array_equal(last(trainers.train(long, name=mode)).state, last(done).state)


def test_a_dead_server_fails_the_run_and_names_the_last_checkpoint(start: Started) -> None:
    trainers = start(workers=1)
    endless = plan(workers=1, iterations=1_000_000, evaluate_every=1_000, checkpoint_every=20)
    with (
        killed(trainers.servers[0], when=lambda: len(list(start.folder.glob("*.npz"))) > 1),
        pytest.raises(RunFailed, match=r"server died.*the last checkpoint is .*checkpoint-sync-1-\d+\.npz"),
    ):
        trainers.train(endless, name="sync")
    trainers.servers.clear()
    newest = max(start.folder.glob("*.npz"), key=lambda path: path.stat().st_mtime)
    assert checkpoints.read(newest, length=len(trainers.initial), parameters=trainers.parameters).iteration > 0


def test_all_arms_learn_and_two_nodes_give_the_weights_that_one_gives(
    context: Any, two_halves: Any, tmp_path: Path
) -> None:
    two_halves.folder = context.folder = tmp_path
    samples = list(parameter_server.run(SMALL_TRAINING, two_halves))
    assert two_halves.reasons == []
    assert not two_halves.is_invalid
    for arm in arms.ARMS:
        assert values(samples, "throughput_samples_per_second", arm.name) != []
        assert all(value and value > 0 for value in values(samples, "throughput_samples_per_second", arm.name))
    (apart,) = values(samples, "weights_apart")
    assert apart is not None
    assert apart < 1e-4
    assert values(samples, "accuracy_by_iterations") != []
    steps = [sample.step for sample in samples if (sample.metric, sample.arm) == ("loss_by_iterations", "ray-sync")]
    assert steps == [5.0, 10.0, 15.0, 20.0]
    shares = [value for value in values(samples, "staleness_share", "ray-async") if value is not None]
    assert sum(shares) == pytest.approx(1.0)
    nodes = {sample.node for sample in samples if sample.metric == "busy_seconds"}
    assert nodes == {"head", "worker-1"}
    for metric in ("compute_seconds", "straggler_seconds", "barrier_seconds", "travel_seconds"):
        assert all(value is not None and value >= 0 for value in values(samples, metric))
        assert values(samples, metric) != []
    credit = two_halves.credits["ray-sync"][0]
    assert credit == {"worker-1": 400.0, "head": 400.0}

    list(parameter_server.run(SMALL_TRAINING, context))
    assert context.digests == two_halves.digests
    assert any("after 20 synchronous iterations of 2 workers" in name for name in context.digests)


def test_a_learning_rate_of_nothing_is_invalid_however_fast(context: Any, tmp_path: Path) -> None:
    context.folder = tmp_path
    list(parameter_server.run(replace(SMALL_TRAINING, learning_rate=0.0, iterations=5, workers=1), context))
    assert any(reason.startswith("ray-sync: not converging") for reason in context.reasons)
