"""The manifests in k8s/ as kubectl's kustomize would give them, for where there is no kubectl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from bench.package_data import K8S


def read(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, with what its anchors stand for written out."""
    return [json.loads(json.dumps(each)) for each in yaml.safe_load_all(path.read_text()) if each]


def deployment(topology: str) -> list[dict[str, Any]]:
    """The objects of k8s/<topology>, monitoring left out."""
    objects = [
        each for name in ("namespace", "network-policy", "raycluster") for each in read(K8S / f"base/{name}.yaml")
    ]
    for each in objects:
        if each["kind"] != "Namespace":
            each["metadata"]["namespace"] = "raymeter"
    for patch in read(K8S / topology / "kustomization.yaml")[0].get("patches", []):
        (operations,) = read(K8S / topology / patch["path"])
        for operation in operations:
            _apply(next(each for each in objects if each["kind"] == patch["target"]["kind"]), operation)
    return objects


def ray_cluster(topology: str) -> dict[str, Any]:
    """The RayCluster of k8s/<topology>."""
    return next(each for each in deployment(topology) if each["kind"] == "RayCluster")


def _apply(whole: Any, operation: dict[str, Any]) -> None:
    *way, last = operation["path"].strip("/").split("/")
    for step in way:
        whole = whole[int(step)] if isinstance(whole, list) else whole[step]
    key = int(last) if isinstance(whole, list) else last
    whole[key]  # what is not there cannot be replaced or removed
    if operation["op"] == "remove":
        del whole[key]
    else:
        whole[key] = operation["value"]
