"""The quiet check before each block: waits a while for this machine to be quiet, and says what it was like when the block began.

It looks at the machine that the session runs on, which is the nodes' too on the target local, on a Docker engine and in
kind. The kernel's averages over 10 s would still hold the block before, so both figures are of the look itself. What the
deployment uses itself is no reason to wait: nothing of a session runs then, so that is what it uses at rest, and waiting would not
end it. It is counted in the look, of the deployment's own processes or containers. Kubernetes nodes hold others' pods too: what they
use was measured when the deployment was made, and that is taken off.
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
MOST_BUSY = 0.15  # of all CPUs
MOST_PRESSURE = 0.05  # of the time
WAIT_SECONDS = 60.0
WAIT_VARIABLE = "RAYMETER_QUIET_CHECK_SECONDS"


@dataclass(frozen=True)
class Look:
    """Shares of all CPUs, and of the time in which some task waited for one. None: not to be seen here."""

    busy: float | None
    pressure: float | None
    deployment: float = 0.0  # what the deployment uses of all CPUs at rest

    @property
    def busy_beyond(self) -> float | None:
        """Share of all CPUs that is busy with anything but the deployment at rest."""
        return None if self.busy is None else max(self.busy - self.deployment, 0.0)

    @property
    def pressure_beyond(self) -> float | None:
        """Share of the time in which some task waited, as far as it is not the deployment that held the CPUs."""
        if self.pressure is None or not self.busy or self.busy_beyond is None:
            return self.pressure
        return self.pressure * self.busy_beyond / self.busy

    @property
    def is_quiet(self) -> bool:
        """Whether a block may begin; what cannot be seen is no reason against it."""
        return (self.busy_beyond or 0.0) < MOST_BUSY and (self.pressure_beyond or 0.0) < MOST_PRESSURE

    @property
    def words(self) -> str:
        """What was seen, and how much of it is too much."""
        parts = []
        beyond = f" beyond the {self.deployment:.0%} of the deployment itself" if self.deployment else ""
        if self.busy_beyond is not None:
            parts.append(f"{self.busy_beyond:.0%} of all CPUs are busy{beyond} (less than {MOST_BUSY:.0%} is quiet)")
        if self.pressure_beyond is not None:
            parts.append(f"tasks wait for a CPU {self.pressure_beyond:.0%} of the time (less than {MOST_PRESSURE:.0%})")
        return ", ".join(parts) or "neither load nor pressure can be seen here"


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """How what a deployment uses is known: counted in a look, and what was measured at rest of what cannot be counted."""

    cpu_seconds: Callable[[], float | None] = lambda: None  # so far; None: not to be counted
    cpus_at_rest: float = 0.0

    @classmethod
    def of(cls, target: Target) -> Self:
        """That of a target; nothing where none is up."""
        load = target.idle_load()
        return cls(cpu_seconds=target.cpu_seconds, cpus_at_rest=load.cpus + load.ray_cpus if load else 0.0)


def look(pause: Callable[[float], object], *deployments: Deployment) -> Look:
    """Look at this machine for as long as `pause` takes. What `deployments` use is told apart."""
    used_before = [each.cpu_seconds() for each in deployments]  # outside the look: counting takes CPU time too
    before, since = read_host(()), monotonic()
    pause(LOOK_SECONDS)
    after, seconds = read_host(()), monotonic() - since
    of_all = seconds * (os.cpu_count() or 1)
    used = [
        _share(then, each.cpu_seconds(), of_all) or 0.0 for then, each in zip(used_before, deployments, strict=True)
    ]
    at_rest = math.fsum(each.cpus_at_rest for each in deployments) / (os.cpu_count() or 1)
    return Look(
        busy=_share(before.host_busy_seconds, after.host_busy_seconds, of_all),
        pressure=_share(before.pressure_cpu_seconds, after.pressure_cpu_seconds, seconds),
        deployment=math.fsum([*used, at_rest]),
    )


def _share(before: float | None, after: float | None, of: float) -> float | None:
    return None if before is None or after is None else min(max(after - before, 0.0) / of, 1.0)


def longest_wait() -> float:
    """Seconds that a block may wait. Raises BadInput where the environment says something that cannot be meant."""
    said = os.environ.get(WAIT_VARIABLE)
    try:
        seconds = WAIT_SECONDS if said is None else float(said)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BadInput(f"{WAIT_VARIABLE}={said} is no time to wait.", "Give seconds; 0 does not wait.")
    return seconds


def wait_for_quiet(
    stop: Event, tell: Callable[[str], None], *, most_seconds: float = math.inf, deployment: Deployment
) -> QuietCheck:
    """Look at this machine until it is quiet, the time is up, or `stop` is set. `tell` hears why there is a wait.

    It waits no longer than `most_seconds`, which are left of a budget.
    """
    longest, since, is_told = min(longest_wait(), most_seconds), monotonic(), False
    while True:
        waited = monotonic() - since
        seen = look(stop.wait, deployment)
        if seen.is_quiet or waited >= longest or stop.is_set():
            break
        if not is_told:
            tell(f"waits up to {longest:.0f} s for a quiet machine: {seen.words}")
            is_told = True
    if not seen.is_quiet and not stop.is_set():
        tell(f"begins on a busy machine, and the record says so: {seen.words}")
    return QuietCheck(
        is_quiet=seen.is_quiet,
        waited_seconds=round(waited, 3),
        busy=seen.busy,
        pressure=seen.pressure,
        boot_id=_boot_id(),
        deployment_cpus=round(seen.deployment * (os.cpu_count() or 1), 4),
    )


def _boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    return path.read_text().strip() if path.exists() else ""
