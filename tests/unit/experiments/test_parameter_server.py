"""The parameter server learns: the same weights by every way, faults that are got over, and what cannot be believed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bench import params as parameters
from bench.context import Measured, NodeSlot
from bench.data import images
from bench.errors import BadInput, DataMissing, DoesNotFit, RunFailed, RunInvalid
from bench.experiments import load, parameter_server
from bench.experiments.parameter_server import Params, arms, checkpoints, evaluation, training
from bench.experiments.parameter_server import metrics as m
from bench.experiments.parameter_server.evaluation import Evaluated
from bench.experiments.parameter_server.learner import Batches, Learner
from bench.experiments.parameter_server.run import Study
from bench.experiments.parameter_server.server import Snapshot, TrainingPlan
from bench.experiments.parameter_server.training import Trainers, TrainingPass
from bench.experiments.toolkit.placement import places
from bench.model import Interval, Sample, Topology, from_json, to_json
from bench.planning import needs

SOME = Params(
    model="convolution",
    data="mnist-small-32",
    batch=20,
    learning_rate=0.05,
    iterations=20,
    evaluate_every=5,
    target_accuracy=20.0,
)


def evaluated(*accuracies: float, loss: float = 1.0) -> list[Evaluated]:
    return [
        Evaluated(
            iteration=10 * number,
            seconds=2.0 * number,
            cpu_seconds=3.0 * number,
            evaluation_seconds=0.5 * number,
            accuracy=accuracy,
            loss=loss,
        )
        for number, accuracy in enumerate(accuracies, start=1)
    ]


def measured(arm: str = "ray-sync") -> Measured[None]:
    return Measured(results=[None], interval=Interval(0.0, 2.0), arm=arm, turn=1, warmup=False)


def bare(nodes: Sequence[NodeSlot]) -> Any:
    """A context of so many nodes in which nothing runs."""
    return SimpleNamespace(
        nodes=nodes,
        seed=7,
        block=1,
        time_once=lambda arm, work: Measured(
            results=[work()], interval=Interval(0.0, 1.0), arm=arm, turn=0, warmup=False
        ),
    )


def values(samples: Sequence[Sample], metric: str, arm: str = "ray-sync") -> list[float | None]:
    return [sample.value for sample in samples if (sample.metric, sample.arm) == (metric, arm)]


# declarations


def test_the_index_knows_the_parameter_server_and_its_headline() -> None:
    experiment = load("parameter-server")
    assert experiment.metrics[0].name == "throughput_samples_per_second"
    assert experiment.arms[0].role == "subject"
    assert len({metric.name for metric in experiment.metrics}) == len(experiment.metrics)


@pytest.mark.parametrize(
    "setting", ["workers=0", "model=resnet50", "learning_rate=-1", "momentum=1", "transport=pigeon", "iterations=0"]
)
def test_bad_params_are_refused(setting: str) -> None:
    with pytest.raises(BadInput):
        parameters.settings(Params, [setting])


def test_more_weights_than_a_server_may_keep_are_refused() -> None:
    with pytest.raises(BadInput, match="Raise evaluate_every"):
        Params(model="resnet18", evaluate_every=10)


@pytest.mark.parametrize("name", ["tiny", "lab", "full"])
def test_every_cell_of_a_profile_can_be_run(name: str) -> None:
    for grid in parameter_server.PROFILES[name].grids:
        for chosen in itertools.product(*grid.values()):
            params: dict[str, Any] = parameters.complete(Params, dict(zip(grid, chosen, strict=True)))
            cell = Params(**params)
            assert parameter_server.guess_pass_seconds(cell) > 0


def test_looks_at_a_set_with_more_held_out_images_are_reckoned_to_take_longer() -> None:
    many, few, never = (
        parameter_server.guess_pass_seconds(Params(data=data, evaluate_every=every))
        for data, every in (("cifar10", 10), ("synthetic-32", 10), ("synthetic-32", 1_000_000))
    )
    assert many - never == pytest.approx(5 * (few - never), rel=0.01)


def shape(memory_mib: int, nodes: int = 1) -> Topology:
    return Topology(
        name="some",
        nodes=nodes,
        cpus_per_node=2 // nodes,
        memory_bytes_per_node=memory_mib * 2**20 // nodes,
        object_store_bytes_per_node=2**30,
        threads_per_node=2 // nodes,
    )


def test_a_network_too_large_for_the_nodes_is_refused_before_the_kernel_kills_it() -> None:
    large = Params(model="resnet18", evaluate_every=1_000)
    for nodes in (1, 2):
        parameter_server.check_fits(Params(), shape(4096, nodes))
        parameter_server.check_fits(large, shape(6144, nodes))
        with pytest.raises(DoesNotFit, match=r"resnet18 and batches of 100 need .* Lower batch or workers"):
            parameter_server.check_fits(large, shape(4096, nodes))


def test_more_workers_than_cpus_are_refused_unless_they_are_asked_for_crowded() -> None:
    many = replace(SOME, workers=20)
    for nodes in (1, 2):
        with pytest.raises(DoesNotFit, match=r"workers=20 needs as many CPUs, and some has 2\. Give more --cpus"):
            parameter_server.check_fits(many, shape(6144, nodes))
    parameter_server.check_fits(replace(many, crowded=True), shape(6144))
    large = Params(model="resnet18", evaluate_every=1_000, workers=20, crowded=True)
    with pytest.raises(DoesNotFit, match="MiB on each node"):
        parameter_server.check_fits(large, shape(6144))


def test_a_set_that_a_person_must_seed_is_missed_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path))
    spec = SimpleNamespace(experiment="parameter-server", params={"data": "cifar10"})
    with pytest.raises(DataMissing, match="cifar10"):
        needs.check(cast("Any", spec), [shape(4096)], "local")


def test_targets_are_those_of_the_study_unless_one_is_given() -> None:
    study = Params(model="resnet18", evaluate_every=1_000)
    assert (Params().target(arms.SYNC), study.target(arms.SYNC), study.target(arms.ASYNC)) == (40.0, 60.0, 55.0)
    assert replace(study, target_accuracy=70.0).target(arms.ASYNC) == 70.0


# what a training came to


def test_weights_are_apart_by_a_share_of_what_the_iteration_changed() -> None:
    before, ours = np.zeros(2, np.float32), np.array([0.5, -2.0], np.float32)
    assert evaluation.share_apart(ours, ours, before) == 0.0
    assert evaluation.share_apart(ours, 2 * ours, before) == 1.0  # a sum in place of the mean of two
    assert evaluation.share_apart(before, before, before) == 0.0  # at a learning rate of nothing


def test_the_target_is_reached_at_the_first_look_that_shows_it() -> None:
    found = evaluation.time_to_target(evaluated(10.0, 40.0, 39.0, 50.0), 40.0, 200)
    assert found is not None
    assert (found.seconds, found.on_clock_seconds, found.samples) == (4.0, 5.0, 4_000)


def test_a_target_that_was_not_reached_is_missing_with_the_reason() -> None:
    samples = list(evaluation.target_samples(measured(), evaluated(10.0, 39.9), 40.0, None))
    (late,) = [sample for sample in samples if sample.metric == m.TO_TARGET.name]
    assert late.value is None
    assert late.reason == "the accuracy got to 39.9 %, and the target is 40 %"


def test_the_speed_up_is_the_product_of_its_two_parts() -> None:
    base = evaluation.TimeToTarget(seconds=10.0, on_clock_seconds=11.0, samples=1_000)
    found = evaluation.TimeToTarget(seconds=4.0, on_clock_seconds=5.0, samples=800)
    whole, rate, fewer = (sample.value for sample in evaluation.speed_ups(measured(), base, found))
    assert whole == 2.5
    assert (rate, fewer) == (2.0, 1.25)


@pytest.mark.parametrize(("last", "is_fault"), [(1.0, False), (2.0, True), (float("nan"), True), (float("inf"), True)])
def test_a_loss_that_does_not_fall_is_a_fault(last: float, is_fault: bool) -> None:
    held = images.load("mnist-small-32", 1, "uint8")
    examiner = evaluation.Examiner(Learner("convolution", 1), held.test_x[:50], held.test_y[:50])
    examiner.first_loss = 2.0
    assert (examiner.fault(evaluated(50.0, loss=last)) is not None) == is_fault


def test_what_must_cross_the_servers_node_is_what_its_distant_workers_send_and_get() -> None:
    nodes = [NodeSlot(name=name, node_id=name, cpus=1, threads=1) for name in ("head", "worker-1")]
    study = Study(replace(SOME, workers=2, transport="flat"), bare(nodes))
    # The first worker sits on worker-1, and the server on the head.
    assert [place.node.name for place in study.places] == ["worker-1", "head"]
    assert study.step_bytes(0) == pytest.approx(2 * 4 * 6_844, rel=0.05)
    assert study.step_bytes(1) == 0
    sharded = Study(replace(SOME, workers=2, transport="sharded"), bare(nodes))
    assert sharded.step_bytes(0) == sharded.step_bytes(1) == pytest.approx(4 * 6_844, rel=0.05)


def test_every_block_draws_weights_of_its_own_and_both_topologies_of_a_block_the_same() -> None:
    nodes = [NodeSlot(name="head", node_id="head", cpus=2, threads=2)]
    contexts = [bare(nodes), bare(nodes), bare(nodes)]
    contexts[2].block = 2
    first, again, second = (Study(SOME, context).seed for context in contexts)
    assert first == again == 7
    assert second != first


def test_workers_with_other_threads_than_they_were_given_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    closed: list[bool] = []
    nodes = [NodeSlot(name="head", node_id="head", cpus=2, threads=2)]
    found = SimpleNamespace(ready=lambda: [1, 2], close=lambda: closed.append(True))
    monkeypatch.setattr(ray, "put", lambda value: value)
    monkeypatch.setattr(training, "Trainers", lambda *_, **__: found)
    context = bare(nodes)
    context.folder = Path()
    with pytest.raises(RunInvalid, match=r"\[1, 2\] threads, not \[1, 1\]"):
        Study(SOME, context)._start(images.load("mnist-small-32", 7, "uint8"), Learner("convolution", 7))
    assert closed == [True]


# trainings on a real Ray


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
            params=replace(SOME, **params),
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


@pytest.mark.ray
def test_synchronous_workers_get_the_weights_that_one_process_gets(trainers: Trainers) -> None:
    done = trainers.train(plan(), name="sync")
    assert np.abs(last(done).state - by_hand(2, 20)).max() < 1e-5
    assert np.abs(last(done).state - trainers.initial).max() > 0.01
    assert [snapshot.iteration for snapshot in done.snapshots()] == [5, 10, 15, 20]
    assert done.samples == 2 * 20 * 20
    again = trainers.train(plan(), name="sync")
    assert np.array_equal(last(again).state, last(done).state)


@pytest.mark.ray
@pytest.mark.parametrize(("transport", "servers"), [("objects", 1), ("sharded", 3), ("direct", 1)])
def test_every_transport_gives_the_very_same_weights(
    start: Started, trainers: Trainers, transport: Any, servers: int
) -> None:
    others = start(servers=servers, transport=transport, prefetch=False)
    assert np.array_equal(
        last(others.train(plan(), name=transport)).state, last(trainers.train(plan(), name="sync")).state
    )


@pytest.mark.ray
def test_gloo_and_plain_torch_get_the_weights_that_they_must(trainers: Trainers) -> None:
    trainers.join_peers()
    for _ in range(2):  # the second time begins at the same weights
        assert np.abs(last(trainers.together(plan())).state - by_hand(2, 20)).max() < 1e-5
        assert np.abs(last(trainers.alone(plan(), 1)).state - by_hand(1, 20)).max() < 1e-5


@pytest.mark.ray
def test_asynchronous_gradients_are_counted_and_their_staleness_too(trainers: Trainers) -> None:
    done = trainers.train(plan("async", iterations=60, staleness_bound=1), name="async")
    tally = done.tallies[0]
    assert sum(tally.staleness.values()) == 60
    # While a worker makes a gradient the other one goes from one step behind it to two ahead, where it waits.
    assert max(tally.staleness) <= 3
    assert last(done).iteration == 60
    assert sum(report.steps for report in done.reports) == 60 + tally.refused


@pytest.mark.ray
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


@pytest.mark.ray
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_worker_that_dies_is_replaced_and_counted(trainers: Trainers, mode: str) -> None:
    import ray

    long = plan(mode, iterations=500, learning_rate=0.001, evaluate_every=250)
    victim = trainers.workers[1]
    killer = Timer(0.5, lambda: ray.kill(victim))
    killer.start()
    done = trainers.train(long, name=mode)
    killer.join()
    assert done.replaced == 1
    assert done.lost_seconds > 0
    assert last(done).iteration == 500
    if mode == "sync":
        assert np.array_equal(last(trainers.train(long, name=mode)).state, last(done).state)


@pytest.mark.ray
def test_a_dead_server_fails_the_run_and_names_the_last_checkpoint(start: Started) -> None:
    import ray

    trainers = start(workers=1)
    killer = Timer(2.0, lambda: ray.kill(trainers.servers[0]))
    killer.start()
    with pytest.raises(RunFailed, match=r"server died.*the last checkpoint is .*checkpoint-sync-1-\d+\.npz"):
        trainers.train(plan(workers=1, iterations=1_000_000, evaluate_every=1_000, checkpoint_every=20), name="sync")
    killer.join()
    trainers.servers.clear()
    newest = max(start.folder.glob("*.npz"), key=lambda path: path.stat().st_mtime)
    assert checkpoints.read(newest, length=len(trainers.initial), parameters=trainers.parameters).iteration > 0


# the whole experiment


@pytest.mark.ray
def test_all_arms_learn_and_two_nodes_give_the_weights_that_one_gives(
    context: Any, two_halves: Any, tmp_path: Path
) -> None:
    two_halves.folder = context.folder = tmp_path
    samples = list(parameter_server.run(SOME, two_halves))
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

    list(parameter_server.run(SOME, context))
    assert context.digests == two_halves.digests
    assert any("after 20 synchronous iterations of 2 workers" in name for name in context.digests)


def test_weights_that_diverged_are_a_fault_and_reasons_in_the_curve_of_the_loss() -> None:
    learner, held = Learner("convolution", 7), images.load("mnist-small-32", 7, "uint8")
    examiner = evaluation.Examiner(learner, held.test_x, held.test_y)
    states = [examiner.initial, np.full_like(examiner.initial, np.nan)]
    found = examiner.evaluate([Snapshot(10 * at, 1.0 + at, 1.0, state) for at, state in enumerate(states)])
    fault = examiner.fault(found)
    assert fault is not None
    assert fault.startswith("diverged: the loss on held-out images was ")
    samples = [*evaluation.curves(measured(), found), *evaluation.target_samples(measured(), found, 99.0, None)]
    losses = [sample for sample in samples if sample.metric == m.LOSS.name]
    assert [sample.is_not_finite for sample in losses] == [False, True]
    assert all(from_json(to_json(sample), Sample) == sample for sample in samples)


@pytest.mark.ray
def test_a_learning_rate_of_nothing_is_invalid_however_fast(context: Any, tmp_path: Path) -> None:
    context.folder = tmp_path
    list(parameter_server.run(replace(SOME, learning_rate=0.0, iterations=5, workers=1), context))
    assert any(reason.startswith("ray-sync: not converging") for reason in context.reasons)
