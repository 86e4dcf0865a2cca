"""Decides which blocks other processes disturbed, without looking at any result.

`decide_exclusions` gets `Conditions`: what the kernel counted for the machine, and nothing about what a run achieved. An excluded
block is excluded for every cell, topology and arm alike.

CPU demand of the harness itself is no interference. A node with more to run than CPUs makes its own tasks wait, so pressure alone
proves nothing: on two cores Ray often keeps it above 90 %. A task waits for whatever holds the CPU, and other processes hold it for
their share of all CPU time used. So this share of the time in which tasks waited is attributed to the others, the rest to own demand:

    pressure beyond own demand = time with a task waiting / time watched * (busy - own) / busy

with `busy` the CPU seconds of the whole machine, and `own` those of all the run's nodes on it and of what the deployment uses beside
them at rest, as measured when it was made: kubelet and API server of kind would disturb every other block too. CPU time beyond
that is the others'. If the kernel counts no pressure, the time that the node's own threads waited in the run queue is used, limited
to the whole time. If one of these cannot be counted, nothing is excluded for it, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bench.analysis.comparison import EXCLUDED
from bench.analysis.number_format import percent
from bench.analysis.table import Table, known
from bench.analysis.usage import IDLE, ByNode
from bench.counts import plural
from bench.model import IdleLoad, Run

if TYPE_CHECKING:
    from bench.analysis.table import Mask

MOST_STEAL = 0.02  # of the time of the CPUs that a node may run on
MOST_PRESSURE = 0.20  # of the time, beyond the harness's own demand
MOST_SWAPPED_BYTES = 2**20  # in a run: a few pages of an idle program disturb nothing
NOISY = 0.20  # share of all blocks: if more are excluded, no verdict is given


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The state of one node and its machine while a run was timed, without anything about what the run achieved."""

    block: int
    where: str  # "head of b01-multi-inference-c01"
    watched_seconds: float | None  # that the counters cover
    cpus: int  # number that the node may run on
    is_limited: bool  # whether the node has a CPU quota of its own
    steal_seconds: float | None
    throttled_periods: float | None
    pressure_cpu_seconds: float | None
    host_busy_seconds: float | None
    own_cpu_seconds: float | None  # of all the run's nodes on this machine, plus the deployment at rest
    swapped_bytes: float | None
    run_queue_wait_seconds: float | None = None  # sum over all threads of the node

    @property
    def steal(self) -> float | None:
        """Share of the node's CPU time that the hypervisor gave to other machines."""
        return _over(self.steal_seconds, self.watched_seconds, self.cpus)

    @property
    def others_cpus(self) -> float | None:
        """Number of CPUs that other processes used."""
        if self.host_busy_seconds is None or self.own_cpu_seconds is None:
            return None
        return _over(max(self.host_busy_seconds - self.own_cpu_seconds, 0.0), self.watched_seconds)

    @property
    def pressure_beyond_own(self) -> float | None:
        """Share of the time in which tasks waited for a CPU that other processes held."""
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
    """The measured blocks that are not used, with the reasons."""

    blocks: frozenset[int] = frozenset()
    reasons: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # by excluded block
    unseen: tuple[str, ...] = ()  # kinds of interference that could not be counted, and so exclude nothing
    is_forced: bool = False  # the user wants excluded blocks to be used (--allow-noise)

    @property
    def is_noisy(self) -> bool:
        """Whether so many blocks are excluded that no verdict can be given."""
        return not self.is_forced and len(self.reasons) > NOISY * len(self.blocks)

    @property
    def leaves_none(self) -> bool:
        """Whether all blocks are excluded."""
        return bool(self.reasons) and not self.is_forced and len(self.reasons) == len(self.blocks)

    @property
    def noise(self) -> str:
        """The reason why no verdict is given on a noisy host."""
        return f"noisy host: {len(self.reasons)} of {plural(len(self.blocks), 'block')} {EXCLUDED}"


def of_runs(runs: Sequence[Run], seen: Iterable[Iterable[Conditions]], *, is_forced: bool = False) -> Exclusions:
    """Exclude blocks by what was `seen` of each of the `runs` that are ok, while it was timed."""
    of_each = zip(runs, seen, strict=True)
    return decide_exclusions(
        (each for run, those in of_each if run.status == "ok" for each in those), is_forced=is_forced
    )


def decide_exclusions(conditions_of_nodes: Iterable[Conditions], *, is_forced: bool = False) -> Exclusions:
    """Exclude each block with too much interference in any of its runs."""
    blocks: set[int] = set()
    reasons: dict[int, list[str]] = {}
    unseen: dict[str, None] = {}
    for condition in conditions_of_nodes:
        blocks.add(condition.block)
        for reason in _reasons(condition):
            reasons.setdefault(condition.block, []).append(reason)
        unseen |= dict.fromkeys(_unseen(condition))
    return Exclusions(
        blocks=frozenset(blocks),
        reasons={block: tuple(reasons[block]) for block in sorted(reasons)},
        unseen=tuple(unseen),
        is_forced=is_forced,
    )


def _reasons(condition: Conditions) -> Iterator[str]:
    if (condition.steal or 0.0) > MOST_STEAL:
        yield f"{condition.where}: {percent(condition.steal or 0.0)} of its CPU time was stolen by the hypervisor"
    if condition.throttled_periods and not condition.is_limited:
        yield f"{condition.where}: throttled in {plural(int(condition.throttled_periods), 'period')}, without a quota of its own"
    if (condition.pressure_beyond_own or 0.0) > MOST_PRESSURE:
        used = f"{condition.others_cpus or 0.0:.2g}"
        yield (
            f"{condition.where}: tasks waited for a CPU that others held {percent(condition.pressure_beyond_own or 0.0)} of the time"
            f" (others used {used} CPU{'' if used == '1' else 's'})"
        )
    if (condition.swapped_bytes or 0.0) > MOST_SWAPPED_BYTES:
        yield f"{condition.where}: its machine swapped {(condition.swapped_bytes or 0.0) / 2**20:.0f} MiB"


def _unseen(condition: Conditions) -> Iterator[str]:
    """Yield the kinds of interference that were not counted. Throttling has a caveat of its own."""
    if condition.steal is None:
        yield "steal"
    if condition.pressure_beyond_own is None:
        yield "CPU pressure beyond own demand"
    if condition.swapped_bytes is None:
        yield "swapping"


def conditions(table: Table) -> list[list[Conditions]]:
    """Return the state of each node's machine, by run, over all timed intervals that count."""
    return _conditions(table, ~(table.usage.named(arm=IDLE) | table.warm_usage))


def idle_conditions(table: Table) -> list[list[Conditions]]:
    """Return the same for the idle interval before anything ran."""
    return _conditions(table, table.usage.named(arm=IDLE))


def _conditions(table: Table, rows: Mask) -> list[list[Conditions]]:
    by_node = ByNode(table, rows)
    nodes = by_node.nodes_of(range(len(table.runs)))
    column = [by_node.names.index(node) for node in nodes]
    has = by_node.has[:, column].ravel().tolist()
    totals = zip(*[known(by_node.sum(by_node.read(name))[:, column].ravel()) for name in _READ], strict=True)
    entries = iter(
        [dict(zip(_READ, values, strict=True)) if is_in else {} for is_in, values in zip(has, totals, strict=True)]
    )
    by_run = [{node: counters for node in nodes if (counters := next(entries))} for _ in table.runs]
    return [list(_of_run(run, counted)) for run, counted in zip(table.runs, by_run, strict=True)]


def _of_run(run: Run, counted: Mapping[str, Mapping[str, float | None]]) -> Iterator[Conditions]:
    """Yield the conditions of each node of a run. `counted`: counters by node and field name."""
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
    """Return the CPU seconds that the deployment uses at rest in `seconds`; 0 if that was not measured."""
    if load is None:
        return 0.0
    return None if seconds is None else load.cpus * seconds


def _total(readings: Sequence[float | None]) -> float | None:
    """Return the sum; None if one was not counted."""
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
    """Mark the runs of excluded blocks as invalid, unless that would leave no block; return all runs by Spec."""
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
    """The quiet checks of all blocks, and the CPUs that other processes used during the session."""

    quiet: int
    busy: Mapping[int, float | None]  # share of busy CPUs, by block that began on a busy machine
    waited_seconds: float
    elsewhere: bool  # the quiet check ran on a machine that has none of the nodes
    others_cpus_idle: float | None  # most CPUs that others used while nothing ran; the next: while something was timed
    others_cpus: float | None
    deployment_cpus: float | None = None  # most CPUs that the deployment used at rest beside Ray's nodes


def quiet_checks(table: Table, timed: Iterable[Conditions]) -> QuietChecks | None:
    """Summarise the quiet checks of the runs' blocks; None if there are none. `timed`: the result of `conditions`."""
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
        others_cpus_idle=_most_by_others(condition for of_run in idle_conditions(table) for condition in of_run),
        others_cpus=_most_by_others(timed),
        deployment_cpus=max((run.idle_load.cpus for run in runs if run.idle_load), default=None),
    )


def _most_by_others(conditions_of_nodes: Iterable[Conditions]) -> float | None:
    used = (condition.others_cpus for condition in conditions_of_nodes)
    return max((cpus for cpus in used if cpus is not None), default=None)
