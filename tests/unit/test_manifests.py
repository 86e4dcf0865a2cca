"""The manifests in k8s/: what each must say, and in what alone single and multi may differ."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from manifests import deployment, ray_cluster, read
from repository import ROOT

from bench.options import RunRequest
from bench.package_data import K8S
from bench.planning import plan
from bench.targets.k8s.kubectl import kustomize
from bench.targets.k8s.rendering import Shape, render, requests, size
from bench.targets.k8s.rendering import ray_cluster as ray_cluster_of

VERSIONS = dict(
    line.split("=", 1)
    for line in (ROOT / "images/versions.env").read_text().splitlines()
    if line and not line.startswith("#")
)
TOPOLOGIES = ("single", "multi")
TOPOLOGY = {topology.name: topology for topology in plan.topologies(RunRequest(experiments=(), cpus=2))}
GIB = 2**30


def nodes(topology: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name, rayStartParams and pod of every Ray node."""
    spec = ray_cluster(topology)["spec"]
    groups = [("head", spec["headGroupSpec"])] + [(g["groupName"], g) for g in spec.get("workerGroupSpecs", [])]
    return [(name, group["rayStartParams"], group["template"]["spec"]) for name, group in groups]


EVERY_NODE = [
    pytest.param(params, pod, id=f"{topology}-{name}")
    for topology in TOPOLOGIES
    for name, params, pod in nodes(topology)
]


def environment(pod: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_the_tests_read_is_what_kustomize_gives(topology: str) -> None:
    if not shutil.which("kubectl"):
        pytest.skip("needs the command kubectl")
    given = kustomize(K8S / topology)
    assert [each for each in deployment(topology) if each not in given] == []


@pytest.mark.parametrize(("params", "pod"), EVERY_NODE)
def test_shared_memory_holds_the_store_and_lies_inside_the_limit(params: dict[str, str], pod: dict[str, Any]) -> None:
    store = int(params["object-store-memory"])
    (shared,) = [volume["emptyDir"] for volume in pod["volumes"] if volume["name"] == "shared-memory"]
    limit = size(pod["containers"][0]["resources"]["limits"]["memory"])
    assert shared["medium"] == "Memory"
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]
    assert 1.1 * store <= size(shared["sizeLimit"]) <= limit / 2


@pytest.mark.parametrize(("params", "pod"), EVERY_NODE)
def test_ray_is_told_what_its_container_has(params: dict[str, str], pod: dict[str, Any]) -> None:
    limits = pod["containers"][0]["resources"]["limits"]
    assert int(params["num-cpus"]) == size(limits["cpu"])
    assert int(params["memory"]) == size(limits["memory"])
    threads = {environment(pod)[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    assert threads == {params["num-cpus"]}


@pytest.mark.parametrize(("params", "pod"), EVERY_NODE)
def test_every_pod_is_guaranteed_with_whole_cpus(params: dict[str, str], pod: dict[str, Any]) -> None:
    ray = pod["containers"][0]["resources"]
    assert ray["requests"] == ray["limits"]
    assert set(ray["limits"]) == {"cpu", "memory", "ephemeral-storage"}
    if len(pod["containers"]) > 1:
        assert pod["resources"]["requests"] == pod["resources"]["limits"]
        assert size(pod["resources"]["limits"]["cpu"]) == size(ray["limits"]["cpu"])
        memory = sum(size(each["resources"]["limits"]["memory"]) for each in pod["containers"])
        assert size(pod["resources"]["limits"]["memory"]) == memory
    assert requests(pod)["cpu"] == int(params["num-cpus"])


@pytest.mark.parametrize(("params", "pod"), EVERY_NODE)
def test_metrics_come_so_often_that_no_gauge_expires(params: dict[str, str], pod: dict[str, Any]) -> None:
    assert environment(pod)["RAY_metrics_report_interval_ms"] == "2000"
    assert environment(pod)["REPORTER_UPDATE_INTERVAL_MS"] == "1000"


@pytest.mark.parametrize(("params", "pod"), EVERY_NODE)
def test_every_pod_passes_the_restricted_standard(params: dict[str, str], pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert {name for volume in pod["volumes"] for name in volume if name != "name"} <= {"emptyDir"}


def test_the_namespace_enforces_the_restricted_standard() -> None:
    (namespace,) = read(K8S / "base/namespace.yaml")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("kind", ["cpu", "memory", "object store", "shared memory", "threads"])
def test_single_and_multi_have_equal_totals(kind: str) -> None:
    def total(topology: str) -> float:
        return sum(amount(params, pod) for _, params, pod in nodes(topology))

    def amount(params: dict[str, str], pod: dict[str, Any]) -> float:
        limits = pod["containers"][0]["resources"]["limits"]
        return {
            "cpu": size(limits["cpu"]),
            "memory": size(limits["memory"]),
            "object store": int(params["object-store-memory"]),
            "shared memory": size(pod["volumes"][0]["emptyDir"]["sizeLimit"]),
            "threads": int(environment(pod)["OMP_NUM_THREADS"]),
        }[kind]

    assert total("single") == total("multi")


def test_single_and_multi_differ_only_where_they_may() -> None:
    may = re.compile(
        r"/workerGroupSpecs.*"
        r"|/headGroupSpec/rayStartParams/(num-cpus|memory|object-store-memory)"
        r"|/headGroupSpec/template/spec/(containers/0/)?resources/(requests|limits)/(cpu|memory)"
        r"|/headGroupSpec/template/spec/containers/0/env/[456]/value"
        r"|/headGroupSpec/template/spec/volumes/0/emptyDir/sizeLimit"
    )
    found = list(differences(ray_cluster("single")["spec"], ray_cluster("multi")["spec"]))
    assert found
    assert [path for path in found if not may.fullmatch(path)] == []
    rest = {
        topology: [each for each in deployment(topology) if each["kind"] != "RayCluster"] for topology in TOPOLOGIES
    }
    assert rest["single"] == rest["multi"]


def test_a_worker_is_what_the_head_is_but_for_what_only_a_head_has() -> None:
    (_, head_params, head), (_, worker_params, worker) = nodes("multi")
    assert head_params == {**worker_params, "no-monitor": "true"}
    ours = {key: value for key, value in head["containers"][0].items() if key not in ("ports", "volumeMounts")}
    assert ours == {
        key: value for key, value in worker["containers"][0].items() if key not in ("ports", "volumeMounts")
    }
    alike = ("securityContext", "affinity", "topologySpreadConstraints", "terminationGracePeriodSeconds")
    assert [head[key] for key in alike] == [worker[key] for key in alike]


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from differences(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (here, there) in enumerate(zip(one, other, strict=True)):
            yield from differences(here, there, f"{path}/{index}")
    elif one != other:
        yield path


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_files_have_the_numbers_that_the_command_line_would_put_in(topology: str) -> None:
    objects = deployment(topology)
    image = ray_cluster(topology)["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"]
    shape = Shape(topology=TOPOLOGY[topology], deployment="raymeter", image=image)
    rendered = ray_cluster_of(render(objects, shape))["spec"]
    given = ray_cluster(topology)["spec"]
    given.setdefault("workerGroupSpecs", [])

    def quantities_as_numbers(each: Any) -> Any:
        if isinstance(each, dict):
            sizes = ("memory", "sizeLimit")
            return {
                k: size(v) if k in sizes and isinstance(v, str) else quantities_as_numbers(v) for k, v in each.items()
            }
        return [quantities_as_numbers(one) for one in each] if isinstance(each, list) else each

    assert quantities_as_numbers(rendered) == quantities_as_numbers(given)


def images(each: Any) -> Iterator[dict[str, Any]]:
    if isinstance(each, dict):
        if isinstance(each.get("image"), str):
            yield each
        for value in each.values():
            yield from images(value)
    elif isinstance(each, list):
        for value in each:
            yield from images(value)


def yaml_files() -> list[Path]:
    return [path for path in sorted(K8S.rglob("*.y*ml")) if "kustomization" not in path.name]


@pytest.mark.parametrize("path", yaml_files(), ids=lambda path: str(path.relative_to(K8S)))
def test_no_image_has_a_moving_tag(path: Path) -> None:
    for container in images(read(path)):
        tag = container["image"].rpartition(":")[2]
        assert re.fullmatch(r"v?\d+\.\d+\.\d+([.-][\w.-]+)?", tag), container["image"]
        assert container.get("imagePullPolicy", "IfNotPresent") == "IfNotPresent"


def test_ray_pods_have_one_image_and_are_pulled_only_where_it_is_missing() -> None:
    found = {
        (each["image"], each["imagePullPolicy"]) for topology in TOPOLOGIES for each in images(ray_cluster(topology))
    }
    assert len(found) == 1


def test_versions_are_those_of_the_one_place() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    (ray,) = (package["version"] for package in packages if package["name"] == "ray")
    assert ray_cluster("multi")["spec"]["rayVersion"] == ray
    (operator,) = read(K8S / "operator/kustomization.yaml")
    assert any(resource.endswith(f"?ref={VERSIONS['KUBERAY_VERSION']}") for resource in operator["resources"])
    (kind,) = read(K8S / "kind.yaml")
    assert {node["image"] for node in kind["nodes"]} == {VERSIONS["KIND_NODE_IMAGE"]}


def test_authentication_is_switched_on_by_name() -> None:
    assert ray_cluster("single")["spec"]["authOptions"] == {"mode": "token"}


def test_only_who_must_talk_to_ray_may() -> None:
    (policy,) = read(K8S / "base/network-policy.yaml")
    ray = {"podSelector": {"matchLabels": {"ray.io/is-ray-node": "yes"}}}
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    without_ports = [rule["from"] for rule in policy["spec"]["ingress"] if "ports" not in rule]
    assert without_ports == [[ray]]
    assert all(peer for rule in policy["spec"]["ingress"] for peer in rule["from"])


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_smallest_deployment_fits_a_small_machine(topology: str) -> None:
    measured = [requests(pod) for _, _, pod in nodes(topology)]
    watching = [
        requests(each["spec"]["template"]["spec"])
        for path in sorted((K8S / "monitoring").glob("*.yaml"))
        for each in read(path)
        if each.get("kind") == "Deployment"
    ]
    operator = {"cpu": 0.1, "memory": 512 * 2**20}  # what its own manifests say
    assert sum(pod["cpu"] for pod in measured) <= 2
    assert sum(pod["cpu"] for pod in (*watching, operator)) <= 0.25
    assert sum(pod["memory"] for pod in (*measured, *watching, operator)) <= 5 * GIB
