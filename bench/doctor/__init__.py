"""Diagnoses machine, deployment and monitoring: each check yields findings, and each finding has a hint."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from bench import http_client, targets
from bench.cluster import clock_skew
from bench.counts import plural
from bench.doctor import monitoring, nodes, steadiness
from bench.doctor.finding import Finding
from bench.errors import BenchError
from bench.experiments import NAMES, load
from bench.machine import bytecode
from bench.machine.cores import cores, read_cpus
from bench.machine.effective_cpus import effective_cpus
from bench.prometheus import scraping
from bench.targets import Cluster, Given, Target
from bench.targets.local import run_folders

LEAST_FREE_BYTES = 2**30
PINNED = ("ray", "numpy", "prometheus-client", "typer")


def machine() -> Iterator[Finding]:
    """CPUs, memory, shared memory, disk, swap."""
    yield _cpus()
    memory = psutil.virtual_memory()
    yield Finding("memory", "good" if memory.available > 4 * 2**30 else "note", _gib(memory.available, memory.total))
    yield _room("/dev/shm", Path("/dev/shm"), "Enlarge it, or use less with --object-store-mib.")
    yield rays_files()
    used = psutil.swap_memory().used
    yield Finding(
        "swap",
        "good" if not used else "note",
        f"{used / 2**20:.0f} MiB in use",
        "End the programs that need it." if used else "",
    )


def rays_files() -> Finding:
    """Check that Ray's files have a folder with a usable path and enough room."""
    try:
        parent = run_folders.choose()
    except BenchError as error:
        return Finding("Ray's files", "bad", error.what.rstrip("."), error.hint)
    room = _room("Ray's files", Path(parent.path), "Free disk space, or set TMPDIR to a short path on another disk.")
    return replace(room, level="note", to_do=parent.note) if room.level == "good" and parent.note else room


def isolation() -> Iterator[Finding]:
    """Check whether local nodes can have network namespaces and control groups."""
    is_root, ip = os.geteuid() == 0, shutil.which("ip")
    can = is_root and ip is not None
    missing = "root" if not is_root else "the command ip (package iproute2)"
    yield Finding(
        "network namespaces",
        "good" if can else "note",
        "each local node gets its own; bytes are counted" if can else f"not possible without {missing}",
        "" if can else "Local nodes share loopback, and no bytes are counted.",
    )
    shaping = shutil.which("tc") is not None
    yield Finding(
        "link shaping",
        "good" if shaping else "note",
        "tc is there" if shaping else "tc is missing",
        "" if shaping else "Install iproute2 for --link-rate on the target local.",
    )


def clock() -> Iterator[Finding]:
    """Check the clock source of the monotonic clock."""
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    name = source.read_text().strip() if source.exists() else "unknown"
    slow = name in ("hpet", "acpi_pm", "jiffies")
    yield Finding(
        "clock", "note" if slow else "good", name, "Reading it takes microseconds: use long samples." if slow else ""
    )


def versions() -> Iterator[Finding]:
    """Check the packages of a local run."""
    for package in PINNED:
        try:
            yield Finding(package, "good", version(package))
        except PackageNotFoundError:
            yield Finding(package, "bad", "is not installed", "Run `task setup`.")
    compiles = bytecode.is_compiled_at_every_start()
    seen = "compiled by every process that imports Ray" if compiles else "kept"
    yield Finding("bytecode", "note" if compiles else "good", seen, bytecode.FIX if compiles else "")


def deployment_findings(target: Target) -> Iterator[Finding]:
    """Check the deployment on a target, and what is left of earlier ones."""
    status = target.status()
    if status.cluster is not None:
        yield Finding(f"target {target.name}", "good", f"{status.cluster.topology.name} is up")
        yield from cluster(status.cluster)
        yield clocks(clock_skew.measure(status.cluster))
        yield from nodes.findings(target, status.cluster.topology)
        yield from scraped_and_shown(status.cluster)
    elif status.remains:
        yield Finding(f"target {target.name}", "bad", f"left over: {', '.join(status.remains)}", "Run `bench down`.")
    else:
        yield Finding(
            f"target {target.name}",
            "note" if status.not_ready else "good",
            "nothing is up, nothing is left over",
            status.not_ready,
        )


def cluster(deployed: Cluster) -> Iterator[Finding]:
    """Check the Jobs API and the exporter of a cluster, with the token and without."""
    for about, url in (
        ("Jobs API", f"{deployed.dashboard_url}/api/jobs/"),
        ("exporter", f"{deployed.exporter_url}/metrics"),
    ):
        try:
            status = http_client.get(url, token=deployed.token, timeout_seconds=5).status_code
            yield Finding(
                about,
                "good" if status == 200 else "bad",
                f"HTTP {status}",
                "" if status == 200 else "Run `bench up` again.",
            )
        except http_client.RequestException as error:
            yield Finding(about, "bad", f"{url} does not answer: {type(error).__name__}", "Run `bench up` again.")
    try:
        status = http_client.get(f"{deployed.dashboard_url}/api/jobs/", timeout_seconds=5).status_code
        safe = status in (401, 403)
        yield Finding(
            "token",
            "good" if safe else "bad",
            f"without it the Jobs API answers HTTP {status}",
            "" if safe else "Anyone who can reach it can run code. Run `bench down`.",
        )
    except http_client.RequestException:
        return


def clocks(offsets: Mapping[str, float]) -> Finding:
    """Check that head and Prometheus have this machine's time of day."""
    if wrong := list(clock_skew.too_far(offsets)):
        return Finding("clocks", "bad", "; ".join(wrong), clock_skew.FIX)
    if not offsets:
        return Finding("clocks", "note", "neither head nor Prometheus answered with a time", "Run `bench up` again.")
    return Finding("clocks", "good", f"{' and '.join(offsets)} within {clock_skew.MOST_SECONDS:g} s of this machine's")


def shortest_sample_seconds() -> float:
    """The shortest sample of all profiles of all experiments, in seconds."""
    return min(profile.sample_seconds for name in NAMES for profile in load(name).profiles.values())


def scraped_and_shown(deployed: Cluster) -> Iterator[Finding]:
    """Check Prometheus and Grafana of a cluster: every page that must be scraped, every panel that must show data."""
    yield from monitoring.findings(
        prometheus_url=deployed.prometheus_url,
        grafana_url=deployed.grafana_url,
        pages=scraping.pages(deployed.nodes),
        shortest_sample_seconds=shortest_sample_seconds(),
    )


def findings(names: Sequence[str], given: Given) -> Iterator[Finding]:
    """All findings on this machine, and on the deployment on the targets of these names."""
    wanted = [targets.create(name, given) for name in names]
    yield from machine()
    yield from steadiness.findings(wanted)
    for check in (isolation, clock, versions):
        yield from check()
    for target in wanted:
        try:
            yield from deployment_findings(target)
        except BenchError as error:
            yield Finding(f"target {target.name}", "bad", error.what.rstrip("."), error.hint)


def _cpus() -> Finding:
    """Check the number and the kinds of CPUs that local nodes can use."""
    usable = effective_cpus()
    of_machine = cores(read_cpus(usable.allowed))
    kinds = Counter(core.kind for core in of_machine)
    parts = [f"{usable.count:g} of {os.cpu_count() or 1} can be used"]
    if usable.quota is not None and usable.quota < len(usable.allowed):
        parts.append(f"the CPU quota is {usable.quota:g}")
    if len(of_machine) < len(usable.allowed):
        parts.append(f"threads of {plural(len(of_machine), 'core')}")
    if len(kinds) > 1:
        parts.append(" and ".join(f"{plural(count, f'{kind} core')}" for kind, count in kinds.items()))
    hint = ""
    if usable.whole < 2:
        hint = "`multi` needs a CPU a node: measure with --topology single, or raise the limit."
    elif usable.count != usable.whole:
        hint = f"Nodes get whole CPUs: {usable.whole}."
    return Finding("CPUs", "note" if hint else "good", ", ".join(parts), hint)


def _room(name: str, folder: Path, hint: str) -> Finding:
    """Check the free space of a folder that Ray writes to."""
    disk = shutil.disk_usage(folder)
    is_enough = disk.free > LEAST_FREE_BYTES
    where = "" if name == str(folder) else f" in {folder}"
    description = f"{_gib(disk.free, disk.total)}{where}"
    return Finding(name, "good" if is_enough else "bad", description, "" if is_enough else hint)


def _gib(free: int, total: int) -> str:
    return f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
