"""`bench doctor` on how steady a machine is: what it finds in /proc and /sys, and what it says to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import doctor
from bench.doctor import steadiness
from bench.runner import quiet_check
from bench.runner.quiet_check import Look


def found(monkeypatch: pytest.MonkeyPatch, root: Path, files: dict[str, str], seen: Look) -> dict[str, doctor.Finding]:
    monkeypatch.setattr(quiet_check, "look", lambda _pause, *_deployments: seen)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return {each.about: each for each in steadiness.findings(root=root)}


LAPTOP = {
    "proc/cpuinfo": "flags : fpu sse\n",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
}
IDLE_CPU = "0 0 0 0 0 0 0"
CLOUD = {
    "proc/cpuinfo": "flags : fpu sse hypervisor\n",
    "proc/stat": "\n".join(
        (
            "cpu 900 0 0 0 0 0 0 100 0 0",
            *(f"cpu{n} {IDLE_CPU} {0 if n else 100} 0 0" for n in range(os.cpu_count() or 1)),
        )
    ),
}


def test_a_busy_machine_closes_the_quiet_check_and_a_quiet_one_opens_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(quiet_check.WAIT_VARIABLE, "60")
    closed = found(monkeypatch, tmp_path, LAPTOP, Look(0.5, 0.3))["quiet check"]
    assert (closed.level, closed.seen.partition(":")[0]) == ("note", "not passed")
    assert "wait up to 60 s" in closed.to_do
    opened = found(monkeypatch, tmp_path, LAPTOP, Look(0.01, 0.0))["quiet check"]
    assert (opened.level, opened.seen.partition(":")[0], opened.to_do) == ("good", "passed", "")


@pytest.mark.parametrize(("user", "hint"), [(0, "pyperf system tune"), (1000, "cpupower")])
def test_bare_metal_gets_hints_on_governor_and_turbo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, hint: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    seen = found(monkeypatch, tmp_path, LAPTOP, Look(0.0, 0.0))
    assert {seen["governor"].level, seen["turbo"].level} == {"note"}
    assert hint in seen["governor"].to_do
    assert "steal" not in seen


def test_a_virtual_machine_without_frequencies_is_no_error_and_its_steal_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = found(monkeypatch, tmp_path, CLOUD, Look(0.0, None))
    assert "10.0%" in seen["steal"].seen
    assert seen["steal"].level == "note"
    assert seen["pressure"].level == "note"
    assert seen["CPU frequency"].level == "good"
