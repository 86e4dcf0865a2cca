"""Explains from pods and events why a deployment does not start, in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.counts import plural
from bench.errors import BenchError, DoesNotFit, TargetFailed
from bench.targets import link
from bench.targets.k8s.fitting import Place
from bench.targets.k8s.kubectl import Object
from bench.targets.k8s.rendering import LIMIT_LINK, requests

# Not ErrImagePull: the first failure may pass, and is retried at once.
_UNPULLABLE = ("ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_BROKEN = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff")
LOOK = "See `kubectl get events`."
_PULL = "Build it with `task image`, or name one that the cluster can pull: --image."
_PULL_OF_OTHERS = "Let the nodes reach its registry, or load it onto them: kind load docker-image, minikube image load."


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A failure that does not end by waiting, and a hint."""

    what: str
    hint: str = LOOK
    is_room: bool = False  # whether resources are missing
    log_of: tuple[str, str] | None = None  # the pod and container whose log has the reason

    def error(self) -> BenchError:
        """The failure as an exception."""
        return (DoesNotFit if self.is_room else TargetFailed)(f"{self.what}.", self.hint)


def trouble(pods: Sequence[Object], events: Iterable[Object], nodes: Sequence[Place] = ()) -> Trouble | None:
    """The first failure in pods and events; None without one."""
    for pod in pods:
        for first in _of_pod(pod, nodes):
            return first
    for event in events:
        if event.get("type") == "Warning" and event.get("reason", "").startswith(("FailedCreate", "FailedToCreate")):
            about = event["involvedObject"]
            what = f"{about['kind']} {about['name']}: its pods cannot be created: {_last(event)}"
            is_of_link = LIMIT_LINK in what or "NET_ADMIN" in what
            return Trouble(what=what, hint=link.HINT if is_of_link else LOOK)
    return None


def restart(pods: Sequence[Object]) -> Trouble | None:
    """The first container that was restarted, which loses what ran in it."""
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses", []):
            if times := container.get("restartCount", 0):
                end = container.get("lastState", {}).get("terminated") or {}
                reason = f" after {end.get('reason', '')}, exit code {end['exitCode']}" if "exitCode" in end else ""
                where = pod["spec"].get("nodeName", "no node")
                what = f"{name_of(pod)}: its container {container['name']} was restarted on {where}{reason}"
                return Trouble(what=what + (f", {times} times" if times > 1 else ""))
    return None


def waiting(pods: Sequence[Object], events: Iterable[Object]) -> str:
    """The last event of each pod that is not ready, for the error at a deadline."""
    last: dict[str, str] = {}
    for event in sorted(events, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or ""):
        last[event["involvedObject"]["name"]] = f"{event.get('reason', '')}: {_last(event)}"
    late = [pod for pod in pods if not is_ready(pod)]
    return "; ".join(
        f"{name_of(pod)} is {_phase(pod)} ({last.get(pod['metadata']['name'], 'no event')})" for pod in late
    )


def is_ready(pod: Object) -> bool:
    """Whether all of its containers run and answer their probes."""
    return _conditions(pod).get("Ready", {}).get("status") == "True" and not pod["metadata"].get("deletionTimestamp")


def name_of(pod: Object) -> str:
    """The Ray node of a pod; the pod's name if it is none."""
    return str(pod["metadata"].get("labels", {}).get("raymeter.io/node") or pod["metadata"]["name"])


def _of_pod(pod: Object, nodes: Sequence[Place]) -> Iterator[Trouble]:
    status, name = pod.get("status", {}), name_of(pod)
    where = pod["spec"].get("nodeName", "no node")
    if status.get("phase") == "Failed":
        reason = f"{status.get('reason', '')} {_flat(status.get('message', ''))}".strip()
        yield Trouble(what=f"{name} was ended on {where}: {reason}")
    scheduled = _conditions(pod).get("PodScheduled", {})
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        free = "".join(f"{_room(place)}; " for place in nodes)
        yield Trouble(
            what=f"{name} fits onto no node: it needs {_asked(pod)}; {free}{_flat(scheduled.get('message', ''))}",
            hint="Use fewer CPUs or less memory, or free some.",
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
            hint="Give the nodes more: --memory-mib.",
        )
    wait = container.get("state", {}).get("waiting") or {}
    reason, message = wait.get("reason", ""), _flat(wait.get("message", ""))
    if reason in _UNPULLABLE:
        yield Trouble(
            what=f"{who}image {container.get('image', '')} cannot be pulled on {where}: {message or reason}",
            hint=_PULL if "raymeter.io/node" in pod["metadata"].get("labels", {}) else _PULL_OF_OTHERS,
        )
    if reason in _BROKEN:
        code = f", exit code {ends[1]['exitCode']}" if "exitCode" in ends[1] else ""
        details = f" ({message})" if message else ""
        yield Trouble(
            what=f"{who}its container {name} does not start on {where}: {reason}{code}{details}",
            hint=link.HINT if name == LIMIT_LINK else LOOK,
            log_of=(str(pod["metadata"]["name"]), name),
        )


def _memory_limit(pod: Object, container: str) -> str:
    limits = [spec for spec in pod["spec"]["containers"] if spec["name"] == container]
    return str(limits[0].get("resources", {}).get("limits", {}).get("memory", "none")) if limits else "none"


def _asked(pod: Object) -> str:
    amounts = requests(pod["spec"])
    return f"{plural(amounts['cpu'], 'CPU')} and {amounts['memory'] / 2**30:.1f} GiB"


def _room(place: Place) -> str:
    if place.closed:
        return f"{place.name} {place.closed}"
    return f"{place.name} has {plural(place.free['cpu'], 'CPU')} and {place.free['memory'] / 2**30:.1f} GiB free"


def _phase(pod: Object) -> str:
    for container in (*pod.get("status", {}).get("initContainerStatuses", []),):
        if not (container.get("state", {}).get("terminated")):
            return f"waiting in {container['name']}"
    return str(pod.get("status", {}).get("phase", "Pending"))


def _conditions(pod: Object) -> Mapping[str, Object]:
    return {condition["type"]: condition for condition in pod.get("status", {}).get("conditions", [])}


def _last(event: Object) -> str:
    return _flat(str(event.get("message") or event.get("note") or ""))


def _flat(text: str) -> str:
    return " ".join(text.split())[:400].rstrip(".")
