"""Compares the facts of runs: between the topologies of a session, and between two sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter

from bench.model import Facts, Run, Topology

# Suffixes of names, places and ids, which differ in every cluster and change no result.
_OF_ONE_CLUSTER = ("_ID", "_PATH", "_DIR", "_ADDRESS", "_ADDRESSES", "_PORT", "_TOKEN")
_ALMOST = 0.01  # relative: memory and object store are divided over nodes, and rounded


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One fact that was not equal. `confounds`: the two topologies differ in it within a block."""

    what: str
    text: str
    confounds: bool
    is_data: bool = False  # other input data: no option allows a verdict then


@dataclass(frozen=True)
class _Fact:
    name: str
    read: Callable[[Facts], Mapping[str, str]]
    confounds: bool = True  # False: it may change results, but is not known to
    is_data: bool = False
    may_lack: bool = False  # earlier records do not have it, which is not a difference


def _all(values: Iterable[object]) -> str:
    return " and ".join(sorted({str(value) for value in values}))


def _by_key(maps: Sequence[Mapping[str, object]]) -> Mapping[str, str]:
    keys = sorted({key for by_name in maps for key in by_name if not key.endswith(_OF_ONE_CLUSTER)})
    return {key: _all(by_name.get(key, "unset") for by_name in maps) for key in keys}


_FACTS = (
    _Fact("version of", lambda facts: _by_key([node.versions for node in facts.nodes])),
    _Fact("", lambda facts: {"code": _all(node.code_hash for node in facts.nodes)}),
    _Fact("", lambda facts: {"image": _all(node.image_digest or "none" for node in facts.nodes)}),
    _Fact("", lambda facts: {"kernel": _all(node.kernel for node in facts.nodes)}),
    _Fact("", lambda facts: {"CPU model": _all(node.cpu_model for node in facts.nodes)}),
    _Fact("", lambda facts: {"machine type": _all(node.machine for node in facts.nodes)}),
    _Fact("", lambda facts: _by_key([node.ray_environment for node in facts.nodes])),
    _Fact("checksum of", lambda facts: dict(facts.data), is_data=True),
    _Fact("", lambda facts: {"link": facts.link}),
    _Fact("", lambda facts: _by_key([node.settings for node in facts.nodes]), may_lack=True),
    _Fact("", lambda facts: {"profiler": facts.profiler or "none"}),
    _Fact("Ray's setting", lambda facts: _by_key([facts.ray_config]), confounds=False),
)
_OF_ONE_TOPOLOGY = (  # these differ between topologies, but not between two sessions on the same topology
    _Fact("", lambda facts: {"CPUs granted to a node": _all(node.cpus_granted for node in facts.nodes)}),
    _Fact("", lambda facts: {"CPU quota of a node": _all(node.cpu_quota or "none" for node in facts.nodes)}),
    _Fact(
        "",
        lambda facts: {
            name: _all(core.kind or "all alike" for node in facts.nodes for core in node.cores)
            for name in ["kinds of cores"]
            if all(node.cores for node in facts.nodes)
        },
        may_lack=True,
    ),
    _Fact("", lambda facts: _by_key([node.threads for node in facts.nodes])),
    _Fact("", lambda facts: {"whether the nodes share a host": _all([facts.same_host])}),
    _Fact("", lambda facts: {"boot of the machine": _all(node.boot_id for node in facts.nodes)}, confounds=False),
)


def differences(runs: Sequence[Run]) -> Iterator[Difference]:
    """Yield what differs between the topologies of a block, or between the blocks."""
    # Each cell has its own data, and may have its own Ray settings; a difference in several cells is reported once.
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
    yield from dict.fromkeys(difference for of_cell in cells.values() for difference in _of_one_cell(of_cell))


def _of_one_cell(runs: Sequence[Run]) -> Iterator[Difference]:
    kinds: list[Facts] = []  # distinct facts, of which there are few
    with_facts = [(run, _kind(run.facts, kinds)) for run in runs if run.facts is not None]
    for fact in _FACTS:
        values_by_kind = [fact.read(facts) for facts in kinds]
        for key in sorted({key for values in values_by_kind for key in values}):
            if len({values.get(key, "unset") for values in values_by_kind}) > 1:
                values_of_runs = [
                    (run.spec.topology.name, run.spec.block, values_by_kind[kind].get(key, "unset"))
                    for run, kind in with_facts
                ]
                described = _describe(f"{fact.name} {key}".strip(), values_of_runs, fact.confounds)
                yield replace(described, is_data=fact.is_data and described.confounds)


def _kind(facts: Facts, kinds: list[Facts]) -> int:
    """Return the position in `kinds` of the same facts, ignoring what differs in every cluster; append them if missing."""
    for position, known in enumerate(kinds):
        if _without_cluster(known) == _without_cluster(facts):
            return position
    kinds.append(facts)
    return len(kinds) - 1


# A cluster's id and measurements in it are not compared.
_OWN = ("cluster", "clock", "clock_offsets_seconds", "copy_bytes_per_second")
_without_cluster = attrgetter(*[field.name for field in fields(Facts) if field.name not in _OWN])


def _describe(name: str, values_of_runs: Sequence[tuple[str, int, str]], confounds: bool) -> Difference:
    by_block: dict[int, set[str]] = {}
    by_topology: dict[str, set[str]] = {}
    for topology, block, value in values_of_runs:
        by_block.setdefault(block, set()).add(value)
        by_topology.setdefault(topology, set()).add(value)
    if any(len(values) > 1 for values in by_block.values()):
        sides = "; ".join(f"{topology}: {_few(values)}" for topology, values in by_topology.items())
        return Difference(what=name, text=f"{name} differs between the topologies ({sides})", confounds=confounds)
    values = {value for _, _, value in values_of_runs}
    return Difference(what=name, text=f"{name} differs between the blocks ({_few(values)})", confounds=False)


def _few(values: set[str]) -> str:
    shown = [value if len(value) <= 24 else f"{value[:21]}..." for value in sorted(values)]
    return " or ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def planned_totals(topologies: Sequence[Topology]) -> Iterator[Difference]:
    """Yield the resources of which the plan gave one topology more than the other."""
    for name in topologies[0].totals if topologies else ():
        yield from _unequal(name, {topology.name: topology.totals[name] for topology in topologies}, exact=True)


def measured_totals(runs: Sequence[Run]) -> Iterator[Difference]:
    """Yield the resources of which the nodes of one topology really had more in total than those of the other."""
    by_size = sorted(runs, key=lambda run: run.spec.topology.nodes)
    facts = {run.spec.topology.name: run.facts for run in by_size if run.facts is not None}
    amounts: dict[str, dict[str, int]] = {}
    for topology, facts_of_topology in facts.items():
        for name, amount in _totals(facts_of_topology).items():
            amounts.setdefault(name, {})[topology] = amount
    for name, by_topology in amounts.items():
        exact = name.endswith(("CPUs", "threads"))
        yield from _unequal(name, by_topology, exact=exact)
    yield from _unset_threads(facts)


def _totals(facts: Facts) -> dict[str, int]:
    totals = {
        "granted CPUs": sum(node.cpus_granted for node in facts.nodes),
        "object store": sum(node.object_store_bytes for node in facts.nodes),
    }
    limits = [node.memory_limit_bytes for node in facts.nodes if node.memory_limit_bytes is not None]
    if limits and len(limits) == len(facts.nodes):
        totals["memory"] = sum(limits)
    for name in sorted({name for node in facts.nodes for name in node.threads}):
        values = [node.threads.get(name, "") for node in facts.nodes]
        if all(value.isdecimal() for value in values):
            totals[f"{name} threads"] = sum(int(value) for value in values)
    return totals


def _unset_threads(facts: Mapping[str, Facts]) -> Iterator[Difference]:
    for name in sorted({name for of_topology in facts.values() for node in of_topology.nodes for name in node.threads}):
        unset = [
            topology
            for topology, of_topology in facts.items()
            if any(not node.threads.get(name, "").isdecimal() for node in of_topology.nodes)
        ]
        if unset and len(unset) < len(facts):
            yield Difference(what=name, text=f"{name} is unset on {' and '.join(unset)} only", confounds=True)


def _unequal(what: str, amounts: Mapping[str, int], *, exact: bool) -> Iterator[Difference]:
    low, high = min(amounts.values()), max(amounts.values())
    if low == high or (not exact and high - low <= _ALMOST * high):
        return
    sides = ", ".join(f"{name} has {amount:,}" for name, amount in amounts.items())
    yield Difference(what=what, text=f"unequal totals of {what}: {sides}", confounds=True)


def between(one: Sequence[Run], other: Sequence[Run]) -> Iterator[Difference]:
    """Yield what was not equal in two sessions, given their runs of one experiment on one topology.

    Ray's settings must be equal between sessions. A reboot between them changes the machine's state, but not the machine.
    """
    sides = [[run.facts for run in runs if run.facts is not None] for runs in (one, other)]
    if not all(sides):
        yield Difference(what="facts", text="facts are missing: no run of one of the two has any", confounds=True)
        return
    for fact in (*_FACTS, *_OF_ONE_TOPOLOGY):
        confounds = fact.confounds or fact in _FACTS
        before_by_key, after_by_key = (_values([fact.read(facts) for facts in side]) for side in sides)
        if fact.may_lack and not (before_by_key and after_by_key):
            continue
        for key in sorted({*before_by_key, *after_by_key}):
            before, after = before_by_key.get(key, {"unset"}), after_by_key.get(key, {"unset"})
            if before != after:
                what = f"{fact.name} {key}".strip()
                text = f"{what}: {_few(before)}, then {_few(after)}"
                yield Difference(what=what, text=text, confounds=confounds, is_data=fact.is_data)
    yield from _other_amounts(*([_totals(facts) for facts in side] for side in sides))


def _values(maps: Sequence[Mapping[str, str]]) -> dict[str, set[str]]:
    keys = {key for by_name in maps for key in by_name}
    return {key: {by_name.get(key, "unset") for by_name in maps} for key in keys}


def _other_amounts(one: Sequence[Mapping[str, int]], other: Sequence[Mapping[str, int]]) -> Iterator[Difference]:
    """Yield memory and object store if they differ by more than rounding, or were counted in one session only."""
    for name in ("memory", "object store"):
        before, after = ({totals.get(name) for totals in side} for side in (one, other))
        amounts = [amount for amount in before | after if amount is not None]
        almost = (
            len(amounts) > 0 and None not in before | after and max(amounts) - min(amounts) <= _ALMOST * max(amounts)
        )
        if before != after and not almost:
            sizes = ", then ".join(
                _few({"none" if amount is None else f"{amount:,} bytes" for amount in side}) for side in (before, after)
            )
            yield Difference(what=name, text=f"{name}: {sizes}", confounds=True)
