"""What pods and events say of why an appliance does not come up: one line each, for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.targets.fitting import Place
from bench.targets.kubectl import Object
from bench.targets.rendering import requests

_UNPULLABLE = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_BROKEN = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff")


def trouble(pods: Sequence[Object], events: Iterable[Object], there: Sequence[Place] = ()) -> str:
    """The first thing that no waiting will mend; empty where there is none."""
    for pod in pods:
        for text in _of_pod(pod, there):
            return text
    for event in events:
        if event.get("type") == "Warning" and event.get("reason", "").startswith("FailedCreate"):
            about = event["involvedObject"]
            return f"{about['kind']} {about['name']}: its pods are refused: {_last(event)}"
    return ""


def waiting(pods: Sequence[Object], events: Iterable[Object]) -> str:
    """What the pods that are not ready were last heard to do, for a deadline that has passed."""
    last: dict[str, str] = {}
    for event in sorted(events, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or ""):
        last[event["involvedObject"]["name"]] = f"{event.get('reason', '')}: {_last(event)}"
    late = [pod for pod in pods if not is_ready(pod)]
    return "; ".join(
        f"{name_of(pod)} is {_phase(pod)} ({last.get(pod['metadata']['name'], 'no event')})" for pod in late
    )


def is_ready(pod: Object) -> bool:
    """Whether all of its containers are up and answer their probes."""
    return _conditions(pod).get("Ready", {}).get("status") == "True" and not pod["metadata"].get("deletionTimestamp")


def name_of(pod: Object) -> str:
    """The node that a pod is; its own name where it is none."""
    return str(pod["metadata"].get("labels", {}).get("raymeter.io/node") or pod["metadata"]["name"])


def _of_pod(pod: Object, there: Sequence[Place]) -> Iterator[str]:
    status, name = pod.get("status", {}), name_of(pod)
    where = pod["spec"].get("nodeName", "no node")
    if status.get("phase") == "Failed":
        yield f"{name} was ended on {where}: {status.get('reason', '')} {status.get('message', '')}".rstrip()
    scheduled = _conditions(pod).get("PodScheduled", {})
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        yield f"{name} finds no node: it asks for {_asked(pod)}; {_free(there)}{_flat(scheduled.get('message', ''))}"
    containers = (*status.get("initContainerStatuses", []), *status.get("containerStatuses", []))
    for container in containers:
        yield from _of_container(container, pod, where)


def _of_container(container: Object, pod: Object, where: str) -> Iterator[str]:
    name, image = name_of(pod), container.get("image", "")
    for state in (container.get("state", {}), container.get("lastState", {})):
        if (state.get("terminated") or {}).get("reason") == "OOMKilled":
            yield (
                f"{name}: its container {container['name']} was killed on {where} for using more than its memory limit of"
                f" {_memory_limit(pod, container['name'])}"
            )
    wait = container.get("state", {}).get("waiting") or {}
    if wait.get("reason") in _UNPULLABLE:
        yield f"{name}: image {image} cannot be had on {where}: {_flat(wait.get('message', '')) or wait['reason']}"
    if wait.get("reason") in _BROKEN:
        ended = (container.get("lastState", {}).get("terminated") or {}).get("exitCode")
        code = f", exit code {ended}" if ended is not None else ""
        yield f"{name}: its container {container['name']} does not start on {where}: {wait['reason']}{code}" + (
            f" ({_flat(wait['message'])})" if wait.get("message") else ""
        )


def _memory_limit(pod: Object, container: str) -> str:
    found = [each for each in pod["spec"]["containers"] if each["name"] == container]
    return str(found[0].get("resources", {}).get("limits", {}).get("memory", "none")) if found else "none"


def _asked(pod: Object) -> str:
    amounts = requests(pod["spec"])
    return f"{amounts['cpu']:g} CPUs and {amounts['memory'] / 2**30:.1f} GiB"


def _free(there: Sequence[Place]) -> str:
    return "".join(f"{_room(place)}; " for place in there)


def _room(place: Place) -> str:
    if place.closed:
        return f"{place.name} {place.closed}"
    return f"{place.name} has {place.free['cpu']:g} CPUs and {place.free['memory'] / 2**30:.1f} GiB free"


def _phase(pod: Object) -> str:
    for container in (*pod.get("status", {}).get("initContainerStatuses", []),):
        if not (container.get("state", {}).get("terminated")):
            return f"waiting in {container['name']}"
    return str(pod.get("status", {}).get("phase", "Pending"))


def _conditions(pod: Object) -> Mapping[str, Object]:
    return {each["type"]: each for each in pod.get("status", {}).get("conditions", [])}


def _last(event: Object) -> str:
    return _flat(str(event.get("message") or event.get("note") or ""))


def _flat(text: str) -> str:
    return " ".join(text.split())[:400].rstrip(".")
