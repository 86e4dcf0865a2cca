"""Compares two stored sessions: first the facts that must be equal, then each value of each cell, with ratio and verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bench.analysis import facts
from bench.analysis.caveats.evidence import SESSION, Caveat, about
from bench.analysis.cells import CellReport
from bench.analysis.comparison import MARGIN, attempts_that_count
from bench.analysis.facts import Difference
from bench.analysis.number_format import ratio
from bench.analysis.report import Report, build
from bench.analysis.rows import MetricRow
from bench.analysis.stats import estimates
from bench.analysis.sweeps import are_equal
from bench.analysis.two_samples import TwoSamples, two_samples
from bench.analysis.warmups import CellKey, by_cell
from bench.counts import plural
from bench.model import Metric, Run, Session, Spec

Stand = Literal["", "not confirmed", "confirmed", "not found again"]
"""The result of confirming an alarm. Empty if there was no alarm."""
ALARMS = ("faster", "slower", "differs")
ESTIMATOR = (
    "ratio: Hodges-Lehmann on the differences of logarithms of all invocations of one session and all of the other,"
    " interval by inverting the Mann-Whitney test"
)
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A session and its runs."""

    session: Session
    runs: Sequence[Run]


@dataclass(frozen=True, kw_only=True)
class SessionSummary:
    """A session in the comparison, with its number of runs."""

    session: str
    created: str
    target: str
    command: str
    runs: int  # that are ok
    excluded: int  # that are not ok


@dataclass(frozen=True, kw_only=True)
class SessionRow:
    """One value of one cell in both sessions: on one topology, or as `multi/single`, the ratio within blocks."""

    experiment: str
    cell: str  # its name in the candidate
    title: str  # its params
    where: str
    metric: Metric
    arm: str
    point: str
    headline: bool
    found: TwoSamples
    stand: Stand = ""

    @property
    def key(self) -> tuple[str, str, str, str, str, str]:
        """What identifies the same value in another comparison."""
        return self.experiment, self.title, self.where, self.metric.name, self.arm, self.point

    @property
    def is_alarm(self) -> bool:
        """Whether the verdict is faster, slower or differs."""
        return self.found.verdict in ALARMS


@dataclass(frozen=True, kw_only=True)
class TwoSessions:
    """The comparison of two sessions. With rows, `differences` are allowed ones, or ones that do not confound."""

    baseline: SessionSummary
    candidate: SessionSummary
    differences: tuple[Difference, ...]
    caveats: tuple[Caveat, ...]
    rows: tuple[SessionRow, ...]
    label: Literal["historical", "unequal"]
    margin: float
    level: float
    adjustment: str
    estimator: str = ESTIMATOR
    confirmed_by: str = ""  # id of the fresh session
    version: int = VERSION

    @property
    def confounders(self) -> tuple[Difference, ...]:
        """The differences that prevent a comparison."""
        return tuple(difference for difference in self.differences if difference.confounds)

    @property
    def alarms(self) -> tuple[SessionRow, ...]:
        """The rows with a verdict of faster, slower or differs."""
        return tuple(row for row in self.rows if row.is_alarm)


def compare(
    baseline: Stored,
    candidate: Stored,
    *,
    everything: bool = False,
    changed: Collection[str] = (),
    margin: float = MARGIN,
    level: float = estimates.LEVEL,
) -> TwoSessions:
    """Compare the headline of every cell that both sessions have; with `everything`, all other values too.

    If `confounders` is not empty, the sessions were not measured alike, and the rows include the effect of that: the caller must refuse
    them. Facts named in `changed` were changed on purpose: they are the question, and do not confound.
    """
    warmups = _warmups(baseline, candidate)
    reports = [build(side.session, side.runs, margin=margin, warmups=warmups) for side in (baseline, candidate)]
    baseline_cells, candidate_cells = (_by_key(report) for report in reports)
    differences = tuple(
        replace(difference, confounds=difference.confounds and difference.what not in changed)
        for difference in dict.fromkeys(_differences(baseline, candidate))
    )
    rows = [
        row
        for key, cell in candidate_cells.items()
        if key in baseline_cells
        for row in _rows(baseline_cells[key], cell, everything=everything, margin=margin, level=level)
    ]
    is_unequal = any(difference.confounds for difference in differences)
    return TwoSessions(
        baseline=_summary(baseline),
        candidate=_summary(candidate),
        differences=differences,
        caveats=(
            *_on_purpose(differences, changed),
            *_monitoring(baseline, candidate),
            *_caveats(reports, rows),
            *_unmatched(baseline_cells, candidate_cells),
        ),
        rows=tuple(_refused(row, reports, baseline_cells, candidate_cells) for row in _adjusted(rows, level)),
        label="unequal" if is_unequal else "historical",
        margin=margin,
        level=level,
        adjustment=f"Benjamini-Hochberg, {plural(sum(row.found.p is not None for row in rows), 'comparison')}",
    )


def _warmups(*sides: Stored) -> dict[CellKey, int]:
    """Return the turns to discard, by cell: in both sessions as many as the one with the longer warm-up needs."""
    turns_by_cell: dict[CellKey, int] = {}
    for side in sides:
        for key, turns in by_cell(side.session, attempts_that_count(side.runs).values()).items():
            turns_by_cell[key] = max(turns, turns_by_cell.get(key, 0))
    return turns_by_cell


def unlike(one: Stored, other: Stored) -> tuple[Difference, ...]:
    """Return the differences that prevent two sessions from being repetitions of the same measurement."""
    return tuple(difference for difference in dict.fromkeys(_differences(one, other)) if difference.confounds)


def _summary(stored: Stored) -> SessionSummary:
    last = attempts_that_count(stored.runs).values()
    ok = sum(run.status == "ok" for run in last)
    session = stored.session
    return SessionSummary(
        session=session.id,
        created=session.created,
        target=session.target,
        command=session.command,
        runs=ok,
        excluded=len(last) - ok,
    )


def _by_key(report: Report) -> dict[CellKey, CellReport]:
    return {(cell.experiment, frozenset(cell.params.items())): cell for cell in report.cells}


def _differences(baseline: Stored, candidate: Stored) -> Iterator[Difference]:
    """Yield what was not equal, by experiment and topology that both have measured."""
    if baseline.session.target != candidate.session.target:
        yield _other("target", baseline.session.target, candidate.session.target)
    if baseline.session.seed != candidate.session.seed:
        yield _other("seed", baseline.session.seed, candidate.session.seed, confounds=False)
    if baseline.session.revision != candidate.session.revision:  # the hash of the code tells whether it matters
        yield _other("revision", baseline.session.revision, candidate.session.revision, confounds=False)
    runs = [
        [run for run in attempts_that_count(side.runs).values() if run.status == "ok"] for side in (baseline, candidate)
    ]
    for key in dict.fromkeys((run.spec.experiment, run.spec.topology.name) for run in runs[1]):
        one, other = ([r for r in side if (r.spec.experiment, r.spec.topology.name) == key] for side in runs)
        if one:
            yield from facts.between(one, other)
            yield from _design(one[0].spec, other[0].spec)


def _design(one: Spec, other: Spec) -> Iterator[Difference]:
    for name in ("topology", "warmups", "samples", "sample_seconds", "peer_sample_seconds"):
        if getattr(one, name) != getattr(other, name):
            before, after = (
                (spec.topology.totals | {"nodes": spec.topology.nodes}) if name == "topology" else getattr(spec, name)
                for spec in (one, other)
            )
            yield _other(name.replace("_", " "), before, after)


def _other(name: str, before: object, after: object, *, confounds: bool = True) -> Difference:
    return Difference(what=name, text=f"{name}: {before}, then {after}", confounds=confounds)


def _rows(
    baseline: CellReport, candidate: CellReport, *, everything: bool, margin: float, level: float
) -> Iterator[SessionRow]:
    """Yield the headline's rows, or with `everything` those of all metrics, of usage and of every point of a sweep."""
    before = {_name(row): row for row in (*baseline.rows, *baseline.usage, *baseline.sweeps)}
    for row in (*candidate.rows, *candidate.usage, *candidate.sweeps) if everything else candidate.rows:
        earlier = before.get(_name(row))
        is_compared = row.comparison is not None or len(row.sides) == 1
        if earlier is None or not is_compared or not (everything or row.headline):
            continue
        values, others = _values(earlier), _values(row)
        for where in [name for name in others if name in values]:
            if values[where] and others[where]:
                comparison = two_samples(row.metric, values[where], others[where], margin=margin, level=level)
                unequal = _unequal_loads((earlier, baseline), (row, candidate), where)
                yield SessionRow(
                    experiment=candidate.experiment,
                    cell=candidate.cell,
                    title=", ".join(f"{name}={value}" for name, value in sorted(candidate.params.items())),
                    where=where,
                    metric=row.metric,
                    arm=row.arm,
                    point=row.point,
                    headline=row.headline,
                    found=replace(comparison, verdict=None, why=unequal) if unequal else comparison,
                )


def _unequal_loads(one: tuple[MetricRow, CellReport], other: tuple[MetricRow, CellReport], where: str) -> str:
    """Return the reason if a metric was measured at unequal loads, at which it is not comparable; empty if it was not."""
    if not other[0].metric.load:
        return ""
    if where in other[0].sides:
        return _loads_differ(one, other, where)
    refused = (row.comparison for row, _ in (one, other) if row.comparison and row.comparison.refused)
    return next((comparison.why for comparison in refused), "")


def _loads_differ(one: tuple[MetricRow, CellReport], other: tuple[MetricRow, CellReport], where: str) -> str:
    loads = _load(*one, where), _load(*other, where)
    if are_equal(*loads):
        return ""
    shown = ", then ".join("unknown" if load is None else f"{load:.4g}" for load in loads)
    return f"measured at unequal loads ({other[0].metric.load}: {shown})"


def _load(row: MetricRow, cell: CellReport, where: str) -> float | None:
    """Return the median load at which a row was measured on a topology; None if unknown."""
    for load_row in (*cell.rows, *cell.sweeps):
        if (load_row.metric.name, load_row.arm, load_row.point) == (row.metric.load, row.arm, row.point):
            estimate = load_row.sides[where].estimate if where in load_row.sides else None
            return estimate.value if estimate else None
    return None


def _name(row: MetricRow) -> tuple[str, str, str, str]:
    return row.metric.name, row.metric.unit, row.arm, row.point


def _values(row: MetricRow) -> dict[str, list[float]]:
    """Return each topology's values, one per invocation, and the ratios within blocks if there are two topologies.

    Whatever made a whole session slower is on both sides of a block, and cancels in their ratio.
    """
    values = {name: list(side.values.values()) for name, side in row.sides.items()}
    if row.comparison is not None:
        one, other = (row.sides[name].values for name in (row.comparison.baseline, row.comparison.candidate))
        name = f"{row.comparison.candidate}/{row.comparison.baseline}"
        values[name] = [other[b] / one[b] for b in one if b in other and one[b] > 0 and other[b] > 0]
    return values


def _adjusted(rows: Sequence[SessionRow], level: float) -> Iterator[SessionRow]:
    """Correct p-values for the number of comparisons; an alarm that is not significant then becomes undecided."""
    tested = [row for row in rows if row.found.p is not None]
    p_values = estimates.adjusted([row.found.p for row in tested if row.found.p is not None], "fdr_bh")
    new = {id(row): p for row, p in zip(tested, p_values, strict=True)}
    for row in rows:
        comparison = replace(row.found, p_adjusted=new.get(id(row)))
        if row.is_alarm and comparison.p_adjusted is not None and comparison.p_adjusted > 1 - level:
            why = f"alone it would be {comparison.verdict}; among {plural(len(tested), 'comparison')} that may be luck"
            comparison = replace(comparison, verdict="undecided", why=why)
        yield replace(row, found=comparison, stand="not confirmed" if comparison.verdict in ALARMS else "")


def _refused(
    row: SessionRow,
    reports: Sequence[Report],
    baseline: Mapping[CellKey, CellReport],
    candidate: Mapping[CellKey, CellReport],
) -> SessionRow:
    """Remove the verdict if one of the two sessions gives none itself: a noisy host, or a caveat that blocks it."""
    if row.found.verdict is None:
        return row
    key = next(key for key, cell in candidate.items() if (cell.experiment, cell.cell) == (row.experiment, row.cell))
    for report, cell in zip(reports, (baseline[key], candidate[key]), strict=True):
        if report.noise:
            why = f"{report.session}: {report.noise}"
            return replace(row, stand="", found=replace(row.found, verdict="undecided", why=why))
        for caveat in report.caveats:
            if caveat.severity == "refuses" and caveat.about in (SESSION, about(cell)):
                why = f"{report.session} gives no verdict itself: {caveat.text}"
                return replace(row, stand="", found=replace(row.found, verdict=None, why=why))
    return row


def _on_purpose(differences: Sequence[Difference], changed: Collection[str]) -> Iterator[Caveat]:
    for difference in differences:
        if difference.what in changed:
            yield Caveat(severity="note", about=SESSION, text=f"changed on purpose: {difference.text}")


def _monitoring(baseline: Stored, candidate: Stored) -> Iterator[Caveat]:
    """A Prometheus beside the nodes of one session alone: it takes CPU time where it shares their machine."""
    before, after = ({run.monitored for run in side.runs if run.status == "ok"} for side in (baseline, candidate))
    if None not in before | after and before != after:
        sides = ["in part with" if len(seen) > 1 else "with" if True in seen else "without" for seen in (before, after)]
        text = (
            f"measured {sides[0]} Prometheus beside the nodes, then {sides[1]} it:"
            " it takes CPU time from nodes that share its machine"
        )
        yield Caveat(severity="weakens", about=SESSION, text=text)


def _caveats(reports: Sequence[Report], rows: Sequence[SessionRow]) -> Iterator[Caveat]:
    for report in reports:
        for caveat in report.caveats:
            is_damage = bool(report.runs.get("damaged")) and "damaged and left out" in caveat.text
            if caveat.severity == "refuses" or is_damage or (report.excluded_blocks and "excluded" in caveat.text):
                place = "" if caveat.about == SESSION else f"{caveat.about}: "
                yield Caveat(
                    severity="weakens", about=SESSION, text=f"{report.session} has a caveat: {place}{caveat.text}"
                )
    for row in rows:
        if row.found.skewed:
            text = "the means of the logarithms say something else than the ranks: a few values pull"
            yield Caveat(severity="weakens", about=f"{row.experiment} {row.cell} on {row.where}", text=text)


def _unmatched(baseline: Mapping[CellKey, CellReport], candidate: Mapping[CellKey, CellReport]) -> Iterator[Caveat]:
    for name, cells, others in (("baseline", baseline, candidate), ("candidate", candidate, baseline)):
        alone = [f"{cell.experiment} {cell.cell}" for key, cell in cells.items() if key not in others]
        if alone:
            text = f"only the {name} has {', '.join(alone[:3])}{f' and {len(alone) - 3} more' if alone[3:] else ''}"
            yield Caveat(severity="note", about=SESSION, text=text)


def confirmed(first: TwoSessions, again: TwoSessions) -> TwoSessions:
    """Return `first` with its alarms checked against a fresh session's: one that is not found again becomes undecided.

    Both comparisons have the same baseline, so their errors correlate. `again` must therefore have a higher level.
    """
    fresh = {row.key: row.found for row in again.rows}
    rows = [_checked(row, fresh.get(row.key), again.candidate.session) if row.is_alarm else row for row in first.rows]
    return replace(first, rows=tuple(rows), confirmed_by=again.candidate.session)


def _checked(row: SessionRow, fresh: TwoSamples | None, session: str) -> SessionRow:
    if fresh is None or fresh.verdict is None:  # the fresh session does not decide
        return row
    if fresh.verdict == row.found.verdict:
        return replace(row, stand="confirmed")
    why = f"it was {row.found.verdict}, and the fresh session {session} says {fresh.verdict} ({_describe(fresh)})"
    return replace(row, found=replace(row.found, verdict="undecided", why=why), stand="not found again")


def _describe(comparison: TwoSamples) -> str:
    return ratio(comparison.ratio) if comparison.ratio else "no ratio"
