"""KubeRay's operator: found, judged by its version, installed with its definitions first."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from kubernetes_objects import a_container, a_pod

from bench.errors import BadInput, TargetFailed
from bench.package_data import K8S
from bench.targets.k8s import kuberay
from bench.targets.k8s.kubectl import Kubectl
from bench.targets.k8s.kuberay import (
    KINDS,
    check_version,
    find,
    install,
    labelled,
    manifests,
    remove_if_ours_and_idle,
    wait_until_ready,
)

STUB = """#!/bin/sh
echo "$@" >>"$TRACE"
case "$*" in *"--filename=-"*) grep -o '"kind": "[A-Za-z]*"' | sort | uniq >>"$TRACE" ;; esac
"""


def a_deployment(image: str) -> dict[str, Any]:
    containers = [{"name": "kuberay-operator", "image": image}]
    return {
        "kind": "Deployment",
        "metadata": {"name": "operator", "namespace": "there"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("quay.io/kuberay/operator:v1.6.2", (1, 6, 2)),
        ("registry.local:5000/kuberay-operator:1.7.0-rc.1", (1, 7, 0)),
        ("quay.io/kuberay/operator:nightly", None),
    ],
)
def test_an_operator_is_known_by_its_image(image: str, version: tuple[int, int, int] | None) -> None:
    assert find([a_deployment("nginx:1.0"), a_deployment(image)]) == ("there/operator", version)


def test_where_there_is_none_none_is_found() -> None:
    assert find([a_deployment("nginx:1.0")]) is None


def test_an_operator_that_is_too_old_is_refused_with_both_versions() -> None:
    check_version("there/operator", (1, 6, 0))
    check_version("there/operator", None)
    with pytest.raises(TargetFailed, match=r"there/operator is version 1\.3\.2, and the manifests need 1\.6"):
        check_version("there/operator", (1, 3, 2))


def test_definitions_are_applied_server_side_and_established_before_the_operator_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub, trace = tmp_path / "kubectl", tmp_path / "trace"
    stub.write_text(STUB)
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TRACE", str(trace))
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": "rayclusters.ray.io"}}
    install(Kubectl("here"), [a_deployment("quay.io/kuberay/operator:v1.6.2"), definition])
    lines = trace.read_text().splitlines()
    assert lines[0].startswith("--context here apply --server-side")
    assert lines[1:3] == ['"kind": "CustomResourceDefinition"', '"kind": "List"']
    assert lines[3].startswith("--context here wait --for=condition=Established")
    assert "customresourcedefinition/rayclusters.ray.io" in lines[3]
    assert lines[4].startswith("--context here apply --server-side")
    assert '"kind": "Deployment"' in lines[5:]


class Cluster:
    """kubectl for a cluster with these objects; it remembers what was deleted, and then has it no more."""

    context = "here"

    def __init__(self, **there: list[str]) -> None:
        self.there = there
        self.deleted: list[str] = []

    def get(self, what: str, *arguments: str) -> list[dict[str, Any]]:
        if what == "namespaces":
            what = "operator" if "raymeter.io/installed=true" in arguments else "deployments"
        names = self.there.get("rays" if what == KINDS else what, [])
        return [{"metadata": {"name": name}} for name in names]

    def run(self, verb: str, what: str, *arguments: str) -> str:
        assert verb == "delete"
        assert "raymeter.io/installed=true" in arguments
        self.deleted.append(what)
        self.there.pop("operator", None)
        return ""


@pytest.mark.parametrize(
    ("there", "gone"),
    [
        ({"operator": ["kuberay-system"]}, True),
        ({}, False),  # it was there before us
        ({"operator": ["kuberay-system"], "deployments": ["b"]}, False),  # which may be between two Ray clusters
        ({"operator": ["kuberay-system"], "rays": ["somebody's"]}, False),
    ],
)
def test_the_last_deployment_takes_an_operator_away_that_one_of_them_installed(
    there: dict[str, list[str]], *, gone: bool
) -> None:
    cluster = Cluster(**there)
    assert remove_if_ours_and_idle(cluster, 1.0) is gone  # type: ignore[arg-type]
    assert cluster.deleted == (["namespaces", "clusterroles", "clusterrolebindings"] if gone else [])


def test_what_is_installed_is_marked_and_keeps_its_own_labels() -> None:
    mine = labelled({"kind": "Namespace", "metadata": {"name": "kuberay-system", "labels": {"a": "b"}}})
    assert mine["metadata"] == {"name": "kuberay-system", "labels": {"a": "b", "raymeter.io/installed": "true"}}


def test_a_folder_without_a_kustomization_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must be a folder with a kustomization"):
        manifests(K8S / "operator", str(tmp_path))


def test_a_folder_is_taken_in_place_of_the_repository(tmp_path: Path) -> None:
    if not shutil.which("kubectl"):
        pytest.skip("needs the command kubectl")
    (tmp_path / "kustomization.yaml").write_text("resources: [operator.yaml]\n")
    (tmp_path / "operator.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kuberay-operator, namespace: system}\n"
        "spec: {template: {spec: {containers: [{name: kuberay-operator, image: quay.io/kuberay/operator:v1.6.2}]}}}\n"
    )
    objects = manifests(K8S / "operator", str(tmp_path))
    (deployment,) = [each for each in objects if each["kind"] == "Deployment"]
    assert deployment["metadata"]["namespace"] == "kuberay-system"
    assert deployment["spec"]["template"]["spec"]["tolerations"]


def test_manifests_are_fetched_once_and_then_taken_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fetches: list[Path] = []

    def fetch(folder: Path) -> list[dict[str, Any]]:
        fetches.append(folder)
        if len(fetches) > 1:
            raise TargetFailed("`kubectl kustomize` failed: fatal: no network.")
        return [a_deployment("quay.io/kuberay/operator:v1.6.2")]

    monkeypatch.setattr(kuberay, "kustomize", fetch)
    folder = K8S / "operator"
    assert manifests(folder, None) == manifests(folder, None) == [a_deployment("quay.io/kuberay/operator:v1.6.2")]
    assert fetches == [folder]
    other = tmp_path / "other"  # as of another version of raymeter
    shutil.copytree(folder, other)
    (other / "kustomization.yaml").write_text("resources: []\n")
    with pytest.raises(TargetFailed, match=r"cannot be fetched: .*no network\. Connect .*--operator-manifests"):
        manifests(other, None)
    (cached,) = (tmp_path / "raymeter").iterdir()
    cached.write_text("[half")  # a damaged one is fetched again
    with pytest.raises(TargetFailed, match="no network"):
        manifests(folder, None)


def an_operator(*, available: bool) -> dict[str, Any]:
    status = {"conditions": [{"type": "Available", "status": str(available)}]}
    return {**a_deployment("quay.io/kuberay/operator:v1.6.2"), "status": status}


def test_the_operator_is_waited_for_until_it_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kuberay, "POLL_SECONDS", 0.0)
    answers = [[], [an_operator(available=False)], [an_operator(available=True)]]

    class Young(Cluster):
        def get(self, what: str, *arguments: str) -> list[dict[str, Any]]:
            assert (what, *arguments) == ("deployments,pods", "--namespace", "there")
            return answers.pop(0)

    wait_until_ready(Young(), [an_operator(available=False)])  # type: ignore[arg-type]
    assert answers == []


def test_an_operator_whose_image_cannot_be_pulled_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kuberay, "PATIENCE_SECONDS", 0.0)
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}}
    pod = a_pod("operator", containerStatuses=[a_container(state=waiting)])
    pod["metadata"]["labels"] = {}

    class Broken(Cluster):
        def get(self, what: str, *arguments: str) -> list[dict[str, Any]]:
            return [an_operator(available=False), {**pod, "kind": "Pod"}]

    with pytest.raises(TargetFailed, match=r"no such host\. Let the nodes reach its registry"):
        wait_until_ready(Broken(), [an_operator(available=False)])  # type: ignore[arg-type]
