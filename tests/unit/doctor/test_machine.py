"""What the doctor says of this machine and of a cluster, by what it sees: one line each, and what to do."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from builders import a_topology
from fakes import running
from machines import ALL

from bench import doctor
from bench.doctor.finding import Finding
from bench.machine import bytecode
from bench.machine.cores import read_cpus
from bench.machine.effective_cpus import EffectiveCpus
from bench.targets import Cluster
from bench.targets.local.run_folders import Parent

TOKEN = "of-the-doctor"


def levels(findings: Iterator[Finding]) -> dict[str, str]:
    return {finding.about: finding.level for finding in findings}


def disks(**free_bytes: int) -> Callable[[object], object]:
    """`disk_usage`, where the folders whose names end so have so much free, and all others plenty."""

    def usage(folder: object) -> object:
        free = next((free for name, free in free_bytes.items() if str(folder).endswith(name)), 2**40)
        return SimpleNamespace(total=2**40, used=0, free=free)

    return usage


@pytest.mark.parametrize(
    ("free_bytes", "bad"), [({}, set()), ({"shm": 64 * 2**20}, {"/dev/shm"}), ({"temp": 2**20}, {"Ray's files"})]
)
def test_a_disk_without_room_is_named(
    monkeypatch: pytest.MonkeyPatch, free_bytes: dict[str, int], bad: set[str]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", disks(**free_bytes))
    monkeypatch.setattr(doctor.run_folders, "choose", lambda: Parent("/some/temp"))
    found = list(doctor.machine())
    assert {finding.about for finding in found if finding.level == "bad"} == bad
    assert all(finding.to_do for finding in found if finding.level == "bad")


@pytest.mark.parametrize(
    ("machine", "quota", "level", "seen"),
    [
        ("small VM", None, "good", "2 of {all} can be used"),
        ("small VM", 1.0, "note", "1 of {all} can be used, the CPU quota is 1"),
        ("Xeon", 2.5, "note", "2.5 of {all} can be used, the CPU quota is 2.5, threads of 16 cores"),
        ("VM of one core", None, "good", "2 of {all} can be used, threads of 1 core"),
        (
            "i7-12700", None, "good",
            "20 of {all} can be used, threads of 12 cores, 8 performance 4.9 GHz cores and 4 efficiency 3.6 GHz cores",
        ),
    ],
)  # fmt: skip
def test_cpus_are_told_with_what_limits_them_and_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, quota: float | None, level: str, seen: str
) -> None:
    root = ALL[machine].write(tmp_path)
    there = EffectiveCpus(allowed=tuple(range(ALL[machine].cpus)), quota=quota)
    monkeypatch.setattr(doctor, "effective_cpus", lambda: there)
    monkeypatch.setattr(doctor, "read_cpus", lambda numbers: read_cpus(numbers, root))
    found = next(doctor.machine())
    assert (found.about, found.level, found.seen) == ("CPUs", level, seen.format(all=os.cpu_count()))
    assert bool(found.to_do) == (level != "good")


@pytest.mark.parametrize(
    ("offsets", "level", "seen"),
    [
        ({"head": 0.0, "Prometheus": 0.9}, "good", "head and Prometheus within 1 s of this machine's"),
        ({"head": 0.0, "Prometheus": -2.0}, "bad", "the clock of Prometheus is 2.0 s behind this machine's"),
        ({}, "note", "neither head nor Prometheus answered with a time"),
    ],
)
def test_clocks_that_are_apart_are_bad(offsets: Mapping[str, float], level: str, seen: str) -> None:
    found = doctor.clocks(offsets)
    assert (found.about, found.level, found.seen) == ("clocks", level, seen)
    assert bool(found.to_do) == (level != "good")


def test_a_temporary_folder_that_ray_cannot_use_is_noted_with_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", f"/tmp/{'x' * 100}")
    found = doctor.rays_files()
    assert (found.about, found.level) == ("Ray's files", "note")
    assert found.seen.endswith("free in /tmp")
    assert "has 105 bytes" in found.to_do


def test_no_folder_for_rays_files_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.run_folders, "unfit", lambda path: f"{path} is too long")
    found = doctor.rays_files()
    assert (found.about, found.level) == ("Ray's files", "bad")
    assert "Set TMPDIR" in found.to_do


def test_one_cpu_and_swap_in_use_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(psutil, "swap_memory", lambda: SimpleNamespace(used=2**30))
    found = levels(doctor.machine())
    assert (found["CPUs"], found["swap"]) == ("note", "note")


def test_who_is_not_root_is_told_what_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    namespaces, shaping = doctor.isolation()
    assert (namespaces.level, namespaces.seen) == ("note", "not possible without root")
    assert "no bytes are counted" in namespaces.to_do
    assert (shaping.level, shaping.seen) == ("note", "tc is missing")


def test_a_package_that_is_not_there_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PINNED", ("numpy", "no-such-package"))
    found = levels(doctor.versions())
    assert (found["numpy"], found["no-such-package"]) == ("good", "bad")


def test_who_keeps_no_bytecode_is_told_how_workers_start_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "is_compiled_at_every_start", lambda: True)
    (found,) = [each for each in doctor.versions() if each.about == "bytecode"]
    assert (found.level, found.seen) == ("note", "compiled by every process that imports Ray")
    assert "Unset PYTHONDONTWRITEBYTECODE" in found.to_do


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({True: 200, False: 401}, {"Jobs API": "good", "exporter": "good", "token": "good"}),
        ({True: 200, False: 200}, {"Jobs API": "good", "exporter": "good", "token": "bad"}),
        ({True: 500, False: 401}, {"Jobs API": "bad", "exporter": "bad", "token": "good"}),
    ],
)
def test_a_cluster_is_asked_with_its_token_and_without(statuses: Mapping[bool, int], expected: dict[str, str]) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(statuses[self.headers["Authorization"] == f"Bearer {TOKEN}"])
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(server):
        url = f"http://127.0.0.1:{server.server_port}"
        cluster = Cluster(
            topology=a_topology(), dashboard_url=url, exporter_url=url, token=TOKEN, nodes=("head",), link=""
        )
        assert levels(doctor.cluster(cluster)) == expected
    gone = replace(cluster, dashboard_url="http://127.0.0.1:9", exporter_url="http://127.0.0.1:9")
    assert levels(doctor.cluster(gone)) == {"Jobs API": "bad", "exporter": "bad"}
