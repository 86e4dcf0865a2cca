"""Finds KubeRay's operator and checks its version, or installs it from the pinned manifests."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_dir

from bench.errors import BadInput, TargetFailed
from bench.record.files import expand_home, replace_whole
from bench.targets import readiness
from bench.targets.k8s import pod_troubles
from bench.targets.k8s.kubectl import Kubectl, Object, kustomize

OLDEST = (1, 6)  # the manifests use its fields
DEFINITION = "rayclusters.ray.io"
DEADLINE_SECONDS = 60.0
READY_SECONDS = 180.0  # its image may have to be pulled
PATIENCE_SECONDS = 5.0  # a new node may refuse pods for a moment
POLL_SECONDS = 1.0
OURS = {"raymeter.io/installed": "true"}  # on everything of an operator that `up` installed, except definitions
KINDS = "rayclusters.ray.io,rayjobs.ray.io,rayservices.ray.io"
_REPOSITORY = re.compile(r"^(\s*-\s*)https://github\.com/ray-project/kuberay/\S+$", re.MULTILINE)
_IMAGE = re.compile(r"(?:^|/)kuberay(?:/|-)operator:v?(\d+)\.(\d+)\.(\d+)\S*$")


def is_there(kubectl: Kubectl) -> bool:
    """Whether the cluster has an operator. Raises TargetFailed for one that is too old."""
    operator = find(kubectl.get("deployments", "--all-namespaces"))
    if operator is not None:
        check_version(*operator)
    return operator is not None


def find(deployments: Iterable[Object]) -> tuple[str, tuple[int, int, int] | None] | None:
    """The namespace and name of an operator, and the version in its image's tag; None without an operator."""
    for deployment in deployments:
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            image = container.get("image", "")
            if "kuberay" in image and "operator" in image:
                match = _IMAGE.search(image)
                version = (int(match[1]), int(match[2]), int(match[3])) if match else None
                return f"{deployment['metadata']['namespace']}/{deployment['metadata']['name']}", version
    return None


def check_version(where: str, version: tuple[int, int, int] | None) -> None:
    """Raise TargetFailed for an operator that is too old for the manifests."""
    if version is not None and version[:2] < OLDEST:
        raise TargetFailed(
            f"The KubeRay operator {where} is version {'.'.join(map(str, version))},"
            f" and the manifests need {OLDEST[0]}.{OLDEST[1]} or newer.",
            "Upgrade it, or use another cluster.",
        )


def manifests(folder: Path, instead: str | None) -> list[Object]:
    """The operator's objects: from its repository, fetched once and then cached, or from the folder `instead`."""
    if instead is None:
        cached = _cache_file(folder)
        with suppress(OSError, ValueError):
            return list(json.loads(cached.read_bytes()))
        objects = _fetch(folder)
        with suppress(OSError):  # without a cache they are fetched each time
            cached.parent.mkdir(parents=True, exist_ok=True)
            replace_whole(cached, json.dumps(objects).encode(), is_lasting=False)
        return objects
    source = Path(expand_home(instead))
    if not (source / "kustomization.yaml").is_file():
        raise BadInput(f"--operator-manifests must be a folder with a kustomization.yaml, got {instead}.")
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(shutil.copytree(folder, Path(temporary).resolve() / "operator"))
        plan = copy / "kustomization.yaml"
        # kustomize refuses absolute paths.
        relative = os.path.relpath(source.resolve(), copy)
        plan.write_text(_REPOSITORY.sub(lambda match: match[1] + relative, plan.read_text()))
        return kustomize(copy)


def _cache_file(folder: Path) -> Path:
    """The cache of these manifests' objects; other versions and patches have other names."""
    contents = b"".join(path.read_bytes() for path in sorted(folder.glob("*.yaml")))
    return Path(user_cache_dir("raymeter")) / f"kuberay-{hashlib.sha256(contents).hexdigest()[:16]}.json"


def _fetch(folder: Path) -> list[Object]:
    try:
        return kustomize(folder)
    except TargetFailed as error:
        raise TargetFailed(
            f"KubeRay's manifests cannot be fetched: {error.what}",
            "Connect to the network once, or name a folder that has KubeRay's config/default: --operator-manifests.",
        ) from error


def wait_until_ready(kubectl: Kubectl, objects: Iterable[Object]) -> None:
    """Return when the operator is available. Raises the error of its pods, or TargetFailed at the deadline."""
    (deployment,) = (resource for resource in objects if resource["kind"] == "Deployment")
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    start = time.monotonic()

    def missing(resources: Sequence[Object]) -> list[str]:
        available = any(resource["kind"] == "Deployment" and _is_available(resource) for resource in resources)
        return [] if available else [f"{namespace}/{name}"]

    def raise_for_trouble(resources: Sequence[Object], _late: Sequence[str]) -> None:
        pods = [resource for resource in resources if resource["kind"] == "Pod"]
        if time.monotonic() - start > PATIENCE_SECONDS and (trouble := pod_troubles.trouble(pods, ())):
            raise trouble.error()

    def timeout_error(resources: Sequence[Object], late: Sequence[str]) -> TargetFailed:
        waiting = pod_troubles.waiting([resource for resource in resources if resource["kind"] == "Pod"], ())
        return TargetFailed(
            f"The KubeRay operator {late[0]} was not ready after {READY_SECONDS:.0f} s. {waiting}",
            f"See `kubectl get pods --namespace {namespace}`.",
        )

    readiness.wait_until_ready(
        lambda: kubectl.get("deployments,pods", "--namespace", namespace),
        missing=missing,
        raise_for_failure=raise_for_trouble,
        timeout_error=timeout_error,
        until=start + READY_SECONDS,
        poll_seconds=POLL_SECONDS,
    )


def _is_available(deployment: Object) -> bool:
    conditions = deployment.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Available" and condition["status"] == "True" for condition in conditions)


def install(kubectl: Kubectl, objects: Iterable[Object]) -> None:
    """Apply the definitions, then the rest once the API server serves them: the operator needs them to start."""
    objects = list(objects)
    definitions = [resource for resource in objects if resource["kind"] == "CustomResourceDefinition"]
    kubectl.apply(definitions)
    kubectl.run(
        *("wait", "--for=condition=Established", f"--timeout={DEADLINE_SECONDS:.0f}s"),
        *(f"customresourcedefinition/{resource['metadata']['name']}" for resource in definitions),
        timeout_seconds=DEADLINE_SECONDS + 10,
    )
    kubectl.apply(labelled(resource) for resource in objects if resource["kind"] != "CustomResourceDefinition")


def labelled(resource: Object) -> Object:
    """An object of the operator with the label of what raymeter installed."""
    metadata = resource["metadata"]
    return {**resource, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **OURS}}}


def remove_if_ours_and_idle(kubectl: Kubectl, deadline_seconds: float) -> bool:
    """Remove an operator that raymeter installed, once nothing in the cluster needs it.

    Whichever deployment goes last does so. The definitions stay: others may have objects of them.
    """
    label = ",".join(f"{name}={value}" for name, value in OURS.items())
    namespaces = kubectl.get("namespaces", "--selector", label)
    if not namespaces or _is_needed(kubectl):
        return False
    for kind in ("namespaces", "clusterroles", "clusterrolebindings"):
        kubectl.run("delete", kind, "--selector", label, "--ignore-not-found", "--wait=false")
    until = time.monotonic() + deadline_seconds
    for namespace in namespaces:
        wait_gone(kubectl, "namespace", namespace["metadata"]["name"], until)
    return True


def _is_needed(kubectl: Kubectl) -> bool:
    """Whether the cluster has another deployment, or any Ray resource."""
    deployments = kubectl.get("namespaces", "--selector", "app.kubernetes.io/part-of=raymeter")
    return bool(deployments or kubectl.get(KINDS, "--all-namespaces"))


def wait_gone(kubectl: Kubectl, kind: str, name: str, until: float, *arguments: str) -> None:
    """Return when a deleted object is gone. Raises TargetFailed at the deadline."""
    while kubectl.get(kind, name, *arguments):
        if time.monotonic() > until:
            raise TargetFailed(
                f"The {kind} {name} in {kubectl.context} is not deleted in time.", "Try `bench down` again."
            )
        time.sleep(0.3)
