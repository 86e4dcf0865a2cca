"""Checks each node of a cluster: that it answers, has the size of its topology, and the right time and code."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from bench.cluster import clock_skew
from bench.counts import plural
from bench.doctor.finding import Finding
from bench.identity import code_hash
from bench.machine.effective_cpus import effective_cpus, is_enough
from bench.model import Topology, from_json
from bench.targets import Target, node_names

LOOK = ("python", "-m", "bench.cluster.node_report")
MOST_THROTTLED = 0.01  # of the periods, as in the alert rules
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies")


@dataclass(frozen=True, kw_only=True)
class Look:
    """A node's report of itself; see bench/cluster/node_report.py."""

    time: float
    clock: str
    shared_memory_bytes: int
    periods: int | None
    throttled_periods: int | None
    code_hash: str
    versions: Mapping[str, str]
    cpus_effective: float


def findings(target: Target, topology: Topology) -> Iterator[Finding]:
    """One finding for each good node, and one for every fault."""
    if trouble := target.trouble():
        yield Finding(
            "nodes", "bad", trouble, "Run `bench up` again; give the nodes more with --memory-mib if it was memory."
        )
    before = time.time()
    outputs = target.ask_nodes(LOOK)
    after = time.time()
    if not outputs and target.name == "local":
        yield of_processes(topology)
        return
    looks: dict[str, Look] = {}
    for name in node_names(topology):
        if name not in outputs:
            yield Finding(f"node {name}", "bad", "it does not answer", "See `bench status`, and run `bench up` again.")
            continue
        try:
            looks[name] = from_json(outputs[name].encode(), Look)
        except msgspec.MsgspecError as error:
            yield Finding(f"node {name}", "bad", f"its image has other code: {error}", _REBUILD)
            continue
        yield from of_node(name, looks[name], topology, asked=(before, after))
    yield from of_versions(looks)


def of_processes(topology: Topology) -> Finding:
    """Check nodes that are processes of this machine: only their number of CPUs can differ."""
    declared, usable = topology.totals["CPUs"], effective_cpus()
    if not usable.has(declared):
        return Finding(
            "nodes", "bad", f"Ray was started with {plural(declared, 'CPU')}, and {usable} can be used", _FEWER_CPUS
        )
    return Finding("nodes", "good", "they are processes of this machine, see above")


def of_node(name: str, look: Look, topology: Topology, *, asked: tuple[float, float]) -> Iterator[Finding]:
    """The faults of a node that was asked between two moments of this machine's clock, or one good finding."""
    wrong = list(_wrong(f"node {name}", look, topology, asked))
    yield from wrong
    if not wrong:
        share = f", throttled in {_throttled(look):.1%} of its periods" if look.periods else ""
        shared = look.shared_memory_bytes / 2**20
        yield Finding(f"node {name}", "good", f"/dev/shm has {shared:.0f} MiB, clock {look.clock}{share}")


def of_versions(looks: Mapping[str, Look]) -> Iterator[Finding]:
    """Check that all nodes have the same packages; Ray needs that, down to Python's patch version."""
    installed = {tuple(sorted(look.versions.items())) for look in looks.values()}
    if len(installed) == 1:
        yield Finding("nodes' versions", "good", ", ".join(f"{name} {number}" for name, number in installed.pop()))
    elif installed:
        differing = sorted({pair for one in installed for pair in one if not all(pair in other for other in installed)})
        versions = ", ".join(f"{name} {number}" for name, number in differing)
        yield Finding("nodes' versions", "bad", f"they differ: {versions}", "Use one image for all nodes.")


def _wrong(about: str, look: Look, topology: Topology, asked: tuple[float, float]) -> Iterator[Finding]:
    store = topology.object_store_bytes_per_node
    if look.shared_memory_bytes < store:
        sizes = f"/dev/shm has {look.shared_memory_bytes / 2**20:.0f} MiB, and the object store {store / 2**20:.0f} MiB"
        yield Finding(about, "bad", sizes, "Ray would put objects on a disk; enlarge /dev/shm.")
    if not is_enough(look.cpus_effective, topology.cpus_per_node):
        difference = (
            f"Ray was started with {plural(topology.cpus_per_node, 'CPU')}, and {look.cpus_effective:g} can be used"
        )
        yield Finding(about, "bad", difference, _FEWER_CPUS)
    if look.code_hash != code_hash():
        yield Finding(about, "bad", f"it has the code {look.code_hash}, and this checkout has {code_hash()}", _REBUILD)
    for wrong in clock_skew.too_far({about.removeprefix("node "): clock_skew.offset(asked[0], look.time, asked[1])}):
        yield Finding(about, "bad", wrong, clock_skew.FIX)
    if look.clock in SLOW_CLOCKS:
        yield Finding(about, "note", f"its clock is {look.clock}", "Reading it takes microseconds: use long samples.")
    if _throttled(look) > MOST_THROTTLED:
        yield Finding(
            about,
            "note",
            f"throttled in {_throttled(look):.1%} of its periods since its start",
            "That includes Ray's start. A report's caveats name such samples; more CPUs per node help.",
        )


def _throttled(look: Look) -> float:
    return (look.throttled_periods or 0) / look.periods if look.periods else 0.0


_FEWER_CPUS = "Raise the CPU quota, or run `bench up` again with fewer --cpus."
_REBUILD = "Run `task image`, and `bench up` again."
