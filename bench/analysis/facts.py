"""What was true on the two topologies, side by side: what had to be equal, and was not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter

from bench.model import Facts, Run, Topology

# Names, places and ids, which are new in every cluster and change no number.
_OF_ONE_CLUSTER = ("_ID", "_PATH", "_DIR", "_ADDRESS", "_ADDRESSES", "_PORT", "_TOKEN")
_ALMOST = 0.01  # memory and object store are divided over nodes, and rounded


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that was not the same. `confounds`: the two topologies differ in it within a block."""

    what: str
    text: str
    confounds: bool
    is_data: bool = False  # other inputs: no option forces a verdict all the same


@dataclass(frozen=True)
class _Fact:
    name: str
    read: Callable[[Facts], Mapping[str, str]]
    confounds: bool = True  # False: it may change a number, and it is not known to
    is_data: bool = False
    may_lack: bool = False  # earlier records say nothing of it, and that is no difference


def _all(values: Iterable[object]) -> str:
    return " and ".join(sorted({str(value) for value in values}))


def _by_key(maps: Sequence[Mapping[str, object]]) -> Mapping[str, str]:
    keys = sorted({key for each in maps for key in each if not key.endswith(_OF_ONE_CLUSTER)})
    return {key: _all(each.get(key, "unset") for each in maps) for key in keys}


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
_OF_ONE_TOPOLOGY = (  # these differ between topologies, and not between two sessions on the same one
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
    """What differs between the topologies of a block, or between the blocks."""
    # Each cell has data of its own, and may have Ray's settings of its own: what is said of several is said once.
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
    yield from dict.fromkeys(each for those in cells.values() for each in _of_one_cell(those))


def _of_one_cell(runs: Sequence[Run]) -> Iterator[Difference]:
    kinds: list[Facts] = []  # few: each is read once
    with_facts = [(run, _kind(run.facts, kinds)) for run in runs if run.facts is not None]
    for fact in _FACTS:
        seen = [fact.read(facts) for facts in kinds]
        for key in sorted({key for values in seen for key in values}):
            if len({values.get(key, "unset") for values in seen}) > 1:
                found = [
                    (run.spec.topology.name, run.spec.block, seen[kind].get(key, "unset")) for run, kind in with_facts
                ]
                described = _describe(f"{fact.name} {key}".strip(), found, fact.confounds)
                yield replace(described, is_data=fact.is_data and described.confounds)


def _kind(facts: Facts, kinds: list[Facts]) -> int:
    """Where in `kinds` the same facts are, but for what each cluster has of its own; they are added where they are not."""
    for at, known in enumerate(kinds):
        if _without_cluster(known) == _without_cluster(facts):
            return at
    kinds.append(facts)
    return len(kinds) - 1


# A cluster's id and what was measured in it: of these no fact is made.
_OWN = ("cluster", "clock", "clock_offsets_seconds", "copy_bytes_per_second")
_without_cluster = attrgetter(*[each.name for each in fields(Facts) if each.name not in _OWN])


def _describe(what: str, found: Sequence[tuple[str, int, str]], confounds: bool) -> Difference:
    by_block: dict[int, set[str]] = {}
    by_topology: dict[str, set[str]] = {}
    for topology, block, value in found:
        by_block.setdefault(block, set()).add(value)
        by_topology.setdefault(topology, set()).add(value)
    if any(len(values) > 1 for values in by_block.values()):
        sides = "; ".join(f"{name}: {_few(values)}" for name, values in by_topology.items())
        return Difference(what=what, text=f"{what} differs between the topologies ({sides})", confounds=confounds)
    values = {value for _, _, value in found}
    return Difference(what=what, text=f"{what} differs between the blocks ({_few(values)})", confounds=False)


def _few(values: set[str]) -> str:
    shown = [value if len(value) <= 24 else f"{value[:21]}..." for value in sorted(values)]
    return " or ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def planned_totals(topologies: Sequence[Topology]) -> Iterator[Difference]:
    """What the plan gave one topology more of than the other."""
    for name in topologies[0].totals if topologies else ():
        yield from _unequal(name, {topology.name: topology.totals[name] for topology in topologies}, exact=True)


def measured_totals(runs: Sequence[Run]) -> Iterator[Difference]:
    """What the nodes of one topology really had more of, all together, than those of the other."""
    by_size = sorted(runs, key=lambda run: run.spec.topology.nodes)
    facts = {run.spec.topology.name: run.facts for run in by_size if run.facts is not None}
    amounts: dict[str, dict[str, int]] = {}
    for topology, seen in facts.items():
        for name, amount in _totals(seen).items():
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
    for name in sorted({name for each in facts.values() for node in each.nodes for name in node.threads}):
        unset = [
            t for t, each in facts.items() if any(not node.threads.get(name, "").isdecimal() for node in each.nodes)
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
    """What was not the same in two sessions, whose runs these are: of one experiment, on one topology.

    There Ray's settings must be equal too. A machine that was booted anew has changed its state, and is not another machine.
    """
    sides = [[run.facts for run in runs if run.facts is not None] for runs in (one, other)]
    if not all(sides):
        yield Difference(what="facts", text="facts are missing: no run of one of the two has any", confounds=True)
        return
    for fact in (*_FACTS, *_OF_ONE_TOPOLOGY):
        confounds = fact.confounds or fact in _FACTS
        there, here = (_seen([fact.read(facts) for facts in side]) for side in sides)
        if fact.may_lack and not (there and here):
            continue
        for key in sorted({*there, *here}):
            before, after = there.get(key, {"unset"}), here.get(key, {"unset"})
            if before != after:
                what = f"{fact.name} {key}".strip()
                text = f"{what}: {_few(before)}, then {_few(after)}"
                yield Difference(what=what, text=text, confounds=confounds, is_data=fact.is_data)
    yield from _other_amounts(*([_totals(facts) for facts in side] for side in sides))


def _seen(maps: Sequence[Mapping[str, str]]) -> dict[str, set[str]]:
    return {key: {each.get(key, "unset") for each in maps} for key in {key for each in maps for key in each}}


def _other_amounts(one: Sequence[Mapping[str, int]], other: Sequence[Mapping[str, int]]) -> Iterator[Difference]:
    """Memory and object store, which are rounded: one that is counted on one side only differs too."""
    for name in ("memory", "object store"):
        before, after = ({each.get(name) for each in side} for side in (one, other))
        amounts = [amount for amount in before | after if amount is not None]
        almost = (
            len(amounts) > 0 and None not in before | after and max(amounts) - min(amounts) <= _ALMOST * max(amounts)
        )
        if before != after and not almost:
            said = ", then ".join(
                _few({"none" if each is None else f"{each:,} bytes" for each in s}) for s in (before, after)
            )
            yield Difference(what=name, text=f"{name}: {said}", confounds=True)
