"""What `bench doctor` finds on each node of a cluster: is it there, is it as its topology says, does its clock agree."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from bench.cluster import clock_skew
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
    """What a node says of itself; see bench/cluster/node_report.py."""

    time: float
    clock: str
    shared_memory_bytes: int
    periods: int | None
    throttled_periods: int | None
    code_hash: str
    versions: Mapping[str, str]
    cpus_effective: float


def findings(target: Target, topology: Topology) -> Iterator[Finding]:
    """One line a node where all is well with it, and one for everything that is not."""
    if befell := target.trouble():
        yield Finding(
            "nodes", "bad", befell, "Run `bench up` again; give the nodes more with --memory-mib if it was memory."
        )
    before = time.time()
    said = target.ask_nodes(LOOK)
    after = time.time()
    if not said and target.name == "local":
        yield of_processes(topology)
        return
    looks: dict[str, Look] = {}
    for name in node_names(topology):
        if name not in said:
            yield Finding(f"node {name}", "bad", "does not say how it is", "See `bench status`; run `bench up` again.")
            continue
        try:
            looks[name] = from_json(said[name].encode(), Look)
        except msgspec.MsgspecError as error:
            yield Finding(f"node {name}", "bad", f"its image has other code: {error}", _REBUILD)
            continue
        yield from of_node(name, looks[name], topology, asked=(before, after))
    yield from of_versions(looks)


def of_processes(topology: Topology) -> Finding:
    """Nodes that are processes of this machine: all that differs is what they were told."""
    told, there = topology.totals["CPUs"], effective_cpus()
    if not there.has(told):
        return Finding("nodes", "bad", f"Ray was told {told} CPUs, and this machine has {there}", _FEWER_CPUS)
    return Finding("nodes", "good", "they are processes of this machine: what is said of it above holds for them")


def of_node(name: str, look: Look, topology: Topology, *, asked: tuple[float, float]) -> Iterator[Finding]:
    """What is wrong with a node that was asked between two moments of this machine's clock, or that nothing is."""
    wrong = list(_wrong(f"node {name}", look, topology, asked))
    yield from wrong
    if not wrong:
        share = f", throttled in {_throttled(look):.1%} of its periods" if look.periods else ""
        shared = look.shared_memory_bytes / 2**20
        yield Finding(f"node {name}", "good", f"/dev/shm has {shared:.0f} MiB, clock {look.clock}{share}")


def of_versions(looks: Mapping[str, Look]) -> Iterator[Finding]:
    """Whether all nodes have the same packages: Ray itself wants that, down to Python's patch version."""
    found = {tuple(sorted(look.versions.items())) for look in looks.values()}
    if len(found) == 1:
        yield Finding("nodes' versions", "good", ", ".join(f"{name} {number}" for name, number in found.pop()))
    elif found:
        differing = sorted({pair for one in found for pair in one if not all(pair in other for other in found)})
        said = ", ".join(f"{name} {number}" for name, number in differing)
        yield Finding("nodes' versions", "bad", f"they are not the same: {said}", "Let all nodes have one image.")


def _wrong(about: str, look: Look, topology: Topology, asked: tuple[float, float]) -> Iterator[Finding]:
    store = topology.object_store_bytes_per_node
    if look.shared_memory_bytes < store:
        sizes = f"/dev/shm has {look.shared_memory_bytes / 2**20:.0f} MiB, and the object store {store / 2**20:.0f} MiB"
        yield Finding(about, "bad", sizes, "Objects would lie on a disk: make it larger.")
    if not is_enough(look.cpus_effective, topology.cpus_per_node):
        told = f"Ray was told {topology.cpus_per_node} CPUs, and {look.cpus_effective:g} can be used"
        yield Finding(about, "bad", told, _FEWER_CPUS)
    if look.code_hash != code_hash():
        yield Finding(about, "bad", f"it has the code {look.code_hash}, and this is {code_hash()}", _REBUILD)
    for wrong in clock_skew.too_far({about.removeprefix("node "): clock_skew.offset(asked[0], look.time, asked[1])}):
        yield Finding(about, "bad", wrong, clock_skew.FIX)
    if look.clock in SLOW_CLOCKS:
        yield Finding(about, "note", f"its clock is {look.clock}", "Reading it takes microseconds: use long samples.")
    if _throttled(look) > MOST_THROTTLED:
        yield Finding(
            about,
            "note",
            f"it was throttled in {_throttled(look):.1%} of its periods since it was started",
            "Ray's start is part of that. A report's caveats say which samples were; more CPUs a node help.",
        )


def _throttled(look: Look) -> float:
    return (look.throttled_periods or 0) / look.periods if look.periods else 0.0


_FEWER_CPUS = "Raise the CPU quota, or run `bench up` again with fewer --cpus."
_REBUILD = "Run `task image`, and `bench up` again."
