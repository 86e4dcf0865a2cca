"""Finds caveats in the conditions of a session: facts that differ, failed runs, shared machines, missing counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench.analysis import facts, interrupted_pairs
from bench.analysis.caveats.evidence import SESSION, Caveat, Evidence, Severity, about, confounds
from bench.analysis.comparison import not_usable
from bench.analysis.facts import Difference
from bench.analysis.number_format import percent
from bench.analysis.oversubscribed import MARK, usable_cpus
from bench.analysis.oversubscribed import oversubscribed as more_workers
from bench.analysis.usage import IDLE
from bench.counts import plural
from bench.machine import bytecode
from bench.model import Session

if TYPE_CHECKING:
    from bench.analysis.table import Mask, Table

MOST_NAMED = 4  # runs in one sentence
THROTTLED = 0.02  # share of periods


def facts_differ(evidence: Evidence) -> Iterator[Caveat]:
    """Facts that had to be equal on both topologies or in all blocks, and were not."""
    for difference in facts.differences(evidence.usable):
        yield Caveat(
            severity=_severity(evidence, difference),
            about=SESSION,
            text=f"{difference.text}.",
        )


def _severity(evidence: Evidence, difference: Difference) -> Severity:
    """Return the severity of a difference. Different data always blocks the verdict, whatever is allowed."""
    if difference.is_data:
        return "refuses"
    return confounds(evidence) if difference.confounds else "weakens"


def unequal_totals(evidence: Evidence) -> Iterator[Caveat]:
    """One topology had more of a resource in total than the other, so the network is not the only difference."""
    for difference in (*facts.planned_totals(evidence.topologies), *facts.measured_totals(evidence.usable)):
        yield Caveat(severity=confounds(evidence), about=SESSION, text=f"{difference.text}.")


def digests_differ(evidence: Evidence) -> Iterator[Caveat]:
    """Two runs gave different results for the same work, so one of them is wrong."""
    seen: dict[tuple[str, str], set[str]] = {}
    for run in evidence.usable:
        for name, digest in run.digests.items():
            seen.setdefault((run.spec.experiment, name), set()).add(digest)
    for (experiment, name), digests in seen.items():
        if len(digests) > 1:
            text = f"the runs of {experiment} do not agree on {name} ({len(digests)} checksums): a result is wrong."
            yield Caveat(severity="refuses", about=SESSION, text=text)


def excluded_runs(evidence: Evidence) -> Iterator[Caveat]:
    """Runs that are not used, with the reasons, including those that were repeated since."""
    bad = [run for run in evidence.attempts if run.status not in ("ok", "damaged")]
    if bad:
        which = "; ".join(f"{run.spec.folder} ({not_usable(run)})" for run in bad[:MOST_NAMED])
        rest = f"; and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
        good = {run.spec.id for run in evidence.usable}
        again = sum(run.spec.id in good for run in bad)
        then = f" {'All' if again == len(bad) else again} done again since." if again else ""
        text = f"{plural(len(bad), 'run')} left out: {which}{rest}.{then}"
        yield Caveat(severity="note" if again == len(bad) else "weakens", about=SESSION, text=text)


def damaged_runs(evidence: Evidence) -> Iterator[Caveat]:
    """Runs whose record cannot be read, with the reasons and what to do."""
    bad = [run for run in evidence.attempts if run.status == "damaged"]
    if bad:
        which = "; ".join(f"{run.spec.folder} ({'; '.join(run.reasons)})" for run in bad[:MOST_NAMED])
        rest = f"; and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
        good = {run.spec.id for run in evidence.usable}
        is_done_again = all(run.spec.id in good for run in bad)
        then = (
            "All were run again since."
            if is_done_again
            else f"`bench resume {evidence.session.id}` runs again what was damaged; what stays damaged stays left out."
        )
        text = f"{plural(len(bad), 'run')} damaged and left out: {which}{rest}. {then}"
        yield Caveat(severity="note" if is_done_again else "weakens", about=SESSION, text=text)


def pairs_apart(evidence: Evidence) -> Iterator[Caveat]:
    """Runs whose partner in the pair was not measured together with them."""
    interrupted = interrupted_pairs.halves(evidence.table)
    if interrupted:
        name, reason = next(iter(interrupted.items()))
        text = f"{plural(len(interrupted), 'run')} left out, because their pairs were interrupted; the first: {name}, {reason}."
        yield Caveat(severity="weakens", about=SESSION, text=text)


def not_run(evidence: Evidence) -> Iterator[Caveat]:
    """Runs of the plan that are not done."""
    left = len(evidence.session.specs) - len(evidence.runs)
    if left > 0:
        text = f"{plural(left, 'run')} of {len(evidence.session.specs)} not done yet: the session can be resumed."
        yield Caveat(severity="weakens", about=SESSION, text=text)


def throttled(evidence: Evidence) -> Iterator[Caveat]:
    """Nodes that were stopped by a CPU quota, or for which that is unknown."""
    worst: dict[str, float] = {}
    unknown = False
    for run in evidence.usable:
        metrics = evidence.session.metrics.get(run.spec.experiment)
        if not metrics:
            continue
        usage = evidence.question.usage(_subject(evidence.session, run.spec.experiment), metrics[0])
        (at,) = evidence.table.of([run]).at
        for node in usage.nodes_of([at]):
            share = usage.column("throttled share", "", node)[at]
            name = f"{node} of {run.spec.topology.name}"
            unknown = unknown or share is None
            worst[name] = max(worst.get(name, 0.0), share or 0.0)
    shares = {name: share for name, share in worst.items() if share > THROTTLED}
    if shares:
        name = max(shares, key=lambda name: shares[name])
        others = f" ({plural(len(shares) - 1, 'other node')} in no more)" if len(shares) > 1 else ""
        text = f"{name} was throttled in up to {percent(shares[name])} of the periods of its CPU quota, stalls not Ray's{others}."
        yield Caveat(severity="weakens", about=SESSION, text=text)
    if unknown:
        text = "whether a CPU quota throttled the nodes is unknown: there are no counters for it here."
        yield Caveat(severity="note", about=SESSION, text=text)


def _subject(session: Session, experiment: str) -> str:
    return next((arm.name for arm in session.arms.get(experiment, ()) if arm.role == "subject"), "")


def overcommitted(evidence: Evidence) -> Iterator[Caveat]:
    """More CPUs granted, or more native threads started, than there are."""
    for topology, run in {run.spec.topology.name: run for run in evidence.usable}.items():
        nodes = run.facts.nodes if run.facts else ()
        granted, allowed = sum(node.cpus_granted for node in nodes), usable_cpus(nodes)
        if granted > allowed:
            text = f"{topology} was granted {plural(granted, 'CPU')} where it may run on {allowed:g}: contention."
            yield Caveat(severity="weakens", about=SESSION, text=text)
        for node in nodes:
            threads = [int(value) for value in node.threads.values() if value.isdecimal()]
            if max(threads, default=0) > node.cpus_granted:
                text = (
                    f"a process on {node.node} of {topology} may start {max(threads)} native threads,"
                    f" and the node has {plural(node.cpus_granted, 'CPU')}: they compete."
                )
                yield Caveat(severity="weakens", about=SESSION, text=text)


def oversubscribed(evidence: Evidence) -> Iterator[Caveat]:
    """Cells with more busy workers than CPUs, as their experiment declares."""
    for cell in evidence.cells:
        crowded = sorted(set(more_workers(evidence.usable_of(cell).runs)), reverse=True)
        if crowded:
            which = ", ".join(
                f"{workers} workers on {plural(round(cpus), 'CPU')} of {name}" for name, workers, cpus in crowded
            )
            text = f"{MARK}: {which}. Workers wait for a CPU, and what is measured is scheduling too."
            yield Caveat(severity="weakens", about=about(cell), text=text)


def compiled_at_every_start(evidence: Evidence) -> Iterator[Caveat]:
    """Nodes on which Python keeps no bytecode: every worker compiles what it imports."""
    nodes = [node for run in evidence.usable if run.facts for node in run.facts.nodes]
    if any(node.settings.get(bytecode.SETTING) == bytecode.NOT_KEPT for node in nodes):
        text = (
            "Python keeps no bytecode here, and every worker compiled what it imports: each start took seconds longer."
            f" {bytecode.FIX}"
        )
        yield Caveat(severity="weakens", about=SESSION, text=text)


def unchecked(evidence: Evidence) -> Iterator[Caveat]:
    """Checks that need arms which were not measured."""
    for checks in evidence.session.unchecked:
        yield Caveat(severity="weakens", about=SESSION, text=f"not checked in {checks}.")


def profiled(evidence: Evidence) -> Iterator[Caveat]:
    """Sessions with a profiler, which takes time and memory."""
    for name in sorted({run.facts.profiler for run in evidence.usable if run.facts and run.facts.profiler}):
        text = (
            f"{name} profiled driver and workers, and slowed them: use the numbers of this session to read its"
            " profiles, but do not quote them."
        )
        yield Caveat(severity="weakens", about=SESSION, text=text)


def same_host(evidence: Evidence) -> Iterator[Caveat]:
    """Nodes that share a machine: there is no physical network between them."""
    spread_out = [run for run in evidence.usable if run.facts and len(run.facts.nodes) > 1]
    if any(run.facts and run.facts.same_host for run in spread_out):
        name = spread_out[0].spec.topology.name
        text = (
            f"same host: the nodes of {name} share one machine. This measures protocol and copying,"
            " not a physical network."
        )
        yield Caveat(severity="note", about=SESSION, text=text)


def other_host(evidence: Evidence) -> Iterator[Caveat]:
    """Topologies that have no boot of a machine in common."""
    seen: dict[str, set[str]] = {}
    for run in evidence.usable:
        if run.facts:
            seen.setdefault(run.spec.topology.name, set()).update(node.boot_id for node in run.facts.nodes)
    hosts = list(seen.values())
    if len(hosts) > 1 and not set.intersection(*hosts):
        text = "the topologies ran on different machines, or the machine was restarted between them."
        yield Caveat(severity="weakens", about=SESSION, text=text)


def driver_shares_head(evidence: Evidence) -> Iterator[Caveat]:
    """The driver runs on the head beside its share of the work."""
    if any(len(run.facts.nodes) > 1 for run in evidence.usable if run.facts):
        text = "the driver runs on the head and shares its CPUs; the other nodes have theirs to themselves."
        yield Caveat(severity="note", about=SESSION, text=text)


def not_deterministic(evidence: Evidence) -> Iterator[Caveat]:
    """Arms whose results depend on timing: their repeats differ by more than measurement noise."""
    done = {run.spec.experiment for run in evidence.usable}
    for experiment, arms in evidence.session.arms.items():
        for arm in arms:
            if experiment in done and not arm.repeatable:
                text = f"results of {arm.name} in {experiment} are not deterministic: the same seed gives others each time."
                yield Caveat(severity="note", about=SESSION, text=text)


def no_bytes(evidence: Evidence) -> Iterator[Caveat]:
    """Nodes without a network namespace of their own, whose bytes cannot be counted."""
    table = evidence.table
    is_uncounted = _has(table, table.usage.turn >= 0) & ~_has_bytes(table)
    links = {
        run.facts.link
        for run, is_without in zip(evidence.runs, is_uncounted, strict=True)
        if is_without and run.status == "ok" and run.facts and len(run.facts.nodes) > 1
    }
    for link in sorted(links):
        text = f"bytes on the network are not counted here (link: {link}): the cost of the network shows only in time."
        yield Caveat(severity="note", about=SESSION, text=text)


def no_idle_baseline(evidence: Evidence) -> Iterator[Caveat]:
    """Runs whose bytes were counted without a baseline of the idle cluster."""
    table = evidence.table
    is_without = _has_bytes(table) & ~_has(table, table.usage.named(arm=IDLE))
    without = [
        run for run, is_missing in zip(evidence.runs, is_without, strict=True) if is_missing and run.status == "ok"
    ]
    if without:
        text = f"no idle baseline in {plural(len(without), 'run')}: bytes include the traffic of an idle Ray."
        yield Caveat(severity="weakens", about=SESSION, text=text)


def _has(table: Table, rows: Mask) -> Mask:
    """Return for each run whether it has any of these rows of usage."""
    import numpy as np

    return np.greater(np.bincount(table.usage.run[rows], minlength=len(table.runs)), 0)


def _has_bytes(table: Table) -> Mask:
    """Return for each run whether bytes were counted in any of its rows of usage."""
    import numpy as np

    return _has(table, ~np.isnan(table.usage.read("sent_bytes")))


def not_reconciled(evidence: Evidence) -> Iterator[Caveat]:
    """Runs whose metrics page did not agree with the record."""
    bad = [run.spec.folder for run in evidence.usable if run.reconciled is False]
    if bad:
        text = (
            f"the metrics page did not agree with the record in {plural(len(bad), 'run')} ({bad[0]}): trust the record."
        )
        yield Caveat(severity="weakens", about=SESSION, text=text)
