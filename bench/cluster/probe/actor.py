"""Inside: an actor on every node, which reads that node's counters at both ends of an interval and its peaks between."""

from __future__ import annotations

import os
import platform
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic, time
from typing import Any

from bench.cluster import profiling
from bench.cluster.probe import native
from bench.cluster.probe.counters import Counters, NodeReader, find_cgroup
from bench.cluster.probe.machine import settings, speed
from bench.cluster.probe.sampler import Sampler
from bench.identity import code_hash
from bench.machine import bytecode
from bench.machine.cores import cores, read_cpus
from bench.machine.effective_cpus import effective_cpus
from bench.model import NodeFacts
from bench.timeline import Timeline

PACKAGES = ("ray", "numpy", "torch", "tensorflow-cpu", "tensorflow", "scipy", "scikit-learn", "raymeter")
IMAGE_VARIABLES = {"base image": "RAYMETER_BASE_IMAGE", "lock": "RAYMETER_LOCK"}  # the image sets them
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Probe:
    """Watches the node that it runs on. One a node, without a CPU of its own."""

    def __init__(self) -> None:
        self._reader = NodeReader(os.environ)
        self._at_begin = self._reader.counters()
        self._sampler = Sampler(self._reader, self.name())

    def name(self) -> str:
        """The node's name, as its target gave it."""
        return os.environ["RAYMETER_NODE"]

    def time(self) -> float:
        """Seconds since the epoch, by this node's clock."""
        return time()

    def monotonic(self) -> float:
        """Seconds on this node's monotonic clock."""
        return monotonic()

    def begin(self) -> None:
        """The interval begins: note what has been counted so far, and watch for peaks."""
        self._at_begin = self._reader.counters()
        self._sampler.begin()

    def end(self) -> dict[str, Any]:
        """The interval is over: what was counted in it, by the names of NodeUsage's fields."""
        now = self._reader.counters()
        peaks = self._sampler.end()
        return {
            **difference(self._at_begin, now),
            "peak_memory_bytes": peaks.memory_bytes,
            "peak_cpus": peaks.cpus,
            "peak_bytes_per_second": peaks.bytes_per_second,
            **speed(os.sched_getaffinity(0)),
        }

    def pause(self) -> None:
        """Watch nothing, and use nothing, until `resume`."""
        self._sampler.pause()

    def resume(self) -> None:
        """Watch again."""
        self._sampler.resume()

    def timeline(self) -> Timeline:
        """What the node has used since this probe began, on its own monotonic clock. It watches no more."""
        return self._sampler.finish()

    def why_no_profiler(self, profiler: str) -> str:
        """Why `profiler` cannot be used on this node; nothing: it can."""
        return profiling.why_unavailable(profiler)

    def profile(self, profiler: str, run: str) -> str:
        """What the workers on this node were seen at, added up, as collapsed lines."""
        return profiling.read(profiler, profiling.folder_of(run) / "workers")

    def facts(self, *, cpus_granted: int, object_store_bytes: int) -> NodeFacts:
        """What must be equal for this node's numbers to be compared."""
        cpus = effective_cpus()
        return NodeFacts(
            node=self.name(),
            boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            kernel=platform.release(),
            cpu_model=_cpu_model(),
            machine=platform.machine(),
            cpus_granted=cpus_granted,
            cpus_allowed=len(cpus.allowed),
            cpu_quota=cpus.quota,
            cpus_effective=cpus.count,
            cores=cores(read_cpus(cpus.allowed)),
            memory_limit_bytes=find_cgroup(os.environ).memory_limit_bytes(),
            object_store_bytes=object_store_bytes,
            shared_memory_bytes=_shared_memory_bytes(),
            threads={name: os.environ.get(name, "unset") for name in THREAD_VARIABLES},
            versions={"python": platform.python_version(), **_versions()},
            code_hash=code_hash(),
            image_digest=os.environ.get("RAYMETER_IMAGE_DIGEST"),
            ray_environment={name: value for name, value in sorted(os.environ.items()) if _configures_ray(name)},
            settings={**settings(), **bytecode.setting(), **native.libraries(), **native.variables(os.environ)},
        )


def difference(before: Counters, after: Counters) -> dict[str, float | int | None]:
    """What was counted from `before` to `after`. A count that fell, as processes ended, is not known."""
    counted: dict[str, float | int | None] = {}
    for field in fields(Counters):
        first, last = getattr(before, field.name), getattr(after, field.name)
        counted[field.name] = last - first if first is not None and last is not None and last >= first else None
    return counted


def _configures_ray(name: str) -> bool:
    """Ray's settings are RAY_lower_case; those in capitals are different on every node, or secret."""
    return name == "RAY_AUTH_MODE" or (name.startswith("RAY_") and name[4:5].islower())


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found | {name: os.environ[variable] for name, variable in IMAGE_VARIABLES.items() if variable in os.environ}


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _shared_memory_bytes() -> int:
    shared = os.statvfs("/dev/shm")
    return shared.f_blocks * shared.f_frsize
