"""The manifests with a topology's numbers in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_topology
from manifests import deployment

from bench.model import Topology
from bench.targets import node_names
from bench.targets.k8s.rendering import Shape, in_mib, pod_templates, ray_cluster, render, size
from bench.targets.k8s.sent_code import FOLDER, with_code
from bench.targets.k8s.target import NETWORK
from bench.targets.link import shaping_command

THREE = Topology(
    name="multi",
    nodes=3,
    cpus_per_node=4,
    memory_bytes_per_node=6 * 2**30,
    object_store_bytes_per_node=2 * 2**30 + 1,
    threads_per_node=3,
)


def rendered(topology: Topology = THREE, **more: Any) -> list[dict[str, Any]]:
    shape = Shape(topology=topology, deployment="mine", image="elsewhere/ray:1", **more)
    return render(deployment("single" if topology.nodes == 1 else "multi"), shape)


def test_every_node_gets_the_topologys_numbers() -> None:
    spec = ray_cluster(rendered())["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        ray = group["template"]["spec"]["containers"][0]
        assert group["rayStartParams"]["num-cpus"] == "4"
        assert group["rayStartParams"]["memory"] == str(THREE.memory_bytes_per_node)
        assert group["rayStartParams"]["object-store-memory"] == str(THREE.object_store_bytes_per_node)
        assert ray["resources"]["requests"] == ray["resources"]["limits"]
        assert (size(ray["resources"]["limits"]["cpu"]), size(ray["resources"]["limits"]["memory"])) == (4, 6 * 2**30)
        assert {e["value"] for e in ray["env"] if e["name"].endswith("_NUM_THREADS")} == {"3"}
        shared = size(group["template"]["spec"]["volumes"][0]["emptyDir"]["sizeLimit"])
        assert shared >= 1.1 * THREE.object_store_bytes_per_node


def test_what_a_run_sets_of_ray_is_set_on_every_node() -> None:
    for template in pod_templates(ray_cluster(rendered(ray_settings={"some_size": "7"}))).values():
        assert {"name": "RAY_some_size", "value": "7"} in template["spec"]["containers"][0]["env"]


def test_every_worker_has_a_name_of_its_own_and_is_there_once() -> None:
    cluster = ray_cluster(rendered())
    assert tuple(pod_templates(cluster)) == node_names(THREE) == ("head", "worker-1", "worker-2")
    labels = [template["metadata"]["labels"]["raymeter.io/node"] for template in pod_templates(cluster).values()]
    assert labels == ["head", "worker-1", "worker-2"]
    assert {group["replicas"] for group in cluster["spec"]["workerGroupSpecs"]} == {1}


def test_one_image_runs_everywhere() -> None:
    for template in pod_templates(ray_cluster(rendered())).values():
        assert {container["image"] for container in template["spec"]["containers"]} == {"elsewhere/ray:1"}


def test_two_deployments_share_no_namespace() -> None:
    names = {each["metadata"].get("namespace", each["metadata"]["name"]) for each in rendered()}
    assert names == {"mine"}


def test_single_has_no_worker() -> None:
    assert ray_cluster(rendered(a_topology()))["spec"]["workerGroupSpecs"] == []


def test_what_was_given_is_not_changed() -> None:
    given = deployment("multi")
    before = json.dumps(given)
    render(given, Shape(topology=THREE, deployment="mine", image="x/y:1"))
    assert json.dumps(given) == before


@pytest.mark.parametrize(("number", "text"), [(2**30, "1024Mi"), (2**30 + 1, "1073741825")])
def test_a_size_is_written_so_that_nothing_of_it_is_lost(number: int, text: str) -> None:
    assert in_mib(number) == text
    assert size(text) == number


def test_sent_code_is_what_every_container_runs_and_the_pod_stays_guaranteed() -> None:
    objects = with_code(rendered(), b"an archive")
    assert [each["metadata"]["namespace"] for each in objects if each["kind"] == "ConfigMap"] == ["mine"]
    for template in pod_templates(ray_cluster(objects)).values():
        pod = template["spec"]
        for container in pod["containers"]:
            assert {"name": "PYTHONPATH", "value": FOLDER} in container["env"]
        (unpack,) = pod["initContainers"]
        assert unpack["image"] == "elsewhere/ray:1"
        assert unpack["resources"]["requests"] == unpack["resources"]["limits"]


def test_a_link_rate_is_set_by_an_init_container_before_ray_starts_and_the_record_names_it() -> None:
    objects = with_code(rendered(link_rate="100mbit"), b"an archive")
    for template in pod_templates(ray_cluster(objects)).values():
        pod = template["spec"]
        limit, unpack = pod["initContainers"]
        assert limit["command"] == shaping_command("100mbit")
        assert limit["image"] == unpack["image"] == "elsewhere/ray:1"
        assert limit["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
        assert limit["securityContext"]["runAsUser"] == 0  # an added capability is root's only
        assert limit["resources"]["requests"] == limit["resources"]["limits"]
        assert {"name": "RAYMETER_LINK", "value": "pod network at 100mbit"} in pod["containers"][0]["env"]
        for container in (unpack, *pod["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }


def test_the_namespace_allows_net_admin_only_with_a_link_rate() -> None:
    def standard(**more: Any) -> str:
        (namespace,) = [each for each in rendered(**more) if each["kind"] == "Namespace"]
        return str(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"])

    assert standard(link_rate="100mbit") == "privileged"
    assert standard() == "restricted"
    for template in pod_templates(ray_cluster(rendered())).values():
        assert "initContainers" not in template["spec"]
        assert {"name": "RAYMETER_LINK", "value": NETWORK} in template["spec"]["containers"][0]["env"]
