"""A run that passed its deadline says who waited for CPUs, and who held them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes import TOKEN, FakeHead, serving

from bench.runner.jobs_api import JobsApi
from bench.runner.pending_tasks import LISTS, describe

THERE = "the cluster has 3 CPUs, at most 2 on a node, held by"
NOBODY = "f" * 36  # as Ray writes the group of what is in none


def a_node(cpus: float, state: str = "ALIVE") -> dict[str, Any]:
    return {"state": state, "resources_total": {"CPU": cpus, "memory": 1e9}}


def a_group(state: str, *cpus: float) -> dict[str, Any]:
    return {"state": state, "bundles": [{"unit_resources": {"CPU": each}} for each in cpus]}


def an_actor(state: str, cpus: float, group: str = NOBODY) -> dict[str, Any]:
    needs = {"CPU": cpus} if cpus else {}
    return {"state": state, "class_name": "Crew", "required_resources": needs, "placement_group_id": group}


def a_task(state: str, cpus: float, kind: str = "NORMAL_TASK") -> dict[str, Any]:
    needs = {"CPU": cpus}
    return {"state": state, "name": "look", "type": kind, "required_resources": needs, "placement_group_id": None}


def lists(**rows: Any) -> Mapping[str, Any]:
    return {name: [] for name in LISTS} | {"nodes": [a_node(2), a_node(1), a_node(8, "DEAD")]} | rows


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({}, ""),
        ({"actors": [an_actor("ALIVE", 1)]}, ""),  # it is slow, and waits for nothing
        ({"actors": [an_actor("PENDING_CREATION", 0)]}, ""),
        (
            {"placement_groups": [a_group("PENDING", 2, 2)]},
            f"1 x placement group of 4 CPUs waited; {THERE} nothing",
        ),
        (
            {
                "placement_groups": [a_group("PENDING", 1), a_group("PENDING", 1), a_group("CREATED", 2)],
                "actors": [an_actor("ALIVE", 2, group="a1b2"), an_actor("ALIVE", 1), an_actor("DEAD", 1)],
            },
            f"2 x placement group of 1 CPU waited; {THERE} 1 x placement group of 2 CPUs, 1 x actor Crew of 1 CPU",
        ),
        (
            {"tasks": [a_task("PENDING_NODE_ASSIGNMENT", 4), a_task("RUNNING", 1), a_task("RUNNING", 9, "ACTOR_TASK")]},
            f"1 x task look of 4 CPUs waited; {THERE} 1 x task look of 1 CPU",
        ),
    ],
)
def test_who_waits_and_who_holds_what_is_there_is_named(rows: dict[str, Any], words: str) -> None:
    assert describe(lists(**rows)) == words


def test_a_cluster_of_one_cpu_has_it_in_the_singular() -> None:
    one = lists(nodes=[a_node(1)], actors=[an_actor("PENDING_CREATION", 1)])
    assert (
        describe(one) == "1 x actor Crew of 1 CPU waited; the cluster has 1 CPU, at most 1 on a node, held by nothing"
    )


def test_a_head_that_has_no_such_lists_gives_no_words_and_no_failure(tmp_path: Path) -> None:
    with serving(FakeHead(tmp_path)) as address:
        assert JobsApi(address, TOKEN).waiting() == ""
    assert JobsApi("http://127.0.0.1:9", TOKEN).waiting() == ""
