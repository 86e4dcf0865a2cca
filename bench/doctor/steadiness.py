"""Checks how steady this machine is: the quiet check of a block, pressure, steal, governor and turbo."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.doctor.finding import Finding
from bench.machine.counters import read_host
from bench.runner import quiet_check
from bench.targets import Target

ROOT = Path("/")
PYPERF = "As root: `python -m pyperf system tune` (package pyperf) until the next start of the machine."
MOST_STEAL = 0.02  # of the CPU time since boot


def findings(wanted: Sequence[Target] = (), root: Path = ROOT) -> Iterator[Finding]:
    """Yield the quiet check, without the load of deployments on the targets, then the causes of results that vary over minutes."""
    yield _quiet_check(quiet_check.look(time.sleep, *map(quiet_check.Deployment.of, wanted)))
    yield _pressure(root / "proc")
    is_virtual = "hypervisor" in _text(root / "proc/cpuinfo")
    if is_virtual:
        yield _steal(root / "proc")
    yield from _frequency(root / "sys/devices/system/cpu", is_virtual=is_virtual)


def _quiet_check(state: quiet_check.Look) -> Finding:
    if state.is_quiet:
        return Finding("quiet check", "good", f"passed: {state.description}")
    wait = (
        f"A block would wait up to {quiet_check.longest_wait():.0f} s. End the programs that use the CPUs (see `top`)."
    )
    return Finding("quiet check", "note", f"not passed: {state.description}", wait)


def _pressure(proc: Path) -> Finding:
    if (proc / "pressure" / "cpu").exists():
        return Finding("pressure", "good", "the kernel counts it")
    hint = "Boot the kernel with psi=1; without it no block is excluded for CPU pressure."
    return Finding("pressure", "note", "the kernel does not count it", hint)


def _steal(proc: Path) -> Finding:
    counters = read_host(range(os.cpu_count() or 1), proc)
    if counters.steal_seconds is None or not counters.host_busy_seconds:
        return Finding("steal", "good", "virtual machine; steal is not counters")
    share = counters.steal_seconds / (counters.steal_seconds + counters.host_busy_seconds)
    hint = "Other machines share these CPUs; use a machine with dedicated CPUs." if share > MOST_STEAL else ""
    return Finding(
        "steal", "note" if hint else "good", f"virtual machine; {share:.1%} of the CPU time since boot was stolen", hint
    )


def _frequency(cpus: Path, *, is_virtual: bool) -> Iterator[Finding]:
    """Check governor and turbo. A virtual machine cannot set them, and most cannot see them."""
    can_tune = os.geteuid() == 0 and not is_virtual
    governors = sorted({_text(path) for path in cpus.glob("cpu*/cpufreq/scaling_governor")})
    if governors:
        steady = governors == ["performance"]
        hint = PYPERF if can_tune else "Set the governor, if you may: `cpupower frequency-set -g performance`."
        yield Finding("governor", "good" if steady else "note", ", ".join(governors), "" if steady else hint)
    no_turbo, boost = _text(cpus / "intel_pstate/no_turbo"), _text(cpus / "cpufreq/boost")
    if no_turbo or boost:
        is_on = no_turbo == "0" or boost == "1"
        hint = PYPERF if can_tune else "Turn it off, if you may; the clock then does not depend on heat and neighbours."
        yield Finding("turbo", "note" if is_on else "good", "on" if is_on else "off", hint if is_on else "")
    if not governors and not no_turbo and not boost:
        yield Finding("CPU frequency", "good", "governor and turbo are not visible here")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
