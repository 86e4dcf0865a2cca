"""The parameter server learns: the same weights by every way, faults that are got over, and what cannot be believed."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from builders import a_spec
from small_training import SMALL_TRAINING

from bench import params as parameters
from bench.context import Measured, NodeSlot
from bench.data import images
from bench.errors import BadInput, DataMissing, DoesNotFit, RunInvalid
from bench.experiments import load, parameter_server
from bench.experiments.parameter_server import Params, arms, evaluation, training
from bench.experiments.parameter_server import metrics as m
from bench.experiments.parameter_server.evaluation import Evaluated
from bench.experiments.parameter_server.learner import Learner
from bench.experiments.parameter_server.run import Study
from bench.experiments.parameter_server.snapshots import Mark, Snapshot, SnapshotFile, Snapshots
from bench.experiments.parameter_server.training import TrainingPass
from bench.model import Arm, Interval, Sample, Topology, from_json, to_json
from bench.planning import needs


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


def test_states_are_kept_on_a_disk_and_read_in_any_order() -> None:
    kept = SnapshotFile(3, 2)
    kept.add(Mark(10, 0.5, 0.4), np.array([1, 2, 3], np.float32))
    kept.add(Mark(20, 1.0, 0.8), np.array([4, 5, 6], np.float32))
    found = Snapshots(kept.marks, kept.state)
    assert found[-1].state.tolist() == [4, 5, 6]
    assert [(each.iteration, each.state.tolist()) for each in found] == [(10, [1, 2, 3]), (20, [4, 5, 6])]


def test_more_states_than_the_disk_has_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3 * 2**30))
    SnapshotFile(11_000_000, 40)
    with pytest.raises(RunInvalid, match=r"1000 states for evaluation take 41.0 GiB, and .* has 2.0 GiB"):
        SnapshotFile(11_000_000, 1_000)


@pytest.mark.parametrize("name", ["tiny", "lab", "full"])
def test_every_cell_of_a_profile_can_be_run(name: str) -> None:
    for grid in parameter_server.PROFILES[name].grids:
        for chosen in itertools.product(*grid.values()):
            params: dict[str, Any] = parameters.complete(Params, dict(zip(grid, chosen, strict=True)))
            cell = Params(**params)
            assert all(parameter_server.guess_pass_seconds(cell).values())


def test_evaluations_on_a_set_with_more_held_out_images_are_guessed_to_take_longer() -> None:
    many, few = (
        parameter_server.guess_after_seconds(Params(data=data, evaluate_every=10))["ray-sync"]
        for data in ("cifar10", "synthetic-32")
    )
    assert many == pytest.approx(5 * few)


def test_evaluations_are_guessed_of_the_arms_that_are_measured_alone() -> None:
    # 20 states, each seen by 1,000 held-out digits, 0.002 s a hundred; twice as many where the iterations are.
    params = parameters.complete(Params, {"data": "mnist-small-32", "iterations": 200, "evaluate_every": 10})
    rarely = params | {"evaluate_every": 200}
    once = 20 * images.HELD_OUT["mnist-small-32"] / 100 * 0.002

    def more(*measured: Arm) -> float:
        """By how many seconds a run is guessed to be longer that evaluates every state and not the last alone."""
        every, last = (
            needs.guess_seconds(
                a_spec(
                    experiment="parameter-server",
                    params=each,
                    samples=1,
                    warmups=0,
                    arms=[arm.name for arm in measured],
                )
            )
            for each in (params, rarely)
        )
        return every - last

    assert more(arms.SYNC) == pytest.approx(once * 19 / 20)
    assert more(arms.SYNC, arms.ASYNC, arms.ONE_WORKER) == pytest.approx(4 * once * 19 / 20)
    assert more(arms.SYNC, arms.UNWATCHED) == pytest.approx(more(arms.SYNC))
    assert more(*arms.ARMS) == pytest.approx(7 * once * 19 / 20)


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
    many = replace(SMALL_TRAINING, workers=20)
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
    study = Study(replace(SMALL_TRAINING, workers=2, transport="flat"), bare(nodes))
    # The first worker sits on worker-1, and the server on the head.
    assert [place.node.name for place in study.places] == ["worker-1", "head"]
    assert study.step_bytes(0) == pytest.approx(2 * 4 * 6_844, rel=0.05)
    assert study.step_bytes(1) == 0
    sharded = Study(replace(SMALL_TRAINING, workers=2, transport="sharded"), bare(nodes))
    assert sharded.step_bytes(0) == sharded.step_bytes(1) == pytest.approx(4 * 6_844, rel=0.05)


def test_every_block_draws_weights_of_its_own_and_both_topologies_of_a_block_the_same() -> None:
    nodes = [NodeSlot(name="head", node_id="head", cpus=2, threads=2)]
    contexts = [bare(nodes), bare(nodes), bare(nodes)]
    contexts[2].block = 2
    first, again, second = (Study(SMALL_TRAINING, context).seed for context in contexts)
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
        Study(SMALL_TRAINING, context)._start(images.load("mnist-small-32", 7, "uint8"), Learner("convolution", 7))
    assert closed == [True]


def last(done: TrainingPass) -> Snapshot:
    return done.snapshots()[-1]


# the whole experiment


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
