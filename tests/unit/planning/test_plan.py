"""What would run, in which order, with what."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import params as parameters
from bench.data import seeded
from bench.errors import BadInput, DataMissing, DoesNotFit
from bench.experiments import NAMES
from bench.machine.effective_cpus import EffectiveCpus, effective_cpus
from bench.model import Value
from bench.options import RunRequest
from bench.params import Parameter
from bench.planning import plan

ONE = {"batch": (10,), "inputs": (100,), "data_path": ("local",)}  # of the profile's grids, what makes them one
A_WISH = RunRequest(experiments=("inference",), cpus=2)


def test_noise_is_allowed_only_where_it_was_asked_for_and_the_session_says_so() -> None:
    assert not plan.make(A_WISH).allow_noise
    assert plan.make(replace(A_WISH, allow_noise=True)).allow_noise


def test_single_and_multi_have_equal_totals() -> None:
    single, multi = plan.topologies(RunRequest(experiments=(), cpus=4, nodes=2))
    assert single.totals == multi.totals
    assert (single.nodes, multi.nodes, multi.cpus_per_node) == (1, 2, 2)


@given(st.integers(2, 8), st.integers(1, 8))
def test_totals_are_equal_for_every_number_of_nodes(nodes: int, cpus_each: int) -> None:
    shape = RunRequest(
        experiments=(), cpus=nodes * cpus_each, nodes=nodes, memory_mib=840 * 8, object_store_mib=840 * 2
    )
    single, multi = plan.topologies(shape)
    assert single.totals == multi.totals


def test_three_nodes_share_what_can_be_shared_equally() -> None:
    single, multi = plan.topologies(RunRequest(experiments=(), cpus=3, nodes=3))
    assert single.totals == multi.totals
    assert multi.memory_bytes_per_node == 1365 * plan.MIB


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"cpus": 3}, DoesNotFit, "3 CPUs cannot be divided equally among 2 nodes"),
        ({"cpus": 0}, BadInput, "at least 1"),
        ({"cpus": 1}, DoesNotFit, "1 CPU cannot be divided equally"),
        ({"nodes": 1}, BadInput, "at least 2"),
        ({"memory_mib": 1}, BadInput, "at least 1 MiB for each node"),
        ({"object_store_mib": 2048}, BadInput, "over 40 %"),
        ({"blocks": 0}, BadInput, "at least 1"),
        ({"samples": 0}, BadInput, "1 to 10,000"),
        ({"samples": 10_001}, BadInput, "1 to 10,000"),
        ({"blocks": 10**9}, BadInput, "the limit is 50,000"),
        (
            {"sets": tuple(f"{name}={','.join(map(str, range(1, 301)))}" for name in ("batch", "in_flight"))},
            BadInput,
            "the limit is 50,000",
        ),
        ({"experiments": ("inferense",)}, BadInput, "Choose from: inference"),
        ({"experiments": ()}, BadInput, "No experiment"),
        ({"profile": "huge"}, BadInput, "Choose from: tiny"),
        ({"sets": ("actors=0",)}, BadInput, "actors must be an integer from 1 to 1000, got"),
        ({"sets": ("batch=1000", "inputs=10")}, BadInput, "does not fit"),
    ],
)
def test_bad_requests_are_refused_before_anything_starts(
    changes: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        plan.make(RunRequest(**{**vars(A_WISH), **changes}))  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_order_and_another_one_another() -> None:
    def order(seed: int) -> list[str]:
        return [spec.id for spec in plan.make(RunRequest(experiments=("inference",), cpus=2, seed=seed)).specs]

    assert order(7) == order(7)
    assert any(order(seed) != order(7) for seed in (8, 9, 10))


def test_every_block_runs_every_topology_and_cell_once() -> None:
    session = plan.make(A_WISH)
    cells = {spec.cell for spec in session.specs}
    counts = Counter((spec.block, spec.topology.name, spec.cell) for spec in session.specs)
    blocks = {spec.block for spec in session.specs}
    assert counts == {(b, t, c): 1 for b in blocks for t in ("single", "multi") for c in cells}
    assert len({spec.id for spec in session.specs}) == len(session.specs)


def test_of_every_two_blocks_the_second_turns_the_first_round() -> None:
    session = plan.make(A_WISH)
    first = {b: next(s.topology.name for s in session.specs if s.block == b) for b in range(1, 7)}
    assert all(first[b] != first[b + 1] for b in (1, 3, 5))


def test_both_topologies_of_a_block_run_the_cells_in_the_same_order() -> None:
    session = plan.make(A_WISH)
    for block in range(1, 7):
        single, multi = (
            [spec.cell for spec in session.specs if spec.block == block and spec.topology.name == name]
            for name in ("single", "multi")
        )
        assert single == multi


def test_what_wants_the_same_settings_of_ray_stays_together_and_takes_one_cluster() -> None:
    sets = ("chunk_bytes=1048576,5242880", "largest=65536,131072,262144")
    session = plan.make(replace(A_WISH, experiments=("network",), sets=sets))
    for block in {spec.block for spec in session.specs}:
        settings = [str(s.ray_settings) for s in session.specs if (s.block, s.topology.name) == (block, "multi")]
        assert len(settings) == 6
        assert sum(a != b for a, b in itertools.pairwise(settings)) == 1


def test_a_linear_drift_cancels_over_two_blocks() -> None:
    session = plan.make(RunRequest(experiments=("inference",), cpus=2, blocks=6))
    position = {spec.id: number for number, spec in enumerate(session.specs)}
    means = {
        name: sum(position[s.id] for s in session.specs if s.topology.name == name) / len(session.specs)
        for name in ("single", "multi")
    }
    assert means["single"] == means["multi"]


def test_set_takes_the_place_of_the_profiles_values() -> None:
    cells = plan.cells("inference", "tiny", {"batch": (10, 20), "data_path": ("by-value",), "inputs": (100,)})
    assert {cell["batch"] for cell in cells} == {10, 20}
    assert len(cells) == len({tuple(cell.items()) for cell in cells})


def test_samples_are_the_profiles_or_those_asked_for_and_the_deadline_leaves_time_for_them() -> None:
    of_profile = plan.profile("tiny", "inference")
    usual, more, fewer = (plan.make(replace(A_WISH, samples=samples)).specs[0] for samples in (None, 20, 1))
    assert (usual.samples, usual.deadline_seconds) == (of_profile.samples, of_profile.deadline_seconds)
    assert (more.samples, more.deadline_seconds) == (20, of_profile.deadline_seconds * 20 / of_profile.samples)
    assert (fewer.samples, fewer.deadline_seconds) == (1, of_profile.deadline_seconds)


def test_a_longer_plan_is_estimated_longer_and_what_is_known_counts() -> None:
    short = plan.make(RunRequest(experiments=("inference",), cpus=2, blocks=1))
    long = plan.make(RunRequest(experiments=("inference",), cpus=2, blocks=2))
    assert plan.estimate_seconds(long) == pytest.approx(2 * plan.estimate_seconds(short))
    known = plan.Known(runs={plan.time_key(spec): 1000.0 for spec in short.specs})
    assert plan.estimate_seconds(short, known) > 1000 * len(short.specs)


@pytest.mark.parametrize("name", ["tiny", "lab", "full"])
def test_no_run_of_a_profile_is_expected_to_pass_its_deadline(name: str) -> None:
    session = plan.make(RunRequest(experiments=("inference",), cpus=2, profile=name, blocks=1))
    assert all(2 * spec.guessed_seconds < spec.deadline_seconds for spec in session.specs)


def test_more_work_is_guessed_to_take_longer() -> None:
    def guess(inputs: int) -> float:
        shape = RunRequest(experiments=("inference",), cpus=2, blocks=1, sets=("batch=1", f"inputs={inputs}"))
        return plan.estimate_seconds(plan.make(shape))

    assert guess(1_000_000) > 50 * guess(100)


@pytest.mark.parametrize(
    ("seconds", "words"), [(3.4, "3 s"), (89, "89 s"), (91, "2 min"), (3700, "1 h 02 min"), (400_000, "5 days")]
)
def test_durations_read_like_speech(seconds: float, words: str) -> None:
    assert plan.format_duration(seconds) == words


def test_cpus_default_to_what_this_process_may_use() -> None:
    single = plan.topologies(RunRequest(experiments=(), topology="single"))[0]
    assert single.cpus_per_node == effective_cpus().whole


def test_a_quota_counts_and_is_named_where_it_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    quota = EffectiveCpus(allowed=tuple(range(8)), quota=1.5)
    monkeypatch.setattr(plan, "effective_cpus", lambda: quota)
    assert plan.topologies(RunRequest(experiments=(), topology="single"))[0].cpus_per_node == 1
    with pytest.raises(DoesNotFit, match=r"1.5 \(affinity 8, CPU quota 1.5\), cannot be divided equally among 2 nodes"):
        plan.topologies(RunRequest(experiments=()))


def test_single_is_given_the_cpus_that_the_nodes_of_multi_have() -> None:
    assert [each.shares for each in plan.topologies(RunRequest(experiments=(), cpus=4))] == [2, 0]
    assert [each.shares for each in plan.topologies(RunRequest(experiments=(), cpus=3, topology="single"))] == [0]


@pytest.mark.parametrize(
    ("of", "chosen", "cells", "left_out"),
    [
        ("inference", {**ONE, "open_loop": ("off",), "open_loop_seconds": (1.0, 2.0)}, 1, "open_loop_seconds"),
        (
            "inference",
            {**ONE, "open_loop": ("off", "poisson"), "open_loop_seconds": (1.0, 2.0)},
            3,
            "open_loop_seconds",
        ),
        ("core-rates", {"open_loop": ("off",), "open_loop_seconds": (1.0, 2.0)}, 1, "open_loop_seconds"),
        ("parameter-server", {"transport": ("inline", "sharded"), "shards": (1, 2)}, 3, "shards"),
        ("clustering", {"job": ("kmeans", "spin"), "kernel": ("lloyd", "gemm")}, 3, "kernel"),
        ("clustering", {"job": ("kmeans", "spin"), "job_ms": (1.0, 2.0)}, 3, "job_ms"),
        ("clustering", {"jobs_per_part": (1,), "part_mib": (1, 2)}, 1, "part_mib"),
        ("clustering", {"jobs_per_part": (0,), "part_mib": (1, 2)}, 2, ""),
        ("tune", {"scheduler": ("asha", "fifo"), "report_seconds": (0.5, 1.0)}, 3, "report_seconds"),
        ("tune", {"threads": (0, 1, 2)}, 2, "threads"),
        ("parameter-server", {"crowded": (False, True)}, 1, "crowded"),
        ("parameter-server", {"target_accuracy": (0.0, 40.0, 50.0)}, 2, "target_accuracy"),
        ("network", {"smallest": (64,), "largest": (64,), "growth": (2, 4)}, 1, "growth"),
        ("granularity", {"shortest": (0.1,), "longest": (0.1,), "growth": (2.0, 4.0)}, 1, "growth"),
    ],
)
def test_cells_that_differ_in_nothing_that_has_an_effect_are_one_and_it_is_said(
    of: str, chosen: dict[str, tuple[Value, ...]], cells: int, left_out: str
) -> None:
    assert len(plan.cells(of, "tiny", chosen)) == cells
    said = list(plan.left_out(RunRequest(experiments=(of,), levels={of: chosen})))
    asked = math.prod(map(len, chosen.values()))
    assert len(said) == (asked > cells)
    assert all(f"{asked - cells} cell" in each and f"in {left_out} alone" in each for each in said)


def test_no_profile_has_cells_that_differ_in_nothing() -> None:
    for of in NAMES:
        for name in plan.experiment(of).profiles:
            assert list(plan.left_out(RunRequest(experiments=(of,), profile=name))) == [], f"{of} {name}"


@pytest.mark.parametrize(
    ("of", "chosen", "cells"),
    [
        ("parameter-server", {"model": ("convolution",)}, 6),  # and not again with the other setting of ResNet-18
        ("parameter-server", {"model": ("lenet",)}, 12),  # which the profile has not: in place of each model
        ("inference", {"inputs": (100_000,)}, 10),
        ("inference", {"data_path": ("local",)}, 9),
        ("inference", {"data_path": ("by-value",)}, 9),
        ("clustering", {"job": ("kmeans",)}, 4),  # no part of it is a job that spins in the profile
    ],
)
def test_a_lab_narrowed_to_a_value_that_some_of_its_cells_have_is_those_cells(
    of: str, chosen: dict[str, tuple[Value, ...]], cells: int
) -> None:
    found = plan.cells(of, "lab", chosen)
    assert len(found) == cells
    assert all(cell[name] in values for cell in found for name, values in chosen.items())


@pytest.mark.parametrize(
    ("of", "name", "chosen", "left_out"),
    [
        (
            "parameter-server",
            "lab",
            {"evaluate_every": (10,)},  # which is also the default
            [
                (
                    "parameter-server: 6 cells of the profile lab with model=resnet18 are left out: evaluate_every=10 was"
                    " chosen, and it is 1000 there."
                )
            ],
        ),
        (
            "parameter-server",
            "lab",
            {"evaluate_every": (10,), "workers": (2, 20)},
            [
                (
                    "parameter-server: 2 cells of the profile lab with model=resnet18 are left out: evaluate_every=10 was"
                    " chosen, and it is 1000 there."
                )
            ],
        ),
        ("parameter-server", "lab", {"evaluate_every": (20,)}, []),  # which no cell has: all are measured with it
        ("parameter-server", "lab", {"evaluate_every": (10,), "model": ("resnet18",)}, []),
    ],
)
def test_cells_that_a_chosen_value_leaves_out_of_a_profile_are_named(
    of: str, name: str, chosen: dict[str, tuple[Value, ...]], left_out: list[str]
) -> None:
    found = list(plan.left_out(RunRequest(experiments=(of,), profile=name, levels={of: chosen})))
    assert [each for each in found if "was chosen" in each] == left_out


def values_of(parameter: Parameter) -> tuple[Value, ...]:
    """Two or more that a parameter may have."""
    if parameter.choices:
        return parameter.choices
    if parameter.type is bool:
        return False, True
    if parameter.type is str:
        return (parameter.default,)
    least, default = parameter.minimum or 0, parameter.default
    return tuple(dict.fromkeys((parameter.type(least), default, parameter.type(2 * float(default) or least + 1))))


@pytest.mark.parametrize("of", NAMES)
def test_however_a_profile_is_narrowed_no_two_cells_are_the_same_work(of: str) -> None:
    subject, narrowed = plan.experiment(of), 0
    for name in subject.profiles:
        for parameter in parameters.declared(subject.params).values():
            for chosen in ((value,) for value in values_of(parameter)):
                try:
                    cells = plan.cells(of, name, {parameter.name: chosen})
                except BadInput:
                    continue  # which does not go together with the rest of the profile
                narrowed += 1
                work = [
                    {
                        key: value
                        for key, value in cell.items()
                        if key not in subject.without_effect(subject.params(**cell))
                    }
                    for cell in cells
                ]
                assert all(one != other for one, other in itertools.combinations(work, 2)), f"{name} {parameter.name}"
    assert narrowed > len(subject.profiles)


@pytest.mark.parametrize("of", [name for name in NAMES if name != "parameter-server"])
def test_the_lab_of_every_experiment_can_be_planned_with_the_defaults_on_two_cpus(of: str) -> None:
    session = plan.make(RunRequest(experiments=(of,), profile="lab", cpus=2))
    assert {spec.experiment for spec in session.specs} == {of}
    assert all("\n" not in refused for refused in session.unfit)


def test_a_data_set_that_is_chosen_and_not_here_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path))
    with pytest.raises(DataMissing, match=r"^[^\n]*bench data seed cifar10[^\n]*$"):
        plan.make(RunRequest(experiments=("parameter-server",), profile="lab", sets=("data=cifar10",), cpus=2))


def test_what_will_be_refused_is_listed_with_its_reason_and_is_no_part_of_the_estimate() -> None:
    session = plan.make(replace(PARAMETER_SERVER, profile="lab"))
    first, *refused = plan.refusals(session)
    assert first == f"Refused ({len(session.unfit)}), not run and not part of the estimate"
    assert refused[0].startswith("  cell parameter-server c03: parameter-server with workers=5 needs as many CPUs")
    assert plan.estimate_seconds(session) == plan.estimate_seconds(replace(session, unfit=()))
    assert plan.refusals(replace(session, unfit=(), dropped=("block 6",))) == [
        "Refused (1), not run and not part of the estimate",
        "  block 6: the budget is too small",
    ]
    assert plan.refusals(plan.make(A_WISH)) == []


PARAMETER_SERVER = RunRequest(
    experiments=("parameter-server",), cpus=2, memory_mib=8192, blocks=1, sets=("data=synthetic-32",)
)


@pytest.mark.parametrize(
    ("sets", "profile"), [(("workers=8",), "tiny"), (("workers=1,8",), "tiny"), (("workers=8",), "lab")]
)
def test_a_cell_that_was_chosen_and_does_not_fit_is_refused(sets: tuple[str, ...], profile: str) -> None:
    with pytest.raises(DoesNotFit, match="workers=8 needs as many CPUs, and single has 2"):
        plan.make(replace(PARAMETER_SERVER, sets=(*PARAMETER_SERVER.sets, *sets), profile=profile))


def test_cells_of_a_profile_that_are_too_large_are_left_out_and_named() -> None:
    session = plan.make(replace(PARAMETER_SERVER, profile="lab"))
    assert {spec.params["workers"] for spec in session.specs} == {1, 2}
    left_out = [cell for cell in session.unfit if "needs as many CPUs, and single has 2" in cell]
    assert len(left_out) >= 4
    assert left_out[0].startswith("cell parameter-server c03: parameter-server with workers=5")
    assert not plan.make(replace(PARAMETER_SERVER, profile="tiny")).unfit


def test_arms_that_are_left_out_are_in_no_spec_and_not_in_the_session() -> None:
    request = RunRequest(experiments=("inference", "clustering"), cpus=2, blocks=1, only_arms="pool, empty-calls")
    session = plan.make(request)
    found = {spec.experiment: spec.arms for spec in session.specs}
    assert found == {"inference": ("ray", "empty-calls", "pool"), "clustering": ("ray", "pool")}
    assert {name: tuple(arm.name for arm in arms) for name, arms in session.arms.items()} == found


def test_a_profile_names_its_arms_and_arms_that_are_asked_for_take_their_place() -> None:
    request = RunRequest(experiments=("inference",), cpus=2, blocks=1)
    assert {spec.arms for spec in plan.make(request).specs} == {("ray", "empty-calls", "numpy-all-cpus")}
    asked = plan.make(replace(request, only_arms="bare-calls"))
    assert {spec.arms for spec in asked.specs} == {("ray", "bare-calls")}


def test_an_arm_that_the_subject_is_measured_against_is_never_left_out() -> None:
    session = plan.make(RunRequest(experiments=("granularity",), cpus=2, blocks=1, only_arms="ray-tasks"))
    assert {spec.arms for spec in session.specs} == {("ray-tasks", "serial")}


def test_an_unknown_arm_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(BadInput, match="--arms: tune has no arm pol") as refused:
        plan.make(RunRequest(experiments=("tune",), cpus=2, blocks=1, only_arms="pol"))
    assert "pool" in refused.value.hint
    assert "empty-trials, sequential, pool" in refused.value.hint


def test_checks_that_need_an_arm_which_is_left_out_are_named_with_it() -> None:
    request = RunRequest(experiments=("parameter-server", "network"), cpus=2, blocks=1)
    assert plan.make(request).unchecked == ()
    assert plan.make(replace(request, only_arms="ray-async,ray-call")).unchecked == (
        (
            "parameter-server: that ray-sync and ddp-gloo have the same weights after one iteration (needs ddp-gloo);"
            " that ray-async took no fewer samples to the target than torch-one-thread (needs torch-one-thread);"
            " that ray-sync took no fewer samples to the target than ddp-gloo (needs ddp-gloo)"
        ),
        (
            "network: that no transport of Ray is faster between nodes than the socket it goes through"
            " (needs tcp or tcp-discard or iperf3 or gloo-send-recv)"
        ),
    )
    assert plan.make(replace(request, only_arms="ddp-gloo,tcp")).unchecked == ()


def test_checks_that_cannot_be_made_anyway_are_not_missed() -> None:
    alone = RunRequest(experiments=("network",), topology="single", cpus=2, blocks=1, only_arms="ray-call")
    assert plan.make(alone).unchecked == ()  # inside a node there is no socket
    request = RunRequest(experiments=("parameter-server",), cpus=2, blocks=1, only_arms="ray-async")
    (found,) = plan.make(replace(request, sets=("transport=compressed",))).unchecked
    assert "the same weights" not in found


def test_fewer_arms_take_less_time_and_are_known_by_other_times() -> None:
    request = RunRequest(experiments=("tune",), cpus=2, blocks=1)
    every, alone = plan.make(request), plan.make(replace(request, only_arms="ray"))
    assert plan.estimate_seconds(alone) < plan.estimate_seconds(every)
    assert plan.run_key(alone.specs[0]) != plan.run_key(every.specs[0])


def test_a_scale_shrinks_sizes_alone_and_the_session_names_them() -> None:
    request = RunRequest(experiments=("inference",), profile="lab", cpus=2, blocks=1)
    whole, small = plan.make(request), plan.make(replace(request, scale=0.02))
    for one, other in zip(whole.specs, small.specs, strict=True):
        assert {**one.params, "inputs": one.params["inputs"] // 50} == other.params
    assert (small.scale, small.scaled) == (
        0.02,
        ("inference inputs 2,000 instead of 100,000, 20,000 instead of 1,000,000",),
    )


def test_a_size_that_is_set_is_not_shrunk_and_none_goes_below_its_bound() -> None:
    request = RunRequest(experiments=("tune",), cpus=2, blocks=1, scale=0.0001)
    assert {spec.params["iteration_samples"] for spec in plan.make(request).specs} == {128}
    with pytest.raises(BadInput, match="iteration_samples of tune is set already"):
        plan.make(replace(request, sets=("iteration_samples=6000",)))


def test_a_scale_is_refused_where_nothing_is_a_size() -> None:
    with pytest.raises(BadInput, match="--scale: network has no parameter that is a size"):
        plan.make(RunRequest(experiments=("network",), cpus=2, blocks=1, scale=0.5))


def test_a_missing_set_of_a_profile_has_a_stand_in_which_is_said_once_and_a_chosen_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(seeded.FOLDER_VARIABLE, str(tmp_path))
    request = RunRequest(experiments=("tune",), profile="study", topology="single", cpus=2)
    session = plan.make(request)
    assert {spec.params["data"] for spec in session.specs} == {"mnist-small"}
    (said,) = session.stand_ins
    assert said == "tune uses mnist-small, as the set mnist is not here; `bench data seed mnist PATH` adds it"
    with pytest.raises(DataMissing):
        plan.make(replace(request, sets=("data=mnist",)))


def test_a_set_that_the_profile_itself_names_stands_in_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(seeded.FOLDER_VARIABLE, str(tmp_path))
    for name in ("tune", "parameter-server"):
        assert plan.make(RunRequest(experiments=(name,), profile="tiny", cpus=2)).stand_ins == ()
    request = RunRequest(experiments=("tune",), profile="study", topology="single", cpus=2, sets=("data=mnist-small",))
    assert plan.make(request).stand_ins == ()


def test_a_run_has_four_times_as_long_as_is_guessed() -> None:
    for name in ("inference", "tune", "parameter-server", "clustering"):
        for spec in plan.make(RunRequest(experiments=(name,), profile="study", cpus=40, memory_mib=200_000)).specs:
            assert spec.deadline_seconds >= 4 * spec.guessed_seconds


@pytest.mark.parametrize("name", ["inference", "tune", "parameter-server", "clustering"])
def test_each_cell_of_a_study_is_in_its_profile_at_every_scale(name: str) -> None:
    for scale in (1.0, 0.01):
        request = RunRequest(experiments=(name,), profile="study", cpus=40, memory_mib=200_000, scale=scale)
        session = plan.make(request)
        rows = [row for table in session.studies[name].tables for row in table.rows]
        for row in rows:
            assert any(row.matches(spec.params) for spec in session.specs), row.what
        for spec in session.specs:
            assert any(row.matches(spec.params) for row in rows), spec.params


def test_a_session_without_a_cell_of_the_study_has_none() -> None:
    assert plan.make(A_WISH).studies == {}


def test_each_run_knows_its_cell_by_the_parameters_that_differ() -> None:
    one = replace(A_WISH, levels={"inference": ONE})
    assert {spec.cell_title for spec in plan.make(one).specs} == {"the only cell"}
    two = plan.make(replace(A_WISH, levels={"inference": {**ONE, "batch": (10, 20)}}))
    assert {(spec.params["batch"], spec.cell_title) for spec in two.specs} == {(10, "batch=10"), (20, "batch=20")}
