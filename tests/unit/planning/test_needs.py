"""What a run needs is asked for before anything starts, and with the command to type."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import a_spec
from fakes import FakeHead, Heard, a_fake_target, run_all
from made_sets import a_seeded_mnist

from bench.errors import BadInput, DataMissing, DoesNotFit
from bench.experiments import ALL_NAMES, load
from bench.model import Spec
from bench.options import RunRequest
from bench.planning import needs, plan
from bench.record import store
from bench.runner.session import remaining


def a_shape(*sets: str, topology: str = "both") -> RunRequest:
    return RunRequest(experiments=("tune",), sets=sets, topology=topology, cpus=2, blocks=1)


def test_a_run_of_a_set_that_is_not_seeded_is_not_even_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path / "none"))
    with pytest.raises(DataMissing, match="Type: bench data seed mnist PATH"):
        plan.make(a_shape("data=mnist"))
    assert plan.make(a_shape("data=synthetic")).specs


def test_a_trial_that_is_larger_than_a_node_is_refused_with_the_numbers() -> None:
    with pytest.raises(DoesNotFit, match="needs 2 CPUs on one node, and a node of multi has 1"):
        plan.make(a_shape("cpus_per_trial=2"))
    assert plan.make(a_shape("cpus_per_trial=2", topology="single")).specs


def test_all_that_runs_must_know_of_their_experiment_is_planned_into_their_specs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_seeded_mnist(tmp_path, monkeypatch)
    (spec,) = plan.make(a_shape("data=mnist", "threads=3", topology="single")).specs
    assert (spec.data_sets, spec.busy_workers, spec.guessed_seconds > 7) == (("mnist",), 6, True)
    assert (spec.ray_settings, spec.faults, spec.breaks_cluster) == ({}, "", False)
    shape = RunRequest(experiments=("network",), sets=("chunk_bytes=1048576",), cpus=2, blocks=1)
    settings = [spec.ray_settings for spec in plan.make(shape).specs]
    assert settings == [{"object_manager_default_chunk_size": "1048576"}] * len(settings)
    shape = RunRequest(
        experiments=("clustering",), sets=("chaos=raylet:1,worker:2",), topology="multi", cpus=2, blocks=1
    )
    planned = {(spec.faults, spec.breaks_cluster) for spec in plan.make(shape).specs}
    assert planned == {("raylet:1", True), ("worker:2", False)}
    assert {spec.busy_workers for spec in plan.make(replace(shape, experiments=("core-rates",), sets=())).specs} == {
        None
    }


def test_a_seeded_set_is_on_the_head_before_its_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_seeded_mnist(tmp_path, monkeypatch)
    session = plan.make(a_shape("data=mnist", topology="single"))
    folder = store.create(tmp_path / "out", session)
    records = tmp_path / "records"
    records.mkdir()
    head = FakeHead(records)
    with a_fake_target(head, session.specs[0].topology) as target:
        run_all(folder, session, remaining(folder, session).todo, target)
    assert (records / "data" / path.name).read_bytes() == path.read_bytes()
    assert head.accepted
    path.unlink()
    again = replace(session.specs[0], attempt=2)
    with a_fake_target(head, again.topology) as target:
        heard = Heard()
        run_all(folder, session, (again,), target, listener=heard)
    assert heard.ended == [(again.folder, "failed")]
    assert "bench data seed mnist PATH" in store.load_run(folder, again).reasons[0]


@pytest.mark.parametrize("of", ["clustering", "clustering-kernels"])
def test_a_file_of_the_users_own_is_read_before_anything_starts_where_the_driver_runs_here(
    of: str, tmp_path: Path
) -> None:
    vectors = np.zeros((110, 4), dtype=np.float32)
    vectors[71, 2] = np.nan
    np.save(tmp_path / "mine.npy", vectors)
    sets = [f"input={tmp_path}/mine.npy", "points=22", "dimensions=4", "clusters=3", "jobs=5"]
    shape = RunRequest(
        experiments=(of,),
        cpus=2,
        sets=(*sets, *(["source=local"] if of == "clustering" else [])),
        target="local",
    )
    with pytest.raises(BadInput, match=r"vector 71 \(the first is 0\) has a value that is no finite float32"):
        plan.make(shape)
    with pytest.raises(DataMissing, match="cannot be read on the node of the driver"):
        plan.make(replace(shape, sets=(f"input={tmp_path}/other.npy", *shape.sets[1:])))
    assert plan.make(replace(shape, target="docker")).specs  # its nodes have files of their own


def a_guessed_spec(**changes: object) -> Spec:
    return a_spec(
        **{"experiment": "granularity", "params": {}, "warmups": 0, "samples": 1, "sample_seconds": 0.01} | changes
    )


def test_every_pass_is_counted_once_in_each_turn_and_what_is_around_it_once_in_all() -> None:
    experiment = load("granularity")
    passes = [seconds for each in experiment.guess_pass_seconds(experiment.params()).values() for seconds in each]
    turn = sum(passes) + len(passes) * needs.INTERVAL_SECONDS
    around = needs.JOB_SECONDS + experiment.guess_other_seconds(experiment.params())
    assert needs.guess_seconds(a_guessed_spec()) == pytest.approx(around + turn)
    assert needs.guess_seconds(a_guessed_spec(samples=2, warmups=1)) == pytest.approx(around + 3 * turn)


def test_a_pass_that_is_too_short_is_repeated_until_its_sample_is_long_enough_from_the_second_turn_on() -> None:
    first, both = (
        needs.guess_seconds(a_guessed_spec(samples=n, sample_seconds=10.0, params={"longest": 0.1})) for n in (1, 2)
    )
    points = len(load("granularity").params(longest=0.1).points) * 2
    assert 1.0 < (both - first) / (points * 10.0) < 1.5


@pytest.mark.parametrize("name", ALL_NAMES)
def test_the_guess_of_an_experiment_is_of_its_arms_and_of_its_subject_at_least(name: str) -> None:
    experiment = load(name)
    passes = experiment.guess_pass_seconds(experiment.params())
    assert experiment.arms[0].name in passes
    assert passes.keys() <= {arm.name for arm in experiment.arms}
    assert all(seconds >= 0 for each in passes.values() for seconds in each)


def test_arms_that_will_not_be_measured_take_no_time() -> None:
    few, every = (
        plan.make(RunRequest(experiments=("inference",), cpus=2, blocks=1, only_arms=arms)).specs[0].guessed_seconds
        for arms in ("ray", "pool,numpy-one-by-one")
    )
    assert few < every
    kernels = load("clustering-kernels")
    assert "broadcast" in kernels.guess_pass_seconds(kernels.params())
    assert "broadcast" not in kernels.guess_pass_seconds(kernels.params(clusters=1024, dimensions=128))


@pytest.mark.parametrize("name", ALL_NAMES)
def test_texts_of_profiles_give_no_times_which_the_plan_does(name: str) -> None:
    texts = [profile.help for profile in load(name).profiles.values()]
    assert [text for text in texts if re.search(r"\b(minute|hour|day|week)s?\b", text, re.IGNORECASE)] == []
