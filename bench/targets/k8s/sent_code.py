"""The caller's own code, sent to the pods in place of the image's: a ConfigMap, and an init container that unpacks it."""

from __future__ import annotations

import base64
import copy
import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

from bench.errors import BadInput
from bench.targets.k8s.kubectl import Object
from bench.targets.k8s.rendering import pod_templates, ray_cluster

CONFIG_MAP = "sent-code"
ARCHIVE = "bench.zip"
FOLDER = "/code"
MOST_BYTES = 700_000  # as base64 it must fit into a ConfigMap of 1 MiB
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same code is the same archive


def pack(source: Path) -> bytes:
    """The package in `source` as an archive. Raises BadInput where it is too large to be sent."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = str(Path(source.name) / path.relative_to(source))
                archive.writestr(zipfile.ZipInfo(name, _WHEN), path.read_bytes(), zipfile.ZIP_DEFLATED)
    content = packed.getvalue()
    if len(content) > MOST_BYTES:
        raise BadInput(f"--dev: the code is {len(content)} bytes, and {MOST_BYTES} can be sent.", "Build the image.")
    return content


def with_code(rendered: Iterable[Object], archive: bytes) -> list[Object]:
    """The manifests, with every Ray pod running the code in `archive`."""
    objects = [copy.deepcopy(each) for each in rendered]
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
    pod["initContainers"] = [
        {
            "name": "unpack-code",
            "image": ray["image"],
            "imagePullPolicy": ray["imagePullPolicy"],
            "command": ["python", "-m", "zipfile", "-e", f"/{CONFIG_MAP}/{ARCHIVE}", FOLDER],
            "securityContext": ray["securityContext"],
            "resources": {"requests": dict(limits), "limits": dict(limits)},
            "volumeMounts": [mount, {"name": CONFIG_MAP, "mountPath": f"/{CONFIG_MAP}"}],
        }
    ]
    for container in pod["containers"]:
        container["env"].append({"name": "PYTHONPATH", "value": FOLDER})
        container["volumeMounts"].append(mount)
