"""Small builders of Kubernetes objects, as the API server gives them."""

from __future__ import annotations

from typing import Any

IMAGE = "raymeter/ray:0.1.0"


def a_node(name: str, *, cpus: str = "2", memory: str = "8Gi", taint: str = "", **more: Any) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": more.get("labels", {})},
        "spec": {
            "unschedulable": more.get("cordoned", False),
            "taints": [{"key": taint, "effect": "NoSchedule"}] if taint else [],
        },
        "status": {
            "allocatable": {"cpu": cpus, "memory": memory, "ephemeral-storage": "100Gi"},
            "conditions": [{"type": "Ready", "status": more.get("ready", "True")}],
            "nodeInfo": {"bootID": more.get("boot_id", name)},
        },
    }


def a_pod(name: str, *, node: str | None = None, cpu: str = "1", memory: str = "2Gi", **status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"raymeter-{name}-x7k2p",
            "namespace": "raymeter",
            "labels": {"raymeter.io/node": name, "ray.io/cluster": "raymeter"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "ray", "image": IMAGE, "resources": {"limits": {"cpu": cpu, "memory": memory}}}],
        },
        "status": {"phase": "Pending", **status},
    }


def a_container(name: str = "ray", *, image: str = IMAGE, **states: Any) -> dict[str, Any]:
    return {"name": name, "image": image, "state": {}, "lastState": {}, **states}


def an_event(reason: str, message: str, *, about: str, kind: str = "Pod", warning: bool = True) -> dict[str, Any]:
    return {
        "kind": "Event",
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-01-01T00:00:05Z",
        "involvedObject": {"kind": kind, "name": about},
    }
