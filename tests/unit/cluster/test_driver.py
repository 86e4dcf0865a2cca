"""The driver refuses a cluster that is not what the Spec asks for, and says why."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import a_spec, a_topology

from bench.cluster import work_checks
from bench.cluster.driver import (
    Unfit,
    check_clocks,
    check_code,
    check_node,
    check_resources,
    check_versions,
    planned_faults,
    refuse_large_functions,
)
from bench.experiments import load
from bench.identity import CALLERS_CODE, code_hash
from bench.model import NodeFacts, RunResult, from_json, to_json

MULTI = a_spec(topology=a_topology("multi", nodes=2))
HAS = {"CPU": 1.0, "memory": 2.0 * 2**30, "object_store_memory": 2.0**29}


def a_node(**changes: object) -> NodeFacts:
    facts = NodeFacts(
        node="head", boot_id="b", kernel="6.1", cpu_model="c", machine="x86_64", cpus_granted=1, cpus_allowed=1,
        cpu_quota=1.0, cpus_effective=1.0, memory_limit_bytes=None, object_store_bytes=2**29, shared_memory_bytes=2**30,
        threads={"OMP_NUM_THREADS": "1"}, versions={}, code_hash="h", image_digest=None, ray_environment={},
    )  # fmt: skip
    return replace(facts, **changes)  # type: ignore[arg-type]


def test_the_nodes_that_were_asked_for_pass() -> None:
    check_resources(MULTI, [HAS, HAS])
    check_node(MULTI, a_node())


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ([HAS], "asks for 2 nodes, and 1 has registered"),
        ([HAS, {**HAS, "CPU": 2.0}], "2 CPU"),
        ([HAS, {**HAS, "memory": 2.05 * 2**30}], "memory"),
        ([HAS, {**HAS, "object_store_memory": 2.0**28}], "object_store_memory"),
        ([HAS, {}], "0 CPU"),
    ],
)
def test_other_nodes_are_refused_with_the_numbers(resources: list[dict[str, float]], words: str) -> None:
    with pytest.raises(Unfit, match=words):
        check_resources(MULTI, resources)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shared_memory_bytes": 2**26}, "67108864 bytes, and the object store needs 536870912"),
        ({"threads": {"OMP_NUM_THREADS": "unset"}}, "unset"),
        (
            {"cpus_granted": 2, "cpus_allowed": 4, "cpus_effective": 1.0},
            r"Ray on head was told 2 CPUs, and 1 can be used \(affinity 4, CPU quota 1\): lower --cpus, or raise the limit",
        ),
        (
            {"cpus_granted": 2, "cpu_quota": None},
            r"Ray on head was told 2 CPUs, and 1 can be used \(affinity 1\)",
        ),
    ],
)
def test_a_node_that_cannot_give_what_the_topology_says_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(Unfit, match=words):
        check_node(MULTI, a_node(**changes))


def test_nodes_whose_clocks_are_apart_are_refused_with_how_far_and_the_fix() -> None:
    check_clocks({"head": 0.0, "worker-1": -0.9})
    with pytest.raises(Unfit, match=r"the clock of worker-1 is 2.0 s ahead of the driver's on the head\. .*NTP"):
        check_clocks({"head": 0.0, "worker-1": 2.0})


def test_nodes_of_different_versions_are_refused_with_each_of_them() -> None:
    head = a_node(versions={"python": "3.11.9", "numpy": "2.4.6", "torch": "2.13.0"})
    worker = a_node(node="worker-1", versions={"python": "3.11.9", "numpy": "2.4.5"})
    check_versions([head, replace(head, node="worker-1")])
    with pytest.raises(Unfit, match=r"numpy is 2\.4\.6 on head, 2\.4\.5 on worker-1; torch is .* none on worker-1"):
        check_versions([head, worker])


def test_a_remote_function_that_carries_data_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray._private import ray_constants, utils

    for name in ("FUNCTION_SIZE_WARN_THRESHOLD", "FUNCTION_SIZE_ERROR_THRESHOLD"):
        monkeypatch.setattr(ray_constants, name, getattr(ray_constants, name))  # put back when this test is over
    refuse_large_functions()
    utils.check_oversized_function(b"x" * 1_000_000, "small", "remote function", None)
    with pytest.raises(ValueError, match="The remote function large is too large"):
        utils.check_oversized_function(b"x" * 2_000_000, "large", "remote function", None)


def test_a_node_that_did_nothing_is_named() -> None:
    (reason,) = work_checks.idle_nodes({"head": 1000.0}, ["head", "worker-1"])
    assert reason == "node worker-1 did 0% of the work of 2 nodes"
    assert work_checks.idle_nodes({"head": 520.0, "worker-1": 480.0}, ["head", "worker-1"]) == []
    assert work_checks.idle_nodes({"head": 1000.0}, ["head"]) == []
    assert work_checks.idle_nodes({}, ["head", "worker-1"]) == []


def work_that_was_not_done(
    *, work: dict[str, float], total: float | None, shares: dict[str, list[float]], **changes: Any
) -> list[str]:
    return work_checks.not_done(
        a_spec(**changes), load("inference"), busy=["head"], work_by_node=work, total=total, shares=shares
    )


def test_a_run_whose_work_was_done_has_no_reason() -> None:
    assert work_that_was_not_done(work={"head": 9.0}, total=9.0, shares={"ray": [1.0]}) == []
    assert work_that_was_not_done(work={}, total=None, shares={}) == []


def test_a_run_that_credits_nobody_or_less_than_its_headline_is_invalid() -> None:
    nobody = work_that_was_not_done(work={}, total=0.0, shares={"ray": [0.0]})
    assert nobody[0].startswith("no node was credited with any work: credit must return what each node did")
    assert nobody[1].startswith("ray: its nodes were credited with 0.0% of the work that throughput_inputs_per_second")
    (less,) = work_that_was_not_done(work={"head": 9.0}, total=9.0, shares={"ray": [1.0, 0.5], "empty-calls": [0.0]})
    assert less.startswith("ray: its nodes were credited with 50.0%")


def test_a_later_attempt_may_find_all_of_its_work_done() -> None:
    assert work_that_was_not_done(work={}, total=0.0, shares={}, attempt=2) == []


def test_a_driver_without_a_cluster_fails_and_starts_no_ray_of_its_own(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"RAYMETER_RECORDS": str(tmp_path), "RAY_AUTH_MODE": "disabled", "HOME": str(tmp_path)}
    spec = a_spec(params={})
    done = subprocess.run(
        [sys.executable, "-m", "bench.cluster.driver", to_json(spec).decode()], env=environment, timeout=60, check=False
    )
    result = from_json((tmp_path / spec.session / "runs" / spec.folder / "run.json").read_bytes(), RunResult)
    assert done.returncode == 1
    assert result.status == "failed"
    assert "RAY_ADDRESS is not set" in result.reasons[0]


def test_code_that_is_not_the_callers_is_refused_before_anything_else_is_done(tmp_path: Path) -> None:
    spec = a_spec(experiment="unknown-to-older-code")
    environment = {**os.environ, "RAYMETER_RECORDS": str(tmp_path), CALLERS_CODE: "0123456789abcdef"}
    done = subprocess.run(
        [sys.executable, "-m", "bench.cluster.driver", to_json(spec).decode()], env=environment, timeout=60, check=False
    )
    result = from_json((tmp_path / spec.session / "runs" / spec.folder / "run.json").read_bytes(), RunResult)
    assert (done.returncode, result.status) == (1, "failed")
    for words in (code_hash(), "0123456789abcdef", "task image", "--dev"):
        assert words in result.reasons[0]


def test_a_node_with_other_code_than_the_callers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CALLERS_CODE, raising=False)
    check_code("worker-1", "other")  # nobody says what it should be: the local code was sent
    monkeypatch.setenv(CALLERS_CODE, "mine")
    check_code("worker-1", "mine")
    with pytest.raises(Unfit, match="worker-1 has the code other, and the client that submitted it has mine"):
        check_code("worker-1", "other")


def test_faults_are_injected_as_the_spec_plans_them_into_what_the_experiment_tolerates() -> None:
    assert planned_faults(a_spec(), load("inference"), []) is None
    spec = a_spec(experiment="clustering", faults="worker:2", seed=5, attempt=3)
    planned = planned_faults(spec, load("clustering"), [])
    assert planned is not None
    assert (planned.plan, planned.workers, planned.seed, planned.attempt) == ("worker:2", "Worker.do", 5, 3)
