"""Composes two sessions side by side: sentences and tables, which text and Markdown write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.caveats.evidence import SESSION, Severity
from bench.analysis.number_format import label, percent, plain, ratio, scale_for, with_interval
from bench.analysis.two_samples import TwoSamples
from bench.analysis.two_sessions import SessionRow, SessionSummary, TwoSessions
from bench.counts import plural
from bench.reports import tables
from bench.reports.document import Chapter, Document, Section
from bench.reports.tables import Cell, Table


def compose(found: TwoSessions) -> Document:
    """The comparison as sections."""
    cells = dict.fromkeys((row.experiment, row.cell, row.title) for row in found.rows)
    return Document(
        title=f"raymeter compares session {found.candidate.session} with the baseline {found.baseline.session}",
        question=f"Is {found.candidate.session} faster or slower than {found.baseline.session} was?",
        answer=tuple(_answer(found)),
        caveats=tuple(_caveats(found)),
        design=tuple(_design(found)),
        chapters=tuple(
            _chapter(name, [row for row in found.rows if (row.experiment, row.cell, row.title) == name])
            for name in cells
        ),
        legend=tuple(_legend(found)),
    )


def _answer(found: TwoSessions) -> Iterator[str]:
    """Every alarm; or, without any, how many verdicts there are of each kind."""
    if not found.rows:
        yield "There is no answer: the two have no cell in common that both have measured."
    for row in found.alarms:
        yield f"{describe_row(row)}: {format_row_verdict(row)}, {format_ratio(row.found)} times the baseline's."
    if found.rows and not found.alarms:
        verdicts = [row.found.verdict or "too few" for row in found.rows]
        counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
        yield f"No number is known to have become faster or slower. Of {plural(len(found.rows), 'number')}: {counts}."


def describe_row(row: SessionRow) -> str:
    """Which number a row is of."""
    point = f" at {row.point}" if row.point else ""
    return f"{row.experiment} {row.cell}, {label(row.metric)}{point} on {row.where}"


def format_row_verdict(row: SessionRow) -> str:
    """The verdict of a row, and whether a fresh session has found it again."""
    if row.found.verdict is None:
        return "too few" if row.found.ratio else "no ratio"
    word = tables.verdict_word(row.metric, row.found.verdict, row.found.ratio.value if row.found.ratio else 1.0)
    return f"{word} ({row.stand})" if row.stand else word


def format_ratio(found: TwoSamples) -> str:
    """The ratio with its interval."""
    return ratio(found.ratio) if found.ratio else tables.NOTHING


def _caveats(found: TwoSessions) -> Iterator[tuple[Severity, str]]:
    for each in found.confounders:
        yield "weakens", f"Unequal, and allowed: {each.text}. What it does is in every ratio"
    if found.baseline.session == found.candidate.session:
        yield "note", "Both are one session: this checks the arithmetic, and measures nothing"
    else:
        yield (
            "weakens",
            (
                f"Historical: the two were measured at {found.baseline.created} and {found.candidate.created}, not in turn."
                " What changed in between, and is in no fact, is in every ratio, and no interval here knows of it;"
                " multi/single is free of what both topologies had"
            ),
        )
    if any(row.stand == "not confirmed" for row in found.rows):
        yield "weakens", "An alarm is not confirmed: `bench compare --confirm` measures its cells once more"
    for caveat in found.caveats:
        text = caveat.text if caveat.about == SESSION else f"{caveat.about}: {caveat.text}"
        yield caveat.severity, text[:1].upper() + text[1:]
    for each in found.differences:
        if not each.confounds:
            yield "note", f"Not the same: {each.text}"


def _design(found: TwoSessions) -> Iterator[tuple[str, str]]:
    yield "baseline", _describe_session(found.baseline)
    yield "candidate", _describe_session(found.candidate)
    if found.confirmed_by:
        yield "confirmed by", f"{found.confirmed_by}, which measured the candidate's alarmed cells anew"
    yield "estimators", found.estimator
    yield "corrected", f"{found.adjustment}: an alarm has a corrected p of at most {1 - found.level:.2g}"


def _describe_session(session: SessionSummary) -> str:
    left_out = f", {session.excluded} left out" if session.excluded else ""
    runs = plural(session.runs, "run")
    return f"{session.session}, {session.created}, target {session.target}, {runs} ok{left_out}: {session.command}"


def _chapter(name: tuple[str, str, str], rows: Sequence[SessionRow]) -> Chapter:
    experiment, cell, title = name
    why = [f"{label(row.metric)} on {row.where}: {row.found.why}" for row in rows if _needs_reason(row)]
    section = Section(title=title, table=_table(rows), notes=tuple(dict.fromkeys(why)))
    return Chapter(title=f"{experiment} {cell}", sections=(section,))


def _needs_reason(row: SessionRow) -> bool:
    """A headline without a verdict says why; and so does what would be an alarm and is none."""
    interval = row.found.ratio
    differs = (
        interval and interval.low is not None and interval.high is not None and not interval.low <= 1 <= interval.high
    )
    return bool((row.headline and row.found.verdict is None) or (row.found.verdict == "undecided" and differs))


def _table(rows: Sequence[SessionRow]) -> Table:
    columns = [
        *(("metric", False), ("on", False), ("unit", False), ("baseline", True), ("n", True), ("candidate", True)),
        *(("n", True), ("candidate/baseline", True), ("verdict", False), ("p", True), ("could show", True)),
    ]
    return tables.table(columns, [_row(row) for row in rows])


def _row(row: SessionRow) -> tables.Row:
    found = row.found
    is_ratio = "/" in row.where
    scale = scale_for(row.metric, [] if is_ratio else [found.baseline.value, found.candidate.value])
    sides = [ratio(each) if is_ratio else with_interval(each, scale) for each in (found.baseline, found.candidate)]
    return tables.row(
        [
            Cell(f"{label(row.metric)} {row.point}".strip(), "strong" if row.headline else ""),
            *(row.where, "" if is_ratio else scale.unit, sides[0], str(found.baseline.n), sides[1]),
            *(str(found.candidate.n), format_ratio(found)),
            Cell(format_row_verdict(row), tables.TONES.get(found.verdict or "", "")),
            plain(found.p_adjusted) if found.p_adjusted is not None else tables.NOTHING,
            percent(found.smallest_effect) if found.smallest_effect is not None else tables.NOTHING,
        ],
        is_headline=row.headline,
    )


def _legend(found: TwoSessions) -> Iterator[tuple[str, str]]:
    margin = percent(found.margin)
    yield (
        "12.3 [11.9, 12.8]",
        "the median over invocations, or the ratio, and its 95 % confidence interval; ~: too few for 95 %",
    )
    yield "candidate/baseline", "1 is no difference; an interval that holds 1 has not shown any"
    yield "multi/single", "the ratio of the two topologies inside each block: what the network costs"
    yield "could show", "the smallest difference that so many invocations find in 4 of 5 cases"
    yield "p", "of the Mann-Whitney test, corrected for how many numbers are compared here"
    yield (
        "verdict",
        (
            f"faster, slower: the interval excludes 1, the ratio is more than {margin} off, and the corrected p is small;"
            f" equivalent: all of the interval is within {margin}; below margin: a difference, but within {margin}; undecided:"
            " the rest"
        ),
    )
    yield "confirmed", "a fresh session of the cell has found the same once more; not confirmed: none was asked for"
