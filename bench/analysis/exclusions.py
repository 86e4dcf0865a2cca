"""Decides which blocks were measured on a machine that others disturbed. It is decided without any result.

`decide_exclusions` gets `Conditions`, which have what the kernel counted for the machine, and nothing of what a run achieved: no
sample, no work done. An excluded block is lost to every cell, topology and arm alike, whichever did better in it.

What the harness demands of the CPUs itself is no disturbance. A node that has more to run than CPUs makes its own tasks
wait, so pressure alone says nothing: on two cores Ray often keeps it above 90 %. A task that waits does so for whatever
holds the CPU, and others hold it for their share of all the CPU time used. So of the time in which some task waited, that
share is laid to the others' charge, and the rest is own demand:

    pressure beyond own demand = time with a task waiting / time watched * (busy - own) / busy

with `busy` the CPU seconds of the whole machine and `own` those of all of the run's nodes on it and of what the deployment
uses beside them at rest, as it was measured after it was stood up: kubelet and API server of a cluster of kind are no
disturbance that another block would be spared. What is used beyond that is the others'. Where the kernel counts no
pressure, the time that the node's own threads waited in the run queue stands for it, all of the time at most. Where one of them cannot
be counted nothing is excluded, and the report says that it could not be counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bench.analysis.comparison import EXCLUDED
from bench.analysis.number_format import percent, plural
from bench.analysis.table import Table, known
from bench.analysis.usage import IDLE, ByNode
from bench.model import IdleLoad, Run

if TYPE_CHECKING:
    from bench.analysis.table import Mask

MOST_STEAL = 0.02  # of the time of the CPUs that a node may run on
MOST_PRESSURE = 0.20  # of the time, beyond the harness's own demand
MOST_SWAPPED_BYTES = 2**20  # in a run: a page or two of some idle program disturbs nothing
NOISY = 0.20  # of all blocks: with more of them excluded no verdict is given


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What one node and its machine were like while a run was timed. No field tells what the run achieved."""

    block: int
    where: str  # "head of b01-multi-inference-c01"
    watched_seconds: float | None
    cpus: int  # that the node may run on
    is_limited: bool  # by a CPU quota of its own
    steal_seconds: float | None
    throttled_periods: float | None
    pressure_cpu_seconds: float | None
    host_busy_seconds: float | None
    own_cpu_seconds: float | None  # of all the run's nodes on this machine, and of the deployment beside them at rest
    swapped_bytes: float | None
    run_queue_wait_seconds: float | None = None  # of all the node's threads together

    @property
    def steal(self) -> float | None:
        """Share of the node's CPU time that the hypervisor gave to others."""
        return _over(self.steal_seconds, self.watched_seconds, self.cpus)

    @property
    def others_cpus(self) -> float | None:
        """How many CPUs others used."""
        if self.host_busy_seconds is None or self.own_cpu_seconds is None:
            return None
        return _over(max(self.host_busy_seconds - self.own_cpu_seconds, 0.0), self.watched_seconds)

    @property
    def pressure_beyond_own(self) -> float | None:
        """Share of the time in which some task waited for a CPU that others held."""
        others, busy = self.others_cpus, _over(self.host_busy_seconds, self.watched_seconds)
        waited = self.run_queue_wait_seconds if self.pressure_cpu_seconds is None else self.pressure_cpu_seconds
        pressure = _over(waited, self.watched_seconds)
        if others is None or pressure is None:
            return None
        return min(pressure, 1.0) * others / busy if busy else 0.0


def _over(counted: float | None, seconds: float | None, cpus: int = 1) -> float | None:
    return counted / (seconds * cpus) if counted is not None and seconds and cpus else None


@dataclass(frozen=True, kw_only=True)
class Exclusions:
    """Which of the blocks that were measured are not used, and why."""

    blocks: frozenset[int] = frozenset()
    reasons: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # of the excluded ones
    unseen: tuple[str, ...] = ()  # what could not be counted, and so excludes nothing
    is_forced: bool = False  # the user wants those blocks used too

    @property
    def is_noisy(self) -> bool:
        """Whether so many blocks are excluded that no verdict can be given."""
        return not self.is_forced and len(self.reasons) > NOISY * len(self.blocks)

    @property
    def leaves_none(self) -> bool:
        """Whether no block is left."""
        return bool(self.reasons) and not self.is_forced and len(self.reasons) == len(self.blocks)

    @property
    def noise(self) -> str:
        """Why no verdict is given, where none is."""
        return f"noisy host: {len(self.reasons)} of {plural(len(self.blocks), 'block')} {EXCLUDED}"


def decide_exclusions(seen: Iterable[Conditions], *, is_forced: bool = False) -> Exclusions:
    """Judge each block by the worst interference in any of its runs."""
    blocks: set[int] = set()
    reasons: dict[int, list[str]] = {}
    unseen: dict[str, None] = {}
    for each in seen:
        blocks.add(each.block)
        for reason in _reasons(each):
            reasons.setdefault(each.block, []).append(reason)
        unseen |= dict.fromkeys(_unseen(each))
    return Exclusions(
        blocks=frozenset(blocks),
        reasons={block: tuple(reasons[block]) for block in sorted(reasons)},
        unseen=tuple(unseen),
        is_forced=is_forced,
    )


def _reasons(seen: Conditions) -> Iterator[str]:
    if (seen.steal or 0.0) > MOST_STEAL:
        yield f"{seen.where}: {percent(seen.steal or 0.0)} of its CPU time was stolen by the hypervisor"
    if seen.throttled_periods and not seen.is_limited:
        yield f"{seen.where}: throttled in {plural(int(seen.throttled_periods), 'period')}, without a quota of its own"
    if (seen.pressure_beyond_own or 0.0) > MOST_PRESSURE:
        yield (
            f"{seen.where}: tasks waited for a CPU that others held {percent(seen.pressure_beyond_own or 0.0)} of the time"
            f" (others used {seen.others_cpus or 0.0:.2g} CPUs)"
        )
    if (seen.swapped_bytes or 0.0) > MOST_SWAPPED_BYTES:
        yield f"{seen.where}: its machine swapped {(seen.swapped_bytes or 0.0) / 2**20:.0f} MiB"


def _unseen(seen: Conditions) -> Iterator[str]:
    """What could not be judged; that throttling was not counted is a caveat of its own."""
    if seen.steal is None:
        yield "steal"
    if seen.pressure_beyond_own is None:
        yield "CPU pressure beyond own demand"
    if seen.swapped_bytes is None:
        yield "swapping"


def conditions(table: Table) -> list[list[Conditions]]:
    """By run: what the machine of each of its nodes was like, over all of its timed intervals that count."""
    return _conditions(table, ~(table.usage.named(arm=IDLE) | table.warm_usage))


def idle_conditions(table: Table) -> list[list[Conditions]]:
    """The same of the moment before anything ran."""
    return _conditions(table, table.usage.named(arm=IDLE))


def _conditions(table: Table, rows: Mask) -> list[list[Conditions]]:
    by_node = ByNode(table, rows)
    nodes = by_node.nodes_of(range(len(table.runs)))
    column = [by_node.names.index(node) for node in nodes]
    has = by_node.has[:, column].ravel().tolist()
    totals = zip(*[known(by_node.sum(by_node.read(name))[:, column].ravel()) for name in _READ], strict=True)
    each = iter(
        [dict(zip(_READ, found, strict=True)) if is_in else {} for is_in, found in zip(has, totals, strict=True)]
    )
    by_run = [{node: found for node in nodes if (found := next(each))} for _ in table.runs]
    return [list(_of_run(run, counted)) for run, counted in zip(table.runs, by_run, strict=True)]


def _of_run(run: Run, counted: Mapping[str, Mapping[str, float | None]]) -> Iterator[Conditions]:
    """`counted`: by node and name of field."""
    facts = {node.node: node for node in run.facts.nodes if node.node in counted} if run.facts else {}
    own: dict[str, list[float | None]] = {}
    for name, node in facts.items():
        own.setdefault(node.boot_id, []).append(counted[name]["cpu_seconds"])
    for name in counted:
        if name in facts:
            yield Conditions(
                block=run.spec.block,
                where=f"{name} of {run.spec.id}",
                cpus=facts[name].cpus_allowed,
                is_limited=facts[name].cpu_quota is not None,
                own_cpu_seconds=_total(
                    [*own[facts[name].boot_id], _at_rest(run.idle_load, counted[name]["watched_seconds"])]
                ),
                **{field: counted[name][field] for field in _OF_MACHINE},
            )


def _at_rest(load: IdleLoad | None, seconds: float | None) -> float | None:
    """CPU seconds that the deployment uses at rest in a time so long; 0 where that was not measured."""
    if load is None:
        return 0.0
    return None if seconds is None else load.cpus * seconds


def _total(readings: Sequence[float | None]) -> float | None:
    """The sum; None when one was not counted."""
    return None if None in readings else math.fsum(readings)  # type: ignore[arg-type]  # no None is left


_OF_MACHINE = (
    "watched_seconds",
    "steal_seconds",
    "throttled_periods",
    "pressure_cpu_seconds",
    "host_busy_seconds",
    "swapped_bytes",
    "run_queue_wait_seconds",
)
_READ = ("cpu_seconds", *_OF_MACHINE)


def without(runs: Mapping[str, Run], exclusions: Exclusions) -> dict[str, Run]:
    """`runs` by Spec, those of excluded blocks not usable; all as they are where no block would be left to show."""
    if exclusions.leaves_none or exclusions.is_forced:
        return dict(runs)
    return {
        key: replace(run, status="invalid", reasons=(EXCLUDED,))
        if run.status == "ok" and run.spec.block in exclusions.reasons
        else run
        for key, run in runs.items()
    }


@dataclass(frozen=True, kw_only=True)
class QuietChecks:
    """What the quiet check before each block saw, and what others used of the machine while a session went."""

    quiet: int
    busy: Mapping[int, float | None]  # block that began on a busy machine: the share of its CPUs that was busy
    waited_seconds: float
    elsewhere: bool  # the quiet check looked at a machine that has none of the nodes
    others_cpus_idle: float | None  # most that others used while nothing ran, and while something was timed
    others_cpus: float | None
    deployment_cpus: float | None = None  # most that the deployment used at rest beside Ray's nodes, not others'


def quiet_checks(table: Table, timed: Iterable[Conditions]) -> QuietChecks | None:
    """What is known of the quiet check of the runs' blocks; None where no run has one. `timed`: what `conditions` saw in them."""
    runs = table.runs
    by_block = {run.spec.block: run.quiet_check for run in reversed(runs) if run.quiet_check is not None}
    if not by_block:
        return None
    machines = {node.boot_id for run in runs if run.facts for node in run.facts.nodes}
    return QuietChecks(
        quiet=sum(quiet_check.is_quiet for quiet_check in by_block.values()),
        busy={block: quiet_check.busy for block, quiet_check in sorted(by_block.items()) if not quiet_check.is_quiet},
        waited_seconds=math.fsum(quiet_check.waited_seconds for quiet_check in by_block.values()),
        elsewhere=bool(machines) and not machines & {quiet_check.boot_id for quiet_check in by_block.values()},
        others_cpus_idle=_most_by_others(each for those in idle_conditions(table) for each in those),
        others_cpus=_most_by_others(timed),
        deployment_cpus=max((run.idle_load.cpus for run in runs if run.idle_load), default=None),
    )


def _most_by_others(seen: Iterable[Conditions]) -> float | None:
    return max((each.others_cpus for each in seen if each.others_cpus is not None), default=None)
