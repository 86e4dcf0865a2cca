"""Sends the caller's own code to the pods in place of the image's: a ConfigMap, and an init container that unpacks it.

The image's data files stay: they would not fit into a ConfigMap.
"""

from __future__ import annotations

import base64
import copy
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from bench.errors import BadInput
from bench.targets.k8s.kubectl import Object
from bench.targets.k8s.rendering import pod_templates, ray_cluster

CONFIG_MAP = "sent-code"
ARCHIVE = "bench.tar.xz"
FOLDER = "/code"
DATA = "*.gz"
IMAGE_DATA = "/opt/raymeter/bench/data"  # where images/ray/Dockerfile puts it
MOST_BYTES = 700_000  # as base64 it must fit into a ConfigMap of 1 MiB
_UNPACK = f"python -m tarfile -e /{CONFIG_MAP}/{ARCHIVE} {FOLDER}; cp {IMAGE_DATA}/{DATA} {FOLDER}/bench/data/"


def pack(source: Path) -> bytes:
    """A reproducible archive of the package in `source`. Raises BadInput if it is too large to be sent."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and not path.match(DATA):
                entry = tarfile.TarInfo(str(Path(source.name) / path.relative_to(source)))
                entry.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(entry, file)
    content = packed.getvalue()
    if len(content) > MOST_BYTES:
        raise BadInput(
            f"--dev can send {MOST_BYTES} bytes of code, and there are {len(content)}.", "Build the image: task image."
        )
    return content


def with_code(rendered: Iterable[Object], archive: bytes) -> list[Object]:
    """The manifests, changed so that every Ray pod runs the code in `archive`."""
    objects = [copy.deepcopy(resource) for resource in rendered]
    cluster = ray_cluster(objects)
    for template in pod_templates(cluster).values():
        _unpack_in(template["spec"])
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": cluster["metadata"]["namespace"]},
        "binaryData": {ARCHIVE: base64.b64encode(archive).decode()},
    }
    return [*objects, config_map]


def _unpack_in(pod: Object) -> None:
    ray = pod["containers"][0]
    limits = {"cpu": "200m", "memory": "128Mi", "ephemeral-storage": "64Mi"}
    mount = {"name": "code", "mountPath": FOLDER}
    pod["volumes"] += [
        {"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}},
        {"name": "code", "emptyDir": {"sizeLimit": "64Mi"}},
    ]
    unpack = {
        "name": "unpack-code",
        "image": ray["image"],
        "imagePullPolicy": ray["imagePullPolicy"],
        "command": ["sh", "-ec", _UNPACK],
        "securityContext": ray["securityContext"],
        "resources": {"requests": dict(limits), "limits": dict(limits)},
        "volumeMounts": [mount, {"name": CONFIG_MAP, "mountPath": f"/{CONFIG_MAP}"}],
    }
    pod.setdefault("initContainers", []).append(unpack)
    for container in pod["containers"]:
        container["env"].append({"name": "PYTHONPATH", "value": FOLDER})
        container["volumeMounts"].append(mount)
