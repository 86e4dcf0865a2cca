"""Shows what each change of a parameter brought: the headline first, then every metric and arm of each change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from bench.analysis import Report
from bench.analysis.comparison import Comparison
from bench.analysis.contrasts import Contrast, Effect
from bench.analysis.number_format import label, noun, ratio, with_interval
from bench.counts import plural
from bench.model import Metric, Run
from bench.reports import tables
from bench.reports.document import Chapter, Section, Short
from bench.reports.drawing.picture import upper
from bench.reports.sections import contrast_pictures, overlaid
from bench.reports.tables import NOTHING, TONES, Cell, Row, Table

MOST_CHANGES = 5  # of the short form
SOURCE = "each ratio is of the two cells' invocations in one block; interval by inverting the signed-rank test"
INTERACTIONS: Mapping[str, str] = {"faster": "gains more", "slower": "gains less"}


def chapters(report: Report, _: Sequence[Run] = ()) -> Iterator[Chapter]:
    """A chapter an experiment in which a parameter was varied."""
    for experiment in dict.fromkeys(each.experiment for each in report.contrasts):
        those = [each for each in report.contrasts if each.experiment == experiment and each.headline]
        if not those:
            continue
        several = len({cell.experiment for cell in report.cells}) > 1
        first = Section(
            title=f"{upper(_headline(those))} of each change, block by block",
            table=overview(those),
            notes=tuple(
                dict.fromkeys(filter(None, (note for each in those for note in (each.at_once, _other_work(each)))))
            ),
            source=SOURCE,
            draw=partial(contrast_pictures.factors, report, those),
            short=short(those, experiment if several else ""),
        )
        yield Chapter(
            title=f"{experiment}: what each change brought",
            sections=(
                first,
                *(section(each) for each in those),
                Section(draw=partial(overlaid.pictures, report, those)),
            ),
            is_overview=True,
        )


def _headline(those: Sequence[Contrast]) -> str:
    return next(noun(each.headline.metric) for each in those if each.headline)


def overview(those: Sequence[Contrast]) -> Table:
    """A row a change and topology: the headline in both cells, the factor and the verdict; then the topologies' factors."""
    rows = [
        tables.row([*start, *cells])
        for each in those
        if each.headline
        for start, cells in _lines(each, each.headline, (each.title + (f", {each.where}" if each.where else ""),))
    ]
    return tables.table([("change", False), *HEADS], rows)


HEADS = (
    ("on", False),
    ("unit", False),
    ("before", True),
    ("after", True),
    ("after/before", True),
    ("pairs", True),
    ("verdict", False),
)


def section(contrast: Contrast) -> Section:
    """Every effect of one change."""
    where = f", {contrast.where}" if contrast.where else ""
    rows = [
        Row(tuple(Cell(each) if isinstance(each, str) else each for each in (*start, *cells)), effect.headline)
        for effect in contrast.effects
        for start, cells in _lines(contrast, effect, (label(effect.metric), effect.arm))
    ]
    return Section(
        title=f"{contrast.instead}{where} ({contrast.candidate} beside {contrast.baseline})",
        table=tables.table([("metric", False), ("arm", False), *HEADS], rows),
        notes=tuple(filter(None, [contrast.at_once, _other_work(contrast), *dict.fromkeys(_refusals(contrast))])),
        source=SOURCE,
    )


def _other_work(contrast: Contrast) -> str:
    """What the factors do not show, where the cells do not do as much work, or not the same."""
    if contrast.other_units:
        return f"{contrast.title}: {contrast.other_units}, so that no factor is called faster or slower"
    totals = dict.fromkeys(noun(effect.metric) for effect in contrast.effects if effect.metric.is_total)
    if not contrast.work or not totals:
        return ""
    return f"{contrast.title}: {contrast.work}, so that a longer {' or '.join(totals)} is not slower"


def _refusals(contrast: Contrast) -> Iterator[str]:
    for effect in contrast.effects:
        yield from (f"no verdict: {each.why}" for each in effect.comparisons if each.refused)


def _lines(
    contrast: Contrast, effect: Effect, start: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[Cell | str]]]:
    """One a topology, with both cells' values; then how the factors of topologies compare."""
    for topology, row in effect.rows.items():
        scale = tables.row_scale(row)
        values = [tables.format_side(row.sides[cell], scale, row) for cell in contrast.cells]
        pairs = row.comparison.pairs if row.comparison else 0
        factor, verdict = tables.ratio_and_verdict(row)
        yield start, [topology, scale.unit, *values, factor, str(pairs), verdict]
    both = effect.interaction
    if both and both.ratio:
        on = tables.ratio_head(both)
        last = _interaction(effect.metric, both)
        yield start, [on, "ratio", NOTHING, NOTHING, ratio(both.ratio), str(both.pairs), last]


def _interaction(metric: Metric, found: Comparison) -> Cell:
    verdict = tables.verdict(metric, found)
    return Cell(INTERACTIONS.get(verdict, verdict), TONES.get(found.verdict or "", ""))


def short(those: Sequence[Contrast], experiment: str) -> Short:
    """A row a change, the first of each parameter before its others: the factor on each topology, and the verdicts."""
    names = list(dict.fromkeys(each.parameters for each in those))
    common = names[0][0] if len(names) == 1 and len(names[0]) == 1 else ""
    title = ", ".join(filter(None, (f"Change of {common}" if common else f"Changes, {_headline(those)}", experiment)))
    found = _short(those, common, MOST_CHANGES)
    if len(those) <= MOST_CHANGES:
        return Short(title=title, table=found)
    return Short(title=title, table=found, fewer=lambda most: _short(those, common, min(most, MOST_CHANGES)))


def _short(those: Sequence[Contrast], common: str, most: int) -> Table:
    names = list(dict.fromkeys(each.parameters for each in those))
    of_names = {name: [each for each in those if each.parameters == name] for name in names}
    ordered = sorted(those, key=lambda each: (of_names[each.parameters].index(each), names.index(each.parameters)))
    shown = sorted(ordered[:most], key=those.index)
    topologies = list(dict.fromkeys(name for each in those if each.headline for name in each.headline.rows))
    heads = [("", False), *((f"factor, {name}", True) for name in topologies), ("verdict", False)]
    rows = []
    for each in shown:
        effect = each.headline
        if effect:
            title = each.title.removeprefix(f"{common} ") + (f", {each.where}" if each.where else "")
            different = ", ".join(filter(None, (each.work_of_headline, each.other_units)))
            title += f" ({different})" if different else ""
            found = {name: row.comparison for name, row in effect.rows.items()}
            values = [_factor(found.get(name)) for name in topologies]
            rows.append(tables.row([title, *values, _verdicts(effect)]))
    if left := len(those) - len(rows):
        rows.append(tables.row([f"... {plural(left, 'more change')}"]))
    return tables.table(heads, rows)


def _factor(found: Comparison | None) -> str:
    return with_interval(found.ratio, decimals=2) if found and found.ratio else NOTHING


def _verdicts(effect: Effect) -> Cell:
    """That of each topology, or the one of all."""
    found = [row.comparison for row in effect.rows.values() if row.comparison]
    words = list(dict.fromkeys(tables.verdict(effect.metric, each) for each in found))
    return Cell(", ".join(words), TONES.get(found[0].verdict or "", "") if len(words) == 1 else "")
