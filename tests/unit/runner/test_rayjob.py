"""`bench manifest`: a RayJob that needs nothing else."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from builders import a_session, a_spec, a_topology
from manifests import deployment

from bench.errors import BadInput
from bench.identity import CALLERS_CODE, code_hash
from bench.model import Spec, from_json
from bench.runner.rayjob import rayjob, specs_of
from bench.targets.k8s.rendering import pod_templates

MULTI = a_topology("multi", nodes=2)
SPECS = [a_spec(id=f"b01-multi-inference-c0{n}", cell=f"c0{n}", topology=MULTI) for n in (1, 2)]


def printed(**more: Any) -> list[dict[str, Any]]:
    return rayjob(deployment("multi"), SPECS, **{"name": "inference-multi-ab12", "token": "t0ken", **more})


def of_kind(kind: str) -> dict[str, Any]:
    return next(each for each in printed() if each["kind"] == kind)


def test_the_specs_arrive_unchanged_one_after_the_other() -> None:
    commands = of_kind("RayJob")["spec"]["entrypoint"].split(" && ")
    words = [shlex.split(command) for command in commands]
    told = ["env", f"{CALLERS_CODE}={code_hash()}"]  # an image of other code must not measure it
    assert [each[:5] for each in words] == [[*told, "python", "-m", "bench.cluster.driver"]] * 2
    assert [from_json(each[5], Spec) for each in words] == SPECS


def test_a_job_is_done_once_and_its_record_stays() -> None:
    spec = of_kind("RayJob")["spec"]
    assert spec["backoffLimit"] == 0
    assert spec["shutdownAfterJobFinishes"] is False
    assert spec["activeDeadlineSeconds"] >= sum(each.deadline_seconds for each in SPECS)


def test_its_cluster_is_that_of_the_manifests_but_for_where_the_token_is() -> None:
    given = next(each for each in deployment("multi") if each["kind"] == "RayCluster")
    text = json.dumps(of_kind("RayJob")["spec"]["rayClusterSpec"])
    found = json.loads(text.replace('"name": "inference-multi-ab12"', '"name": "raymeter"'))
    assert found["authOptions"].pop("secretName") == "inference-multi-ab12"
    assert found == given["spec"]


def test_the_token_is_a_secret_that_exporter_and_ray_both_use() -> None:
    secret, job = of_kind("Secret"), of_kind("RayJob")
    assert secret["stringData"] == {"auth_token": "t0ken"}
    assert job["spec"]["rayClusterSpec"]["authOptions"]["secretName"] == secret["metadata"]["name"]
    (exporter,) = pod_templates({"spec": job["spec"]["rayClusterSpec"]})["head"]["spec"]["containers"][1:]
    (token,) = [each for each in exporter["env"] if each["name"] == "RAY_AUTH_TOKEN"]
    assert token["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]


def test_what_is_printed_can_be_applied_where_there_is_only_the_operator() -> None:
    assert [each["kind"] for each in printed()] == ["Namespace", "NetworkPolicy", "Secret", "RayJob"]


def test_a_name_that_kuberay_would_refuse_is_refused() -> None:
    with pytest.raises(BadInput, match="too long for a RayJob"):
        printed(name="x" * 48)


def test_one_block_of_one_topology_is_run() -> None:
    others = [a_spec(id="s", topology=a_topology()), a_spec(id="b2", topology=MULTI, block=2)]
    assert specs_of(a_session((*SPECS, *others)), "multi") == SPECS
