"""Measures the CPUs that a deployment uses at rest, where the Kubernetes nodes are containers of this machine's engine.

kind's nodes are, and those of minikube with its docker driver: such a container holds kubelet, containerd, the API server and
all pods. The engine counts each container's CPU time, so that nothing else of this machine is in the figure. Nodes on other
machines are not seen, and nothing is taken off there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from bench.errors import BenchError, TargetFailed
from bench.model import IdleLoad
from bench.targets.docker import engine

if TYPE_CHECKING:
    from docker.models.containers import Container

SETTLE_SECONDS = 10.0  # what was just started comes to rest: Ray's workers, the pods' first probes
WINDOW_SECONDS = 1.0
WINDOWS = 11  # the median of so many: a pod's probe, or a command that asks it, is in some of them
# The container's own group is the root of what it sees, whichever kind of control groups there is.
CPU_TIME = ("sh", "-c", "cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null; true")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """CPU seconds so far, of a moment on the monotonic clock."""

    at: float
    cpu_seconds: float
    names: frozenset[str] = frozenset()  # of those that were counted


def measure(
    nodes: Sequence[str],
    ask_pods: Callable[[Sequence[str]], Mapping[str, str]],
    *,
    pause: Callable[[float], None] = time.sleep,
) -> IdleLoad | None:
    """What containers called `nodes` use now; `ask_pods` runs a command in Ray's. None where it cannot be counted."""
    with suppress(BenchError):
        containers = _containers(nodes)
        pause(SETTLE_SECONDS)
        ray_before = _of_ray(ask_pods)
        readings = [_read(containers)]
        for _ in range(WINDOWS):
            pause(WINDOW_SECONDS)
            readings.append(_read(containers))
        ray_after = _of_ray(ask_pods)
        if ray_after.names != ray_before.names:
            return None  # a pod did not answer
        (ray,) = rates([ray_before, ray_after])
        return split(median(rates(readings)), ray)
    return None


def split(whole: float, ray: float) -> IdleLoad:
    """CPUs of all containers, parted into what Ray's nodes use and what stands beside them."""
    return IdleLoad(cpus=round(max(whole - ray, 0.0), 4), ray_cpus=round(min(ray, whole), 4))


def rates(readings: Sequence[Reading]) -> list[float]:
    """CPUs used between each reading and the next."""
    return [(after.cpu_seconds - before.cpu_seconds) / (after.at - before.at) for before, after in pairwise(readings)]


def seconds_of(text: str) -> float:
    """CPU seconds by what CPU_TIME prints: microseconds of the one kind of control groups, nanoseconds of the other."""
    for line in text.splitlines():
        name, _, number = line.partition(" ")
        if name == "usage_usec":
            return int(number) / 1e6
        if name.isdigit():
            return int(name) / 1e9
    raise TargetFailed("The CPU time of a pod cannot be read.")


def _of_ray(ask_pods: Callable[[Sequence[str]], Mapping[str, str]]) -> Reading:
    answers = ask_pods(CPU_TIME)
    used = sum(map(seconds_of, answers.values()))
    return Reading(at=time.monotonic(), cpu_seconds=used, names=frozenset(answers))


def _containers(nodes: Sequence[str]) -> list[Container]:
    """Those that are called as the nodes are. Raises TargetFailed where a node is none of this engine's containers."""
    client = engine.connect()
    with engine.translate_errors("the containers of the Kubernetes nodes"):
        return [client.containers.get(name) for name in nodes]


def _read(containers: Sequence[Container]) -> Reading:
    return Reading(cpu_seconds=engine.cpu_seconds(containers), at=time.monotonic())
