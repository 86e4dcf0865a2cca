"""Finds caveats in the values: too few, too short, skewed, by chance, or of something else than what was meant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.analysis.arms import ArmRow
from bench.analysis.caveats.evidence import SESSION, Caveat, Evidence, Severity, about, cell_name
from bench.analysis.cells import CellReport
from bench.analysis.comparison import Comparison, Side, attempts_that_count, log_ratios
from bench.analysis.number_format import noun, plain, quantity, span
from bench.analysis.stats import estimates
from bench.analysis.steadiness import Label, Steadiness
from bench.analysis.table import Selection
from bench.counts import plural
from bench.model import NOT_FINITE, OUT_OF_RANGE, Metric, Topology

OVERHEAD_SECONDS = 0.010  # shorter calls measure Ray, not the work
ORDER_P = 0.05
MOST_P = 0.05  # of a verdict, corrected for the number of comparisons
SIGNIFICANT = ("faster", "slower", "differs")
LEAST_SHARE = 0.5  # of an equal share of the work: below it, other nodes did part of a node's work
# Of an equal share too: below it more than a third of the CPUs of two nodes were idle, so no cluster of two was compared.
LEAST_SHARE_OF_A_NODE = 0.25
MOST_WAITING = 0.05  # of the time of all CPUs
MOST_NAMED = 8  # arms or points in one sentence
TO_BLAME = 0.5  # of an equal share of the waiting: the others waited for a worker that waited less
_SIZE = Metric(name="size", unit="B", better="lower", kind="size")


def spilled(evidence: Evidence) -> Iterator[Caveat]:
    """The object store overflowed to disk, whose speed the rates then contain."""
    for cell in evidence.cells:
        for topology, side in _usage(cell, "spilled_bytes").items():
            if any(side.values.values()):
                most = quantity(_SIZE, max(side.values.values()))
                text = f"up to {most} spilled from the object store to disk on {topology}: the disk was measured too."
                yield Caveat(severity="refuses", about=about(cell), text=text)


def too_fast(evidence: Evidence) -> Iterator[Caveat]:
    """A training that needed significantly fewer samples than its reference: it solves another problem, or is wrong."""
    for cell in evidence.cells:
        for guard in cell.guards:
            if guard.is_too_fast:
                text = (
                    f"{guard.arm} on {guard.topology} converged in significantly fewer samples than {guard.reference},"
                    " which has the same batch: it is not the same training."
                )
                yield Caveat(severity="refuses", about=about(cell), text=text)


def _usage(cell: CellReport, name: str) -> dict[str, Side]:
    return {topology: side for row in cell.usage if row.metric.name == name for topology, side in row.sides.items()}


def few_pairs(evidence: Evidence) -> Iterator[Caveat]:
    """Fewer pairs than a signed-rank test needs for a verdict."""
    for pairs, cells in _group(evidence.cells, _pairs):
        if pairs < estimates.FEWEST_FOR_VERDICT and evidence.is_comparison and evidence.usable:
            worth = (
                f" An interval from {pairs} holds the true value {100 * (1 - 2 / 2**pairs):.0f} times in 100."
                if pairs > 1
                else ""
            )
            text = (
                f"{_in(cells, evidence)}{plural(pairs, 'pair')} of invocations, and a verdict needs"
                f" {estimates.FEWEST_FOR_VERDICT}: the values are shown without one.{worth}"
            )
            yield Caveat(severity="weakens", about=_about_all(cells, evidence), text=text)


def _pairs(cell: CellReport) -> int:
    row = cell.headline
    return row.comparison.pairs if row and row.comparison else 0


def overhead_dominated(evidence: Evidence) -> Iterator[Caveat]:
    """Calls so short that their overhead dominates."""
    for experiment, cells in _by_experiment(evidence.cells):
        medians_by_cell = {
            cell.cell: (row.metric, max(medians))
            for cell in cells
            for row in cell.rows
            if row.metric.means == "median latency"
            and (medians := [side.estimate.value for side in row.sides.values() if side.estimate])
            and max(medians) < OVERHEAD_SECONDS
        }
        if medians_by_cell:
            longest = max(seconds for _, seconds in medians_by_cell.values())
            text = (
                f"overhead-dominated{_where(experiment, list(medians_by_cell), cells, evidence)}: the median call takes"
                f" {quantity(next(iter(medians_by_cell.values()))[0], longest)} or less, and below 10 ms it is mostly Ray's cost"
                " a call that is measured, not the work."
            )
            yield Caveat(severity="weakens", about=SESSION, text=text)


def slower_than_peer(evidence: Evidence) -> Iterator[Caveat]:
    """A peer on the same CPUs does better than the subject. On a noisy host that is not decided."""
    if evidence.exclusions.is_noisy:
        return
    for experiment, cells in _by_experiment(evidence.cells):
        better: dict[str, list[tuple[CellReport, ArmRow]]] = {}
        for cell in cells:
            for row in cell.arms:
                if row.arm.role == "peer" and row.metric == cell.rows[0].metric.name and row.subject_is_worse:
                    better.setdefault(row.arm.name, []).append((cell, row))
        for name, rows in better.items():
            yield Caveat(severity="weakens", about=SESSION, text=_worse(experiment, name, rows, cells, evidence))


def _worse(
    experiment: str,
    peer: str,
    rows: Sequence[tuple[CellReport, ArmRow]],
    cells: Sequence[CellReport],
    evidence: Evidence,
) -> str:
    times = span(1 / row.share.value for _, row in rows if row.share)
    metric = cells[0].rows[0].metric
    what = (
        f"{times} times its {noun(metric)}" if metric.better == "higher" else f"{noun(metric)} {times} times as short"
    )
    where = _where(experiment, [cell.cell for cell, _ in rows], cells, evidence)
    topologies = " and ".join(dict.fromkeys(row.topology for _, row in rows))
    return f"peer {peer} does better than {cells[0].subject}{where} on {topologies}, with {what}: {rows[0][1].arm.help.rstrip('.')}."


def _by_experiment(cells: Sequence[CellReport]) -> Iterator[tuple[str, list[CellReport]]]:
    for experiment in dict.fromkeys(cell.experiment for cell in cells):
        yield experiment, [cell for cell in cells if cell.experiment == experiment]


def _where(experiment: str, names: Sequence[str], cells: Sequence[CellReport], evidence: Evidence) -> str:
    """Return the cells that a caveat is about, as far as they must be named."""
    several = len({cell.experiment for cell in evidence.cells}) > 1
    prefix = f" in {experiment}" if several else ""
    distinct = list(dict.fromkeys(names))
    if len(distinct) == len(cells):
        return prefix + {1: "", 2: " in both cells"}.get(len(cells), f" in all {len(cells)} cells")
    return f"{prefix} in {', '.join(distinct)}"


def start_turns_it_round(evidence: Evidence) -> Iterator[Caveat]:
    """A topology that is faster at its steady rate but slower end to end, or the reverse: no winner on the whole."""
    opposite = {"faster": "slower", "slower": "faster"}
    for cell in evidence.cells:
        headline = cell.headline.comparison if cell.headline else None
        for row in cell.rows:
            whole = row.comparison if row.metric.means == "end to end" else None
            if headline and whole and headline.verdict in opposite and whole.verdict == opposite[headline.verdict]:
                text = (
                    f"{headline.candidate} is {headline.verdict} than {headline.baseline} once it runs, and"
                    f" {whole.verdict} end to end, its start counted: which is better depends on how long the work is."
                )
                yield Caveat(severity="weakens", about=about(cell), text=text)


def skewed(evidence: Evidence) -> Iterator[Caveat]:
    """Two estimates of one ratio that disagree."""
    for cell in evidence.cells:
        row = cell.headline
        if row and row.comparison and row.comparison.skewed:
            text = "skewed or with outliers: two estimates of the headline's ratio disagree. Look at every block."
            yield Caveat(severity="weakens", about=about(cell), text=text)


def outliers(evidence: Evidence) -> Iterator[Caveat]:
    """Blocks far from the others: marked, but kept."""
    for cell in evidence.cells:
        row = cell.headline
        if row is None:
            continue
        marked = {name: _marked(side.values, side.outliers) for name, side in row.sides.items() if side.outliers}
        if row.comparison and row.comparison.outliers:
            one, other = (row.sides[name].values for name in (row.comparison.baseline, row.comparison.candidate))
            marked["the ratio"] = _marked(log_ratios(one, other), row.comparison.outliers)
        if marked:
            where = "; ".join(f"{name} in {blocks}" for name, blocks in marked.items())
            text = f"outliers of the headline, marked and kept: {where}."
            yield Caveat(severity="note", about=about(cell), text=text)


def _marked(values: Mapping[int, float], blocks: Sequence[int]) -> str:
    """Return `block 3`, or `blocks 3, 5`, with `(far)` for those more than 3 interquartile ranges outside the quartiles."""
    far = estimates.outliers(values, fence=3.0)
    named = ", ".join(f"{block} (far)" if block in far else f"{block}" for block in blocks)
    return f"{'block' if len(blocks) == 1 else 'blocks'} {named}"


def partly_missing(evidence: Evidence) -> Iterator[Caveat]:
    """Samples with a reason in place of a value, in runs that count."""
    for cell in evidence.cells:
        usable, row = evidence.usable_of(cell), cell.headline
        if row is None:
            continue
        table, rows = usable.table, usable.samples
        is_headline = table.samples.named(rows, metric=row.metric.name, arm=cell.subject)
        rows = rows[is_headline & ~(table.is_curve[rows] | table.warm_samples[rows])]
        gaps = table.samples.text("reason", rows[table.is_gap[rows]])
        if gaps:
            text = f"{plural(len(gaps), 'sample')} of {len(rows)} without a value: {gaps[0]}."
            yield Caveat(severity="weakens", about=about(cell), text=text)


def not_finite(evidence: Evidence) -> Iterator[Caveat]:
    """Values that were NaN or infinite, such as the loss of a training that diverged; also in runs that are invalid for it."""
    runs: Counter[tuple[str, str]] = Counter()
    bad: dict[tuple[str, str, str], Counter[str]] = {}
    table = evidence.table
    for run in evidence.runs:
        runs[cell_name(run.spec.experiment, run.spec.cell), run.spec.topology.name] += 1
    gaps = (table.is_gap & ~table.warm_samples).nonzero()[0]
    of_gaps = [table.samples.text(name, gaps) for name in ("metric", "arm", "point", "reason")]
    for at, metric, arm in dict.fromkeys(
        (at, metric or "", f"{arm} {point}".strip())
        for at, metric, arm, point, reason in zip(table.samples.run[gaps].tolist(), *of_gaps, strict=True)
        if (reason or "").startswith((NOT_FINITE, OUT_OF_RANGE))
    ):
        spec = table.runs[at].spec
        bad.setdefault((cell_name(spec.experiment, spec.cell), spec.topology.name, metric), Counter())[arm] += 1
    for (cell, topology, metric), counts in sorted(bad.items()):
        text = (
            f"diverged: {metric} on {topology} was not finite in {_counted(counts)} of"
            f" {plural(runs[cell, topology], 'run')}. Such values count as missing, and are never the best."
        )
        yield Caveat(severity="weakens", about=cell, text=text)


def _counted(counts: Mapping[str, int]) -> str:
    """Return in how many runs, by arm or point, such as `1 of ray-sync, 2 of ddp-gloo`; at most MOST_NAMED of them."""
    named = ", ".join(f"{count} of {name}" for name, count in sorted(counts.items())[:MOST_NAMED])
    return named + (f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else "")


def loads_missing(evidence: Evidence) -> Iterator[Caveat]:
    """Loads at which some runs have a response time and others a reason: the overloaded ones would be the slowest."""
    for cell in evidence.cells:
        reported: set[tuple[str, str]] = set()  # percentiles of one load are missing together
        if not cell.sweeps:
            continue
        usable = evidence.usable_of(cell)
        reasons = {*usable.table.samples.text("reason", usable.samples[usable.table.is_gap[usable.samples]])}
        for row in cell.sweeps if reasons else ():
            for topology, side in row.sides.items():
                gaps = [reason for reason in side.missing.values() if reason in reasons]
                if row.metric.load and side.values and gaps and (topology, row.point) not in reported:
                    reported.add((topology, row.point))
                    text = (
                        f"{row.point} on {topology}: {len(gaps)} of {plural(len(gaps) + len(side.values), 'run')} without"
                        f" {row.metric.name}, and the others may be the better ones: {gaps[0]}."
                    )
                    yield Caveat(severity="weakens", about=about(cell), text=text)


def uneven_work(evidence: Evidence) -> Iterator[Caveat]:
    """A node that did less than half of an equal share of the work. Below a quarter the verdict is blocked, unless its cell has too few workers."""
    for cell in evidence.cells:
        for topology in evidence.topologies:
            rows = [row for row in cell.nodes if row.topology == topology.name]
            workers = min(_busy_workers(evidence, cell, topology), default=topology.nodes)
            for row in rows:
                if row.share_of_work is not None and row.share_of_work < LEAST_SHARE / len(rows):
                    is_idle = row.share_of_work < LEAST_SHARE_OF_A_NODE / len(rows)
                    is_meant = workers < topology.nodes
                    why = (
                        f"it has {plural(workers, 'worker')} for {plural(topology.nodes, 'node')}"
                        if is_meant
                        else "other nodes did its part"
                    )
                    yield Caveat(
                        severity="refuses" if is_idle and not is_meant else "weakens",
                        about=about(cell),
                        text=f"{row.node} of {topology.name} did {row.share_of_work:.0%} of the work: {why}.",
                        topology=topology.name,
                    )


def _busy_workers(evidence: Evidence, cell: CellReport, topology: Topology) -> Iterator[int]:
    """How many workers the cell has at once on a topology, as far as its experiment says so."""
    for run in evidence.usable_of(cell).runs:
        if run.spec.topology == topology and run.spec.busy_workers:
            yield run.spec.busy_workers


def held_up(evidence: Evidence) -> Iterator[Caveat]:
    """Workers that waited long for the last of them, and the node of that one."""
    for cell in evidence.cells:
        for metric in (row.metric.name for row in cell.rows if row.metric.means == "wait for the last worker"):
            for topology in (candidate for candidate in evidence.topologies if candidate.nodes > 1):
                runs = [run for run in evidence.usable_of(cell).runs if run.spec.topology == topology]
                total_seconds, waited, by_node = _waits(evidence.table.of(runs), metric)
                if by_node and waited > MOST_WAITING * total_seconds * topology.totals["CPUs"]:
                    share = waited / total_seconds / topology.totals["CPUs"]
                    text = f"workers on {topology.name} waited {share:.0%} of the CPUs' time for the last of them: {_culprit(by_node)}."
                    yield Caveat(severity="note", about=about(cell), text=text)


def left_out(evidence: Evidence) -> Iterator[Caveat]:
    """Work that failed at every try, and is in no rate."""
    for cell in evidence.cells:
        for row in (row for row in cell.rows if row.metric.means == "left out"):
            most = {name: max(side.values.values(), default=0.0) for name, side in row.sides.items()}
            if any(most.values()):
                where = ", ".join(f"{plain(count)} on {name}" for name, count in most.items() if count)
                text = f"{row.metric.unit} failed at every try and were set aside, at most: {where}; no rate has them."
                yield Caveat(severity="note", about=about(cell), text=text)


def _culprit(by_node: Mapping[str, float]) -> str:
    """Name the node of the worker that waited much less than an equal share, because the others waited for it; if there is any."""
    last = min(by_node, key=lambda node: by_node[node])
    waited = math.fsum(by_node.values())
    if by_node[last] < TO_BLAME * waited / len(by_node):
        return f"{last} delayed them, with {by_node[last] / waited:.0%} of the waiting"
    return "no node more than another"


def _waits(usable: Selection, metric: str) -> tuple[float, float, dict[str, float]]:
    """Return the seconds of all samples, the seconds that workers waited in them, and those by node."""
    import numpy as np

    table = usable.table
    rows = usable.samples[table.samples.named(usable.samples, metric=metric)]
    rows = rows[~table.warm_samples[rows]]
    total_seconds = waited = 0.0
    by_node: dict[str, float] = {}
    values = np.nan_to_num(table.samples.read("value")[rows]).tolist()
    lengths = table.samples.seconds[rows].tolist()
    for node, value, seconds in zip(table.samples.text("node", rows), values, lengths, strict=True):
        if node is None:
            total_seconds, waited = total_seconds + seconds, waited + value
        else:
            by_node[node] = by_node.get(node, 0.0) + value
    return total_seconds, waited, by_node


def luck(evidence: Evidence) -> Iterator[Caveat]:
    """A verdict that is not significant after correction for the number of comparisons."""
    for cell in evidence.cells:
        row = cell.headline
        chance = _chance(row.comparison if row else None)
        if chance:
            text = (
                f"one of several comparisons: corrected for that, p is {plain(chance[0])} ({chance[1]})."
                " More blocks would show whether it is chance."
            )
            yield Caveat(severity="weakens", about=about(cell), text=text)


def luck_of_changes(evidence: Evidence) -> Iterator[Caveat]:
    """The same of what changes brought: the worst of them, and how many others."""
    weak: dict[str, tuple[float, str]] = {}
    for change in evidence.contrasts:
        for found in change.headline.comparisons if change.headline else ():
            if chance := _chance(found):
                weak[change.title] = max(weak.get(change.title, (0.0, "")), chance)
    if weak:
        title = max(weak, key=lambda title: weak[title])
        p, how = weak[title]
        others = f", and so are {plural(len(weak) - 1, 'other change')}" if len(weak) > 1 else ""
        text = (
            f"change of {title}: one of several comparisons{others}; corrected for that, p is {plain(p)} ({how})."
            " More blocks would show whether it is chance."
        )
        yield Caveat(severity="weakens", about=SESSION, text=text)


def _chance(found: Comparison | None) -> tuple[float, str] | None:
    """The corrected p of a difference, and by what it was corrected; None unless it may be chance for all that."""
    if found is None or found.verdict not in SIGNIFICANT or found.p_adjusted is None or found.p_adjusted <= MOST_P:
        return None
    return found.p_adjusted, found.adjustment or ""


def order_matters(evidence: Evidence) -> Iterator[Caveat]:
    """Values that correlate with their position in the session."""
    test = order_test(evidence)
    if test and test[1] < ORDER_P:
        direction = "rose" if test[0] > 0 else "fell"
        text = f"the headline {direction} in the course of the session (rank correlation {test[0]:.2f}, p {plain(test[1])})."
        yield Caveat(severity="weakens", about=SESSION, text=text)


def order_test(evidence: Evidence) -> tuple[float, float] | None:
    """Return Spearman's rho and p of the position in the session and the headline's distance from its cell's median."""
    positions, residuals = [], []
    place = {spec.id: position for position, spec in enumerate(evidence.session.specs)}
    by_spec = {
        (run.spec.experiment, run.spec.cell, run.spec.topology.name, run.spec.block): run.spec.id
        for run in attempts_that_count(evidence.usable).values()
    }
    for cell in evidence.cells:
        row = cell.headline
        for topology, side in row.sides.items() if row else ():
            for block, value in side.values.items():
                spec_id = by_spec.get((cell.experiment, cell.cell, topology, block))
                if side.estimate and side.estimate.value > 0 and value > 0 and spec_id in place:
                    positions.append(place[spec_id])
                    residuals.append(math.log(value / side.estimate.value))
    return estimates.rank_correlation(positions, residuals)


def not_steady(evidence: Evidence) -> Iterator[Caveat]:
    """Values that change during an invocation, so that their mean describes no single state."""
    weights: tuple[tuple[Label, Severity], ...] = (("not steady", "refuses"), ("drifting", "weakens"))
    for cell in evidence.cells:
        for label_of, severity in weights:
            for is_subject in (True, False):
                unsteady = [
                    f"{item.arm} on {item.topology} ({way(item)})"
                    for item in cell.steadiness
                    if item.label == label_of and (item.arm == cell.subject) == is_subject
                ]
                if unsteady:
                    text = f"{label_of} inside the invocations: {', '.join(unsteady)}. More warm-ups may help."
                    yield Caveat(severity=severity if is_subject else "note", about=about(cell), text=text)


def way(steadiness: Steadiness) -> str:
    """Return the change from the first to the second half of an invocation, such as `+7.1 % from first half to second`."""
    return "" if steadiness.shift is None else f"{100 * (steadiness.shift.value - 1):+.2g} % from first half to second"


def _group(cells: Sequence[CellReport], key: Callable[[CellReport], int]) -> Iterator[tuple[int, list[CellReport]]]:
    groups: dict[int, list[CellReport]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    yield from groups.items()


def _about_all(cells: Sequence[CellReport], evidence: Evidence) -> str:
    return about(cells[0]) if len(cells) == 1 and len(evidence.cells) > 1 else SESSION


def _in(cells: Sequence[CellReport], evidence: Evidence) -> str:
    if len(cells) in (1, len(evidence.cells)):
        return ""
    several = len({cell.experiment for cell in evidence.cells}) > 1
    return f"in {' and '.join(about(cell) if several else cell.cell for cell in cells)}: "
