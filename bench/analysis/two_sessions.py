"""Two stored sessions, cell by cell: what must be equal first, then a ratio, its interval and a verdict for each number."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bench.analysis import facts
from bench.analysis.caveats.evidence import SESSION, Caveat, about
from bench.analysis.cells import CellReport
from bench.analysis.comparison import MARGIN, attempts_that_count
from bench.analysis.facts import Difference
from bench.analysis.number_format import plural, ratio
from bench.analysis.report import Report, build
from bench.analysis.rows import MetricRow
from bench.analysis.stats import estimates
from bench.analysis.sweeps import are_equal
from bench.analysis.two_samples import TwoSamples, two_samples
from bench.analysis.warmups import CellKey, by_cell
from bench.model import Metric, Run, Session, Spec

Stand = Literal["", "not confirmed", "confirmed", "not found again"]
"""What became of an alarm. Empty: there was none."""
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
class Face:
    """Which session this is."""

    session: str
    created: str
    target: str
    command: str
    runs: int  # that are ok
    excluded: int  # that are not


@dataclass(frozen=True, kw_only=True)
class SessionRow:
    """One number of one cell in both sessions: on one topology, or `multi/single`, the ratio inside the blocks."""

    experiment: str
    cell: str  # what the candidate calls it
    title: str  # the params that make it what it is
    where: str
    metric: Metric
    arm: str
    point: str
    headline: bool
    found: TwoSamples
    stand: Stand = ""

    @property
    def key(self) -> tuple[str, str, str, str, str, str]:
        """What the same number is found by in another comparison of the same sessions' cells."""
        return self.experiment, self.title, self.where, self.metric.name, self.arm, self.point

    @property
    def is_alarm(self) -> bool:
        """Whether it says faster or slower."""
        return self.found.verdict in ALARMS


@dataclass(frozen=True, kw_only=True)
class TwoSessions:
    """What a second session says beside a first one. `differences` were allowed where there are rows all the same."""

    baseline: Face
    candidate: Face
    differences: tuple[Difference, ...]
    caveats: tuple[Caveat, ...]
    rows: tuple[SessionRow, ...]
    label: Literal["historical", "unequal"]
    margin: float
    level: float
    adjustment: str
    estimator: str = ESTIMATOR
    confirmed_by: str = ""  # the fresh session
    version: int = VERSION

    @property
    def confounders(self) -> tuple[Difference, ...]:
        """What keeps the two from being compared."""
        return tuple(each for each in self.differences if each.confounds)

    @property
    def alarms(self) -> tuple[SessionRow, ...]:
        """The rows that say faster or slower."""
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
    """candidate / baseline: the headline of every cell that both have; with `everything`, each other number too.

    Where `confounders` is not empty the two were not measured alike, and the rows say what the difference came from
    together with them: it is for the caller to refuse. What is named in `changed` was changed on purpose: it is what is asked
    about, and confounds nothing.
    """
    warmups = _warmups(baseline, candidate)
    reports = [build(each.session, each.runs, margin=margin, warmups=warmups) for each in (baseline, candidate)]
    there, here = (_by_key(report) for report in reports)
    differences = tuple(
        replace(each, confounds=each.confounds and each.what not in changed)
        for each in dict.fromkeys(_differences(baseline, candidate))
    )
    rows = [
        row
        for key, cell in here.items()
        if key in there
        for row in _rows(there[key], cell, everything=everything, margin=margin, level=level)
    ]
    is_unequal = any(each.confounds for each in differences)
    return TwoSessions(
        baseline=_face(baseline),
        candidate=_face(candidate),
        differences=differences,
        caveats=(*_on_purpose(differences, changed), *_caveats(reports, rows), *_unmatched(there, here)),
        rows=tuple(_refused(row, reports, there, here) for row in _adjusted(rows, level)),
        label="unequal" if is_unequal else "historical",
        margin=margin,
        level=level,
        adjustment=f"Benjamini-Hochberg, {plural(sum(row.found.p is not None for row in rows), 'comparison')}",
    )


def _warmups(*sides: Stored) -> dict[CellKey, int]:
    """Turns that do not count: of a cell the same number in both sessions, what the one that warms up longer needs."""
    found: dict[CellKey, int] = {}
    for side in sides:
        for key, turns in by_cell(side.session, attempts_that_count(side.runs).values()).items():
            found[key] = max(turns, found.get(key, 0))
    return found


def unlike(one: Stored, other: Stored) -> tuple[Difference, ...]:
    """What keeps two sessions from being the same measurement done twice, in what both have measured."""
    return tuple(each for each in dict.fromkeys(_differences(one, other)) if each.confounds)


def _face(stored: Stored) -> Face:
    last = attempts_that_count(stored.runs).values()
    ok = sum(run.status == "ok" for run in last)
    session = stored.session
    return Face(
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
    """What was not equal, experiment by experiment and topology by topology, in what both have measured."""
    if baseline.session.target != candidate.session.target:
        yield _other("target", baseline.session.target, candidate.session.target)
    if baseline.session.seed != candidate.session.seed:
        yield _other("seed", baseline.session.seed, candidate.session.seed, confounds=False)
    if baseline.session.revision != candidate.session.revision:  # what of it was run is told by the hash of the code
        yield _other("revision", baseline.session.revision, candidate.session.revision, confounds=False)
    runs = [
        [run for run in attempts_that_count(each.runs).values() if run.status == "ok"] for each in (baseline, candidate)
    ]
    for place in dict.fromkeys((run.spec.experiment, run.spec.topology.name) for run in runs[1]):
        one, other = ([r for r in side if (r.spec.experiment, r.spec.topology.name) == place] for side in runs)
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


def _other(what: str, before: object, after: object, *, confounds: bool = True) -> Difference:
    return Difference(what=what, text=f"{what}: {before}, then {after}", confounds=confounds)


def _rows(
    there: CellReport, here: CellReport, *, everything: bool, margin: float, level: float
) -> Iterator[SessionRow]:
    """The headline's rows, or those of all metrics, of what was used, and of every point of a sweep."""
    before = {_name(row): row for row in (*there.rows, *there.usage, *there.sweeps)}
    for row in (*here.rows, *here.usage, *here.sweeps) if everything else here.rows:
        earlier = before.get(_name(row))
        is_compared = row.comparison is not None or len(row.sides) == 1
        if earlier is None or not is_compared or not (everything or row.headline):
            continue
        values, others = _values(earlier), _values(row)
        for where in [name for name in others if name in values]:
            if values[where] and others[where]:
                found = two_samples(row.metric, values[where], others[where], margin=margin, level=level)
                unequal = _unequal_loads((earlier, there), (row, here), where)
                yield SessionRow(
                    experiment=here.experiment,
                    cell=here.cell,
                    title=", ".join(f"{name}={value}" for name, value in sorted(here.params.items())),
                    where=where,
                    metric=row.metric,
                    arm=row.arm,
                    point=row.point,
                    headline=row.headline,
                    found=replace(found, verdict=None, why=unequal) if unequal else found,
                )


def _unequal_loads(one: tuple[MetricRow, CellReport], other: tuple[MetricRow, CellReport], where: str) -> str:
    """Why these may not be compared: at a lower load calls are answered sooner. Nothing: the metric knows no load, or it was equal."""
    if not other[0].metric.load:
        return ""
    if where in other[0].sides:
        return _loads_apart(one, other, where)
    refused = (row.comparison for row, _ in (one, other) if row.comparison and row.comparison.refused)
    return next((found.why for found in refused), "")


def _loads_apart(one: tuple[MetricRow, CellReport], other: tuple[MetricRow, CellReport], where: str) -> str:
    loads = _load(*one, where), _load(*other, where)
    if are_equal(*loads):
        return ""
    said = ", then ".join("unknown" if load is None else f"{load:.4g}" for load in loads)
    return f"measured at unequal loads ({other[0].metric.load}: {said})"


def _load(row: MetricRow, cell: CellReport, where: str) -> float | None:
    """The median load at which a row was measured on a topology."""
    for each in (*cell.rows, *cell.sweeps):
        if (each.metric.name, each.arm, each.point) == (row.metric.load, row.arm, row.point):
            estimate = each.sides[where].estimate if where in each.sides else None
            return estimate.value if estimate else None
    return None


def _name(row: MetricRow) -> tuple[str, str, str, str]:
    return row.metric.name, row.metric.unit, row.arm, row.point


def _values(row: MetricRow) -> dict[str, list[float]]:
    """Each topology's values, one an invocation; and the ratios inside the blocks, where there are two topologies.

    What made a whole session slower is in both sides of a block, so that their ratio is free of it.
    """
    found = {name: list(each.values.values()) for name, each in row.sides.items()}
    if row.comparison is not None:
        one, other = (row.sides[name].values for name in (row.comparison.baseline, row.comparison.candidate))
        name = f"{row.comparison.candidate}/{row.comparison.baseline}"
        found[name] = [other[b] / one[b] for b in one if b in other and one[b] > 0 and other[b] > 0]
    return found


def _adjusted(rows: Sequence[SessionRow], level: float) -> Iterator[SessionRow]:
    """With p-values that know how many comparisons there are; an alarm that does not outlast them is none."""
    tested = [row for row in rows if row.found.p is not None]
    p_values = estimates.adjusted([row.found.p for row in tested if row.found.p is not None], "fdr_bh")
    new = {id(row): p for row, p in zip(tested, p_values, strict=True)}
    for row in rows:
        found = replace(row.found, p_adjusted=new.get(id(row)))
        if row.is_alarm and found.p_adjusted is not None and found.p_adjusted > 1 - level:
            why = f"alone it would be {found.verdict}; among {plural(len(tested), 'comparison')} that may be luck"
            found = replace(found, verdict="undecided", why=why)
        yield replace(row, found=found, stand="not confirmed" if found.verdict in ALARMS else "")


def _refused(
    row: SessionRow, reports: Sequence[Report], there: Mapping[CellKey, CellReport], here: Mapping[CellKey, CellReport]
) -> SessionRow:
    """Without the verdict that one of the two sessions does not give itself: of a noisy host, or where a caveat refuses it."""
    if row.found.verdict is None:
        return row
    key = next(key for key, cell in here.items() if (cell.experiment, cell.cell) == (row.experiment, row.cell))
    for report, cell in zip(reports, (there[key], here[key]), strict=True):
        if report.noise:
            why = f"{report.session}: {report.noise}"
            return replace(row, stand="", found=replace(row.found, verdict="undecided", why=why))
        for caveat in report.caveats:
            if caveat.severity == "refuses" and caveat.about in (SESSION, about(cell)):
                why = f"{report.session} gives no verdict itself: {caveat.text}"
                return replace(row, stand="", found=replace(row.found, verdict=None, why=why))
    return row


def _on_purpose(differences: Sequence[Difference], changed: Collection[str]) -> Iterator[Caveat]:
    for each in differences:
        if each.what in changed:
            yield Caveat(severity="note", about=SESSION, text=f"changed on purpose: {each.text}")


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


def _unmatched(there: Mapping[CellKey, CellReport], here: Mapping[CellKey, CellReport]) -> Iterator[Caveat]:
    for whose, cells, others in (("baseline", there, here), ("candidate", here, there)):
        alone = [f"{cell.experiment} {cell.cell}" for key, cell in cells.items() if key not in others]
        if alone:
            text = f"only the {whose} has {', '.join(alone[:3])}{f' and {len(alone) - 3} more' if alone[3:] else ''}"
            yield Caveat(severity="note", about=SESSION, text=text)


def confirmed(first: TwoSessions, again: TwoSessions) -> TwoSessions:
    """`first`, with its alarms held against a fresh session's: one that is not found again there is no alarm.

    Both have the same baseline, whose luck is in both. `again` is therefore to be made at a higher level.
    """
    fresh = {row.key: row.found for row in again.rows}
    rows = [_held(row, fresh.get(row.key), again.candidate.session) if row.is_alarm else row for row in first.rows]
    return replace(first, rows=tuple(rows), confirmed_by=again.candidate.session)


def _held(row: SessionRow, fresh: TwoSamples | None, session: str) -> SessionRow:
    if fresh is None or fresh.verdict is None:  # no evidence is none against it
        return row
    if fresh.verdict == row.found.verdict:
        return replace(row, stand="confirmed")
    why = f"it was {row.found.verdict}, and the fresh session {session} says {fresh.verdict} ({_describe(fresh)})"
    return replace(row, found=replace(row.found, verdict="undecided", why=why), stand="not found again")


def _describe(found: TwoSamples) -> str:
    return ratio(found.ratio) if found.ratio else "no ratio"
