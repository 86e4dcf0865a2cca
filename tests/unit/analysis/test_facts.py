from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import MULTI, a_facts, made_up

from bench.analysis.facts import differences, measured_totals, planned_totals


def with_multi(runs, **changes):
    return [replace(r, facts=a_facts(MULTI, **changes)) if r.spec.topology.name == "multi" else r for r in runs]


def with_block_2(runs, **changes):
    return [replace(r, facts=a_facts(r.spec.topology, **changes)) if r.spec.block == 2 else r for r in runs]


DIFFERENCES = [
    ({"versions": {"ray": "2.59.0", "python": "3.11.7", "numpy": "2.4.6"}}, "version of ray"),
    ({"code_hash": "changed"}, "code"),
    ({"image_digest": "sha256:1"}, "image"),
    ({"kernel": "6.19"}, "kernel"),
    ({"cpu_model": "Xeon"}, "CPU model"),
    ({"machine": "aarch64"}, "machine type"),
    ({"ray_environment": {"RAY_AUTH_MODE": "disabled"}}, "RAY_AUTH_MODE"),
    ({"link": "veth at 1gbit"}, "link"),
    ({"settings": {"clock source": "hpet"}}, "clock source"),
]


@pytest.mark.parametrize(("changes", "what"), DIFFERENCES)
def test_what_differs_between_topologies_confounds_and_is_named(changes, what):
    _, runs = made_up(cells=1, blocks=2)
    found = list(differences(with_multi(runs, **changes)))
    assert [(each.what, each.confounds) for each in found] == [(what, True)]
    assert "between the topologies" in found[0].text


@pytest.mark.parametrize(("changes", "what"), DIFFERENCES)
def test_what_differs_between_blocks_does_not_confound_the_pairs(changes, what):
    _, runs = made_up(cells=1, blocks=2)
    found = list(differences(with_block_2(runs, **changes)))
    assert [(each.what, each.confounds) for each in found] == [(what, False)]
    assert "between the blocks" in found[0].text


def test_what_must_differ_is_no_difference():
    _, runs = made_up(cells=2, blocks=2)
    assert not list(differences(with_multi(runs, ray_environment={"RAY_AUTH_MODE": "token", "RAY_NODE_ID": "7"})))
    assert not list(measured_totals(runs))


def test_other_data_are_another_question():
    _, runs = made_up(cells=1, blocks=1)
    other = replace(runs[0], facts=replace(runs[0].facts, data={"digits": "beef"}))
    assert [each.what for each in differences([other, runs[1]])] == ["checksum of digits"]


def test_each_experiment_has_data_of_its_own():
    _, runs = made_up(cells=1, blocks=1)
    other = [
        replace(
            r, spec=replace(r.spec, experiment="tune", id=f"{r.spec.id}-t"), facts=replace(r.facts, data={"m": "1"})
        )
        for r in runs
    ]
    assert not list(differences([*runs, *other]))


def test_ray_settings_that_differ_are_said_without_refusing():
    _, runs = made_up(cells=1, blocks=1)
    changed = [
        replace(r, facts=replace(r.facts, ray_config={"object_timeout_milliseconds": r.spec.topology.nodes}))
        for r in runs
    ]
    assert [each.confounds for each in differences(changed)] == [False]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"cpus_granted": 2}, "granted CPUs"),
        ({"threads": {"OMP_NUM_THREADS": "2"}}, "OMP_NUM_THREADS threads"),
        ({"threads": {"OMP_NUM_THREADS": "unset"}}, "OMP_NUM_THREADS"),
        ({"memory_limit_bytes": 2**30}, "memory"),
        ({"object_store_bytes": 2**28}, "object store"),
    ],
)
def test_more_on_one_side_is_named(changes, what):
    _, runs = made_up(cells=1, blocks=1)
    assert what in [each.what for each in measured_totals(with_multi(runs, **changes))]


def test_rounding_of_a_divided_memory_is_no_difference():
    _, runs = made_up(cells=1, blocks=1)
    assert not list(measured_totals(with_multi(runs, memory_limit_bytes=2 * 2**30 - 4096)))


def test_a_plan_with_unequal_totals_is_named():
    bigger = replace(MULTI, cpus_per_node=2)
    assert [each.text for each in planned_totals([replace(MULTI, name="single"), bigger])] == [
        "unequal totals of CPUs: single has 2, multi has 4"
    ]


def test_what_differs_between_cells_alone_is_what_is_varied():
    _, runs = made_up(cells=2, blocks=2)
    chunk = {"RAY_object_manager_default_chunk_size": "1048576"}
    second = [
        replace(r, facts=a_facts(r.spec.topology, ray_environment=chunk)) if r.spec.cell == "c02" else r for r in runs
    ]
    assert {run.spec.cell for run in runs} == {"c01", "c02"}
    assert not [each for each in differences(second) if "chunk_size" in each.what]
