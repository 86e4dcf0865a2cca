"""What pods and events say of why a deployment does not come up: one line each, for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.errors import BenchError, DoesNotFit, TargetFailed
from bench.targets.k8s.fitting import Place
from bench.targets.k8s.kubectl import Object
from bench.targets.k8s.rendering import requests

# Not ErrImagePull: the first failure may be a hiccup, and is tried again at once.
_UNPULLABLE = ("ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_BROKEN = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff")
LOOK = "See `kubectl get events`."
_PULL = "Build it with `task image`, or name one that the cluster can pull: --image."
_PULL_OF_OTHERS = "Let the nodes reach its registry, or load it onto them: kind load docker-image, minikube image load."


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Something that no waiting will mend, and the way out."""

    what: str
    way_out: str = LOOK
    is_room: bool = False  # that there is none
    log_of: tuple[str, str] | None = None  # the pod and container whose log has the reason

    def error(self) -> BenchError:
        """It as what is raised."""
        return (DoesNotFit if self.is_room else TargetFailed)(f"{self.what}.", self.way_out)


def trouble(pods: Sequence[Object], events: Iterable[Object], there: Sequence[Place] = ()) -> Trouble | None:
    """The first trouble that there is."""
    for pod in pods:
        for found in _of_pod(pod, there):
            return found
    for event in events:
        if event.get("type") == "Warning" and event.get("reason", "").startswith(("FailedCreate", "FailedToCreate")):
            about = event["involvedObject"]
            return Trouble(what=f"{about['kind']} {about['name']}: its pods are refused: {_last(event)}")
    return None


def restart(pods: Sequence[Object]) -> Trouble | None:
    """The first container that ended and was begun again: what was going on in it is lost."""
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses", []):
            if times := container.get("restartCount", 0):
                end = container.get("lastState", {}).get("terminated") or {}
                why = f" after {end.get('reason', '')}, exit code {end['exitCode']}" if "exitCode" in end else ""
                where = pod["spec"].get("nodeName", "no node")
                what = f"{name_of(pod)}: its container {container['name']} was restarted on {where}{why}"
                return Trouble(what=what + (f", {times} times" if times > 1 else ""))
    return None


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


def _of_pod(pod: Object, there: Sequence[Place]) -> Iterator[Trouble]:
    status, name = pod.get("status", {}), name_of(pod)
    where = pod["spec"].get("nodeName", "no node")
    if status.get("phase") == "Failed":
        why = f"{status.get('reason', '')} {_flat(status.get('message', ''))}".strip()
        yield Trouble(what=f"{name} was ended on {where}: {why}")
    scheduled = _conditions(pod).get("PodScheduled", {})
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        free = "".join(f"{_room(place)}; " for place in there)
        yield Trouble(
            what=f"{name} finds no node: it asks for {_asked(pod)}; {free}{_flat(scheduled.get('message', ''))}",
            way_out="Ask for less, or make room.",
            is_room=True,
        )
    for container in (*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])):
        yield from _of_container(container, pod, f"{name}: ", where)


def _of_container(container: Object, pod: Object, who: str, where: str) -> Iterator[Trouble]:
    name = container["name"]
    ends = [container.get(state, {}).get("terminated") or {} for state in ("state", "lastState")]
    if any(end.get("reason") == "OOMKilled" for end in ends):
        limit = _memory_limit(pod, name)
        yield Trouble(
            what=f"{who}its container {name} was killed on {where} for using more than its memory limit of {limit}",
            way_out="Give the nodes more: --memory-mib.",
        )
    wait = container.get("state", {}).get("waiting") or {}
    reason, message = wait.get("reason", ""), _flat(wait.get("message", ""))
    if reason in _UNPULLABLE:
        yield Trouble(
            what=f"{who}image {container.get('image', '')} cannot be had on {where}: {message or reason}",
            way_out=_PULL if "raymeter.io/node" in pod["metadata"].get("labels", {}) else _PULL_OF_OTHERS,
        )
    if reason in _BROKEN:
        code = f", exit code {ends[1]['exitCode']}" if "exitCode" in ends[1] else ""
        details = f" ({message})" if message else ""
        yield Trouble(
            what=f"{who}its container {name} does not start on {where}: {reason}{code}{details}",
            log_of=(str(pod["metadata"]["name"]), name),
        )


def _memory_limit(pod: Object, container: str) -> str:
    found = [each for each in pod["spec"]["containers"] if each["name"] == container]
    return str(found[0].get("resources", {}).get("limits", {}).get("memory", "none")) if found else "none"


def _asked(pod: Object) -> str:
    amounts = requests(pod["spec"])
    return f"{amounts['cpu']:g} CPUs and {amounts['memory'] / 2**30:.1f} GiB"


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
