"""A session, and all that may be said about it: the one value that every renderer reads."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from bench.analysis import exclusions, interrupted_pairs
from bench.analysis.answer import answer, question
from bench.analysis.as_in_study import BesideStudy, beside_studies
from bench.analysis.caveats import rules as caveats
from bench.analysis.caveats.evidence import SESSION, Caveat, Evidence, about, cell_name
from bench.analysis.caveats.values import order_test
from bench.analysis.cells import CellReport, build_cell
from bench.analysis.comparison import EXCLUDED, MARGIN, Comparison, attempts_that_count
from bench.analysis.contrasts import Contrast, Effect, contrasts
from bench.analysis.costs import Cost, costs
from bench.analysis.exclusions import Exclusions, QuietChecks
from bench.analysis.facts import differences, measured_totals, planned_totals
from bench.analysis.levels import outside_seconds
from bench.analysis.multiple_comparison import MultipleComparison, multiple_comparisons
from bench.analysis.multiplicity import adjusted, adjusted_contrasts
from bench.analysis.rows import MetricRow, Question
from bench.analysis.scaling_series import ScalingSeries, scaling_series
from bench.analysis.scheduling import Scheduling, by_topology
from bench.analysis.table import Table
from bench.analysis.warmups import CellKey, discarding
from bench.meanings import Meaning
from bench.model import Facts, Run, Session, Spec, Status, Topology, Value

ESTIMATOR = (
    "each topology: median of the invocations' values, interval of order statistics; "
    "ratio: Hodges-Lehmann on the paired log-ratios, interval by inverting the signed-rank test"
)
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Excluded:
    """An attempt whose numbers are not used."""

    run: str
    status: Status
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OrderTest:
    """Whether values drift with the position in the session: Spearman's rank correlation."""

    rho: float
    p: float


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was asked, how it was measured, what came out, and its caveats."""

    session: str
    created: str
    target: str
    profile: str
    seed: int
    command: str
    options: Mapping[str, Value]
    topologies: tuple[Topology, ...]  # the baseline first
    question: str
    answer: tuple[str, ...]
    caveats: tuple[Caveat, ...]
    blocks: int
    warmups: int
    samples: int  # that count, in each invocation
    sample_seconds: float
    planned: int
    runs: Mapping[Status, int]
    excluded: tuple[Excluded, ...]
    randomised: str
    estimator: str
    margin: float
    versions: Mapping[str, str]
    link: str
    same_host: bool | None
    order_test: OrderTest | None
    common_params: Mapping[str, Mapping[str, Value]]  # experiment: those that are the same in all of its cells
    meanings: Mapping[str, Mapping[str, Meaning]]  # experiment: of those of its metrics that have one, by name
    cells: tuple[CellReport, ...]
    contrasts: tuple[Contrast, ...] = ()  # what each change of a parameter brought
    scaling_series: tuple[ScalingSeries, ...] = ()  # cells that differ in their number of workers alone
    primary: tuple[str, ...] = ()  # cells that were named beforehand as those asked about
    multiple_comparisons: tuple[MultipleComparison, ...] = ()  # more than two arms of a cell at once
    quiet_checks: QuietChecks | None = None
    scheduling: tuple[Scheduling, ...] = ()  # by topology, as far as the machine tells
    excluded_blocks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # block: why nothing of it is used
    noise: str = ""  # why no verdict is given at all
    stamps: tuple[str, ...] = ()  # on every page and row: "emulated multi-node", "unequal"
    ended: str = ""  # why the session is complete without all that it planned
    left_out_blocks: int = 0  # not begun, since it ended early
    unfit: tuple[str, ...] = ()  # cells of the profile that the nodes are too small for
    dropped: tuple[str, ...] = ()  # asked for, and not planned: the budget had no room
    scale: float = 1.0  # share of the profile's sizes
    scaled: tuple[str, ...] = ()  # what became of them
    stand_ins: tuple[str, ...] = ()  # data sets in place of others that were not there
    studies: tuple[BesideStudy, ...] = ()  # that the session repeats, with our figures beside their own
    profiled_in: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # experiment: by arm that was measured, the function that a profiler sees its work in; empty: it sees none
    price_per_cpu_hour: str = ""  # 0.04 EUR
    costs: tuple[Cost, ...] = ()  # where there is a price
    version: int = VERSION


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Make no collector look at all runs again and again: values hold no cycles, and a report makes very many."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_collector_paused()
def build(
    session: Session,
    runs: Sequence[Run],
    *,
    margin: float = MARGIN,
    warmups: Mapping[CellKey, int] = MappingProxyType({}),
) -> Report:
    """All that `runs` say about `session`. A difference within `margin` is too small to matter: 0.02 is 2 %.

    `warmups`: first turns of a cell that do not count, at the least, since another session needs as many.
    """
    as_recorded = attempts_that_count(runs)
    whole, session = session, _as_far_as_begun(session, as_recorded)
    topologies = by_size(session)
    recorded = Table(tuple(as_recorded.values()))
    seen = exclusions.conditions(recorded)
    # By the turns that were declared: which are discarded depends on values, and an exclusion must not.
    excluded = exclusions.of_runs(recorded.runs, seen, is_forced=session.allow_noise)
    table = discarding(session, recorded, warmups)
    asked = Question(
        session=session,
        runs=exclusions.without(interrupted_pairs.without(table), excluded),
        topologies=tuple(topology.name for topology in topologies),
        margin=margin,
        table=table,
        outside_seconds=outside_seconds(session, table),
    )
    cells = [build_cell(asked, experiment, cell, title) for (experiment, cell), title in titles(session).items()]
    cells = [_without_pairs(cell, excluded) if excluded.leaves_none else cell for cell in cells]
    cells = adjusted(cells, primary=session.primary_cells)
    timed = seen if table is recorded else exclusions.conditions(table)
    evidence = Evidence(
        question=asked,
        attempts=tuple(runs),
        cells=tuple(cells),
        topologies=topologies,
        exclusions=excluded,
        quiet_checks=exclusions.quiet_checks(table, (each for those in timed for each in those)),
        contrasts=tuple(adjusted_contrasts(contrasts(asked))),
    )
    found = caveats.find(evidence)
    changes = [_judged(each, found, excluded) for each in evidence.contrasts]
    cells = [_refuse(cell, found) for cell in cells]
    if excluded.is_noisy:
        cells = [_undecided(cell, excluded.noise) for cell in cells]
    return replace(
        _assemble(evidence, cells, changes, found),
        scaling_series=scaling_series(asked),
        studies=tuple(beside_studies(asked)),
        primary=session.primary_cells,
        multiple_comparisons=tuple(
            replace(each, refused=_why_refused(each, found, excluded)) for each in multiple_comparisons(cells)
        ),
        planned=len(whole.specs),
        left_out_blocks=len(_blocks(whole) - _blocks(session)),
    )


def _as_far_as_begun(session: Session, runs: Mapping[str, Run]) -> Session:
    """A session that ended early, without the blocks that it left out: they are no gaps."""
    if not session.ended:
        return session
    begun = {run.spec.block for run in runs.values()}
    return replace(session, specs=tuple(spec for spec in session.specs if spec.block in begun))


def _blocks(session: Session) -> set[int]:
    return {spec.block for spec in session.specs}


def _assemble(
    evidence: Evidence, cells: Sequence[CellReport], changes: Sequence[Contrast], found: tuple[Caveat, ...]
) -> Report:
    session = evidence.session
    first = session.specs[0] if session.specs else None
    facts = [run.facts for run in evidence.usable if run.facts]
    order = order_test(evidence)
    return Report(
        session=session.id,
        created=session.created,
        target=session.target,
        profile=session.profile,
        seed=session.seed,
        command=session.command,
        options=session.options,
        topologies=evidence.topologies,
        question=question(session, evidence.topologies),
        answer=answer(cells, changes, noise=evidence.exclusions.noise if evidence.exclusions.is_noisy else ""),
        caveats=found,
        blocks=len(_blocks(session)),
        warmups=first.warmups if first else 0,
        samples=first.samples if first else 0,
        sample_seconds=first.sample_seconds if first else 0.0,
        planned=len(session.specs),
        runs=dict(Counter(run.status for run in evidence.runs)),
        excluded=tuple(
            Excluded(run=run.spec.folder, status=run.status, reasons=run.reasons)
            for run in evidence.attempts
            if run.status != "ok"
        ),
        randomised=f"order of topologies and cells in each block, of arms in each turn (seed {session.seed})",
        estimator=ESTIMATOR,
        margin=evidence.question.margin,
        versions=_versions(facts) | ({"revision": session.revision} if session.revision else {}),
        link=" or ".join(sorted({each.link for each in facts})),
        same_host=any(each.same_host for each in facts if len(each.nodes) > 1) if facts else None,
        order_test=OrderTest(rho=order[0], p=order[1]) if order else None,
        common_params={name: common_params(session, name) for name in session.metrics},
        profiled_in=_profiled_in(session),
        meanings={
            name: {metric.name: metric.means for metric in metrics if metric.means}
            for name, metrics in session.metrics.items()
        },
        cells=tuple(cells),
        contrasts=tuple(changes),
        quiet_checks=evidence.quiet_checks,
        scheduling=tuple(by_topology([each.name for each in evidence.topologies], evidence.table)),
        excluded_blocks={} if evidence.exclusions.is_forced else evidence.exclusions.reasons,
        noise=evidence.exclusions.noise if evidence.exclusions.is_noisy else "",
        stamps=tuple(_stamps(evidence, facts)),
        ended=session.ended,
        unfit=session.unfit,
        dropped=session.dropped,
        scale=session.scale,
        scaled=session.scaled,
        stand_ins=session.stand_ins,
        price_per_cpu_hour=session.price_per_cpu_hour,
        costs=tuple(costs(cells, evidence.topologies, session.price_per_cpu_hour)),
    )


def _profiled_in(session: Session) -> dict[str, dict[str, str]]:
    """Of experiments whose workers a profiler can tell apart: where it sees the subject and the peers that were measured."""
    return {
        name: {
            arm.name: arm.profiled_in
            for arm in arms
            if arm.role in ("subject", "peer")
            and any(spec.experiment == name and spec.wants(arm) for spec in session.specs)
        }
        for name, arms in session.arms.items()
        if any(arm.profiled_in for arm in arms)
    }


def _stamps(evidence: Evidence, seen: Sequence[Facts]) -> Iterator[str]:
    """What no number may be taken without: whether several nodes are several machines, and whether they were equal."""
    spread_out = [each for each in seen if len(each.nodes) > 1]
    if spread_out:
        nodes, hosts = min((len(each.nodes), len({node.boot_id for node in each.nodes})) for each in spread_out)
        if hosts == 1:
            yield "emulated multi-node"
        else:
            yield "physical multi-node" if hosts == nodes else f"{nodes} nodes on {hosts} hosts"
    if evidence.session.scale != 1:
        yield f"scale {evidence.session.scale:g}"
    for profiler in sorted({each.profiler for each in seen if each.profiler}):
        yield f"profiled by {profiler}"
    if evidence.session.allow_unequal and (
        any(each.confounds for each in differences(evidence.usable))
        or any(planned_totals(evidence.topologies))
        or any(measured_totals(evidence.usable))
    ):
        yield "unequal"


def by_size(session: Session) -> tuple[Topology, ...]:
    """By number of nodes: `single`, the baseline, first."""
    seen = {spec.topology.name: spec.topology for spec in session.specs}
    return tuple(sorted(seen.values(), key=lambda topology: topology.nodes))


def _versions(facts: Sequence[Facts]) -> dict[str, str]:
    kinds = dict.fromkeys(
        (*node.versions.items(), ("raymeter code", node.code_hash), ("kernel", node.kernel))
        for each in facts
        for node in each.nodes
    )
    found: dict[str, set[str]] = {}
    for name, version in (each for kind in kinds for each in kind):
        found.setdefault(name, set()).add(version)
    return {name: " or ".join(sorted(versions)) for name, versions in found.items()}


def common_params(session: Session, experiment: str) -> dict[str, Value]:
    """Params of `experiment` that are the same in all of its cells."""
    specs = [spec for spec in session.specs if spec.experiment == experiment]
    return {
        name: value
        for name, value in (specs[0].params.items() if specs else ())
        if all(spec.params.get(name) == value for spec in specs)
    }


def titles(session: Session) -> dict[tuple[str, str], str]:
    """Each cell, in order of its name, and the params that make it what it is."""
    cells: dict[tuple[str, str], Spec] = {}
    for spec in session.specs:
        cells.setdefault((spec.experiment, spec.cell), spec)
    order = {name: position for position, name in enumerate(session.metrics)}
    common = {experiment: common_params(session, experiment) for experiment in {name for name, _ in cells}}
    return {
        key: ", ".join(f"{name}={value}" for name, value in spec.params.items() if name not in common[key[0]])
        for key, spec in sorted(cells.items(), key=lambda item: (order.get(item[0][0], len(order)), item[0]))
    }


def _refuse(cell: CellReport, found: Sequence[Caveat]) -> CellReport:
    """Without its verdicts, where a caveat refuses them."""
    whys = _whys(found, [about(cell)])
    if not whys:
        return cell
    refused = _with_comparisons(cell, lambda each: _refused(each, whys[0].text))
    own = [
        each for each in whys if each.about == about(cell)
    ]  # others differ between topologies, and say nothing of arms
    return replace(
        refused,
        arms=tuple(replace(row, verdict=None) if _concern(own, row.topology) else row for row in refused.arms),
    )


def _concern(whys: Sequence[Caveat], topology: str) -> list[Caveat]:
    """Those that say something of one topology by itself."""
    return [each for each in whys if each.topology in ("", topology)]


def _undecided(cell: CellReport, why: str) -> CellReport:
    """With all that was not refused undecided: the host was too noisy for a verdict."""
    found = _with_comparisons(cell, lambda each: each if each.refused else replace(each, verdict="undecided", why=why))
    return replace(found, arms=tuple(replace(row, verdict="undecided") if row.verdict else row for row in found.arms))


def _whys(found: Sequence[Caveat], cells: Collection[str]) -> list[Caveat]:
    """The caveats that refuse any verdict on `cells`: to one of them, or to the session."""
    abouts = (SESSION, *cells)
    return [
        replace(each, text=each.text.removesuffix("."))
        for each in found
        if each.severity == "refuses" and each.about in abouts
    ]


def _why_refused(one: MultipleComparison, found: Sequence[Caveat], excluded: Exclusions) -> str:
    """Why nothing may be said of several arms of a cell: a caveat about it, or a noisy host."""
    whys = _concern(_whys(found, [cell_name(one.experiment, one.cell)]), one.topology)
    return whys[0].text if whys else excluded.noise if excluded.is_noisy else ""


def _judged(contrast: Contrast, found: Sequence[Caveat], excluded: Exclusions) -> Contrast:
    """Without what a caveat refuses to either cell, on the topology that it is about, and undecided where the host was too noisy."""
    if excluded.leaves_none:
        contrast = contrast.changed(lambda each: _unpaired(each, excluded))
    whys = _whys(found, [cell_name(contrast.experiment, cell) for cell in contrast.cells])
    if excluded.is_noisy:
        contrast = contrast.changed(lambda each: replace(each, verdict="undecided", why=excluded.noise))
    return replace(contrast, effects=tuple(_refused_effect(effect, whys) for effect in contrast.effects))


def _refused_effect(effect: Effect, whys: Sequence[Caveat]) -> Effect:
    """The interaction is of all topologies, so that what refuses one of them refuses it."""
    if not whys:
        return effect
    rows = {
        name: replace(row, comparison=_refused(row.comparison, own[0].text))
        if row.comparison and (own := _concern(whys, name))
        else row
        for name, row in effect.rows.items()
    }
    of_all = _refused(effect.interaction, whys[0].text) if effect.interaction else None
    return replace(effect, rows=rows, interaction=of_all)


def _refused(found: Comparison, why: str) -> Comparison:
    return replace(found, verdict=None, refused=True, why=why)


def _unpaired(found: Comparison, excluded: Exclusions) -> Comparison:
    """Without a pair, since every block is excluded."""
    missing = {**found.missing, **dict.fromkeys(excluded.reasons, EXCLUDED)}
    return Comparison(baseline=found.baseline, candidate=found.candidate, pairs=0, missing=missing)


def _without_pairs(cell: CellReport, excluded: Exclusions) -> CellReport:
    """Without a pair, where every block is excluded: what each topology did is shown, and not how it compares."""
    return replace(_with_comparisons(cell, lambda each: _unpaired(each, excluded)), network_breakdown=None)


def _with_comparisons(cell: CellReport, change: Callable[[Comparison], Comparison]) -> CellReport:
    def changed(rows: Sequence[MetricRow]) -> tuple[MetricRow, ...]:
        return tuple(replace(row, comparison=change(row.comparison)) if row.comparison else row for row in rows)

    return replace(cell, rows=changed(cell.rows), usage=changed(cell.usage), sweeps=changed(cell.sweeps))
