"""Makes a Kubernetes RayJob of an experiment from the deployment's manifests, for use without the command line."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from bench.errors import BadInput
from bench.identity import CALLERS_CODE, code_hash
from bench.model import Session, Spec
from bench.runner import jobs_api
from bench.targets.k8s.kubectl import Object
from bench.targets.k8s.rendering import pod_templates, ray_cluster

LONGEST_NAME = 47  # characters that KubeRay allows in a RayJob's name
START_SECONDS = 600  # for images, pods and Ray to start


def specs_of(session: Session, topology: str) -> list[Spec]:
    """Return the Specs of a plan's first block on one topology."""
    return [spec for spec in session.specs if spec.topology.name == topology and spec.block == 1]


def rayjob(rendered: Iterable[Object], specs: Sequence[Spec], *, name: str, token: str) -> list[Object]:
    """Return a namespace, its network policies, a token, and the RayJob that runs `specs` one after the other on its own cluster.

    `rendered` are the manifests of the topology. Nothing is deleted after the job's end: its record is in the pod.
    """
    if len(name) > LONGEST_NAME:
        raise BadInput(f"{name} is too long for a RayJob.", f"It may have {LONGEST_NAME} characters.")
    objects = list(rendered)
    cluster = copy.deepcopy(ray_cluster(objects))
    metadata = {**cluster["metadata"], "name": name}
    spec = cluster["spec"]
    spec["authOptions"]["secretName"] = name
    for template in pod_templates(cluster).values():
        for container in template["spec"]["containers"]:
            _take_token_from(container, name)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "labels": dict(metadata.get("labels", {}))},
        "stringData": {"auth_token": token},
    }
    job = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": metadata,
        "spec": {
            # KubeRay calls the Jobs API itself: a submitter pod would need half a CPU beside the measured ones.
            "submissionMode": "HTTPMode",
            "jobId": f"{specs[0].session}.{name}",
            "entrypoint": entrypoint(specs),
            "metadata": {"session": specs[0].session, "experiment": specs[0].experiment},
            # A run is done once: a second one on a new cluster would be another run with the same name.
            "backoffLimit": 0,
            "activeDeadlineSeconds": START_SECONDS + round(sum(spec.deadline_seconds for spec in specs)),
            "shutdownAfterJobFinishes": False,
            "rayClusterSpec": spec,
        },
    }
    needed = [item for item in objects if item["kind"] in ("Namespace", "NetworkPolicy", "ConfigMap")]
    return [*(item for item in needed if not _is_monitoring(item)), secret, job]


def entrypoint(specs: Sequence[Spec]) -> str:
    """Return the command that runs `specs` in turn. It stops at the first failure, and fails if the image has other code."""
    return " && ".join(jobs_api.entrypoint(spec, environment={CALLERS_CODE: code_hash()}) for spec in specs)


def _is_monitoring(item: Object) -> bool:
    """Whether an object belongs to the monitoring, which is not part of a job."""
    labels = item["metadata"].get("labels", {})
    return bool(labels.get("app.kubernetes.io/component") == "monitoring")


def _take_token_from(container: Object, secret: str) -> None:
    for variable in container["env"]:
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        if reference is not None:
            reference["name"] = secret
