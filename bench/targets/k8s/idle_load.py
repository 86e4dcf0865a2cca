"""Measures the CPUs that a deployment uses at rest, if the Kubernetes nodes are containers of this machine's engine.

kind's nodes are, and those of minikube with its docker driver: such a container holds kubelet, containerd, the API server and
all pods. The engine counts each container's CPU time, so that other load of this machine is not included. If the nodes are on
other machines, nothing is measured, and nothing is subtracted.
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

SETTLE_SECONDS = 10.0  # until Ray's workers and the pods' first probes are done
WINDOW_SECONDS = 1.0
WINDOWS = 11  # the median of so many: a pod's probe, or a command that asks it, is in some of them
# A container sees its own control group as the root, in version 1 and 2.
CPU_TIME = ("sh", "-c", "cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null; true")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """CPU seconds so far, and when they were read on the monotonic clock."""

    at: float
    cpu_seconds: float
    names: frozenset[str] = frozenset()  # of the counted pods


def measure(
    nodes: Sequence[str],
    ask_pods: Callable[[Sequence[str]], Mapping[str, str]],
    *,
    pause: Callable[[float], None] = time.sleep,
) -> IdleLoad | None:
    """CPUs that the containers `nodes` use now; `ask_pods` runs a command in Ray's pods. None if they cannot be counted."""
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


def split(total: float, ray: float) -> IdleLoad:
    """CPUs of all containers, split into Ray's pods and everything beside them."""
    return IdleLoad(cpus=round(max(total - ray, 0.0), 4), ray_cpus=round(min(ray, total), 4))


def rates(readings: Sequence[Reading]) -> list[float]:
    """CPUs used between each reading and the next."""
    return [(after.cpu_seconds - before.cpu_seconds) / (after.at - before.at) for before, after in pairwise(readings)]


def seconds_of(text: str) -> float:
    """CPU seconds in the output of CPU_TIME: microseconds in control groups version 2, nanoseconds in version 1."""
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
    """The containers of the nodes. Raises TargetFailed if a node is not a container of this engine."""
    client = engine.connect()
    with engine.translate_errors("the containers of the Kubernetes nodes"):
        return [client.containers.get(name) for name in nodes]


def _read(containers: Sequence[Container]) -> Reading:
    return Reading(cpu_seconds=engine.cpu_seconds(containers), at=time.monotonic())
