"""Waits before each block, for a limited time, until the machine is quiet, and records how busy it was when the block began.

Checked is the machine that runs the session, which is also the nodes' machine on the targets local and docker, and in kind. Both
figures are counted over LOOK_SECONDS: the kernel's averages over 10 s would still contain the block before. What the deployment
itself uses at rest is no reason to wait, for waiting does not end it. It is counted from the deployment's own processes or
containers; on Kubernetes, whose nodes hold other pods too, it was measured when the deployment was made. It is subtracted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Self

from bench.errors import BadInput
from bench.machine.counters import read_host
from bench.model import QuietCheck
from bench.targets import Target

LOOK_SECONDS = 0.5
MOST_BUSY = 0.15  # share of all CPUs
MOST_PRESSURE = 0.05  # share of the time
WAIT_SECONDS = 60.0
WAIT_VARIABLE = "RAYMETER_QUIET_CHECK_SECONDS"


@dataclass(frozen=True)
class Look:
    """How busy the machine was in one look: shares of all CPUs, and of the time in which tasks waited for one. None: unknown."""

    busy: float | None
    pressure: float | None
    deployment: float = 0.0  # share of all CPUs that the deployment uses at rest

    @property
    def busy_beyond(self) -> float | None:
        """Share of all CPUs that is busy with anything else than the deployment at rest."""
        return None if self.busy is None else max(self.busy - self.deployment, 0.0)

    @property
    def pressure_beyond(self) -> float | None:
        """Share of the time in which tasks waited for a CPU, less the part that the deployment itself causes."""
        if self.pressure is None or not self.busy or self.busy_beyond is None:
            return self.pressure
        return self.pressure * self.busy_beyond / self.busy

    @property
    def is_quiet(self) -> bool:
        """Whether a block may begin; unknown figures do not prevent it."""
        return (self.busy_beyond or 0.0) < MOST_BUSY and (self.pressure_beyond or 0.0) < MOST_PRESSURE

    @property
    def description(self) -> str:
        """Describe what was measured, with the limits."""
        parts = []
        beyond = f" beyond the {self.deployment:.0%} of the deployment itself" if self.deployment else ""
        if self.busy_beyond is not None:
            parts.append(f"{self.busy_beyond:.0%} of all CPUs are busy{beyond} (less than {MOST_BUSY:.0%} is quiet)")
        if self.pressure_beyond is not None:
            parts.append(f"tasks wait for a CPU {self.pressure_beyond:.0%} of the time (less than {MOST_PRESSURE:.0%})")
        return ", ".join(parts) or "neither load nor pressure can be seen here"


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """How the CPU use of a deployment at rest is known: counted during a look, or measured before if it cannot be counted."""

    cpu_seconds: Callable[[], float | None] = lambda: None  # used so far; None: cannot be counted
    cpus_at_rest: float = 0.0

    @classmethod
    def of(cls, target: Target) -> Self:
        """Return that of a target; without use if the target has none up."""
        load = target.idle_load()
        return cls(cpu_seconds=target.cpu_seconds, cpus_at_rest=load.cpus + load.ray_cpus if load else 0.0)


def look(pause: Callable[[float], object], *deployments: Deployment) -> Look:
    """Measure this machine while `pause` lasts. What `deployments` use is counted separately."""
    used_before = [
        deployment.cpu_seconds() for deployment in deployments
    ]  # before the look: counting takes CPU time too
    before, since = read_host(()), monotonic()
    pause(LOOK_SECONDS)
    after, seconds = read_host(()), monotonic() - since
    of_all = seconds * (os.cpu_count() or 1)
    used = [
        _share(earlier, deployment.cpu_seconds(), of_all) or 0.0
        for earlier, deployment in zip(used_before, deployments, strict=True)
    ]
    at_rest = math.fsum(deployment.cpus_at_rest for deployment in deployments) / (os.cpu_count() or 1)
    return Look(
        busy=_share(before.host_busy_seconds, after.host_busy_seconds, of_all),
        pressure=_share(before.pressure_cpu_seconds, after.pressure_cpu_seconds, seconds),
        deployment=math.fsum([*used, at_rest]),
    )


def _share(before: float | None, after: float | None, of: float) -> float | None:
    return None if before is None or after is None else min(max(after - before, 0.0) / of, 1.0)


def longest_wait() -> float:
    """Return the seconds that a block may wait at most. Raises BadInput if the environment variable is not a duration."""
    text = os.environ.get(WAIT_VARIABLE)
    try:
        seconds = WAIT_SECONDS if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BadInput(
            f"{WAIT_VARIABLE} must be a number of seconds from 0, got {text!r}.", "0 starts blocks without waiting."
        )
    return seconds


def wait_for_quiet(
    stop: Event, tell: Callable[[str], None], *, most_seconds: float = math.inf, deployment: Deployment
) -> QuietCheck:
    """Measure this machine until it is quiet, the time is up, or `stop` is set. `tell` is called with the reason of a wait.

    `most_seconds` limits the wait: it is what is left of a time budget.
    """
    longest, since, is_announced = min(longest_wait(), most_seconds), monotonic(), False
    while True:
        waited = monotonic() - since
        state = look(stop.wait, deployment)
        if state.is_quiet or waited >= longest or stop.is_set():
            break
        if not is_announced:
            tell(f"waits up to {longest:.0f} s for a quiet machine: {state.description}")
            is_announced = True
    if not state.is_quiet and not stop.is_set():
        tell(f"begins on a busy machine, and the record says so: {state.description}")
    return QuietCheck(
        is_quiet=state.is_quiet,
        waited_seconds=round(waited, 3),
        busy=state.busy,
        pressure=state.pressure,
        boot_id=_boot_id(),
        deployment_cpus=round(state.deployment * (os.cpu_count() or 1), 4),
    )


def _boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    return path.read_text().strip() if path.exists() else ""
