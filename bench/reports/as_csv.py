"""Writes every number of the report as CSV, unrounded: a line a value, for spreadsheets and data frames."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from io import StringIO

from bench.analysis import Report
from bench.analysis.breakdown.network import NetworkBreakdown
from bench.analysis.cells import CellReport, NodeMetric
from bench.analysis.comparison import Comparison, Side
from bench.analysis.contrasts import Contrast
from bench.analysis.costs import Cost
from bench.analysis.curves import Curve
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import Estimate
from bench.analysis.usage import LIKE_IDLE, NodeRow
from bench.model import Run, to_json

COLUMNS = (
    "session",
    "experiment",
    "cell",
    "against",  # of a contrast and an interaction: the cell that this one is compared with
    "params",
    "what",  # one of WHAT
    "metric",
    "unit",
    "better",
    "headline",
    "arm",
    "point",
    "topology",
    "node",
    "block",
    "step",
    "value",
    "low",
    "high",
    "level",
    "n",
    "verdict",
    "smallest_effect",
    "p",
    "p_adjusted",
    "missing",
    "stamps",  # what no number may be taken without
)
WHAT = (
    *("median", "ratio", "invocation", "repeat", "share", "node", "curve", "breakdown", "cost"),
    *("contrast", "interaction"),
)
_MEASURES = tuple(field.name for field in fields(NodeRow) if field.name not in ("topology", "node", "n", "like_idle"))
_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)  # the full-width ones too: Excel takes them in Japanese
_BLANK_FORMULA = ("\t", "\n")
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t"}

Line = dict[str, object]


def render(report: Report, _: Sequence[Run] = (), *, delimiter: str = ",", decimal: str = ".") -> str:
    """COLUMNS, then a line a median, ratio, invocation's value, arm's share, node's measure, step of a curve and contrast.

    What is not known is empty. Numbers are as exact as in the JSON. `decimal` stands before the fraction of a number.
    """
    page = StringIO()
    writer = csv.DictWriter(page, COLUMNS, restval="", lineterminator="\n", delimiter=delimiter)
    writer.writeheader()
    for cell in report.cells:
        about: Line = {
            "session": report.session,
            "experiment": cell.experiment,
            "cell": cell.cell,
            "params": to_json(dict(cell.params)).decode(),
            "stamps": ", ".join((*report.stamps, *cell.marks)),
        }
        own = [each for each in report.costs if (each.experiment, each.cell) == (cell.experiment, cell.cell)]
        for line in (*_lines(cell), *map(_of_cost, own)):
            stamps = ", ".join(filter(None, [str(about["stamps"]), str(line.get("stamps", ""))]))
            whole = about | line | {"stamps": stamps}
            writer.writerow({name: _safe(value, decimal) for name, value in whole.items()})
    cells = {(cell.experiment, cell.cell): cell for cell in report.cells}
    for contrast in report.contrasts:
        baseline, candidate = (cells[contrast.experiment, name] for name in contrast.cells)
        about = {
            "session": report.session,
            "experiment": contrast.experiment,
            "cell": contrast.candidate,
            "against": contrast.baseline,
            "params": to_json(dict(candidate.params)).decode(),
            "stamps": ", ".join((*report.stamps, *dict.fromkeys((*baseline.marks, *candidate.marks)))),
        }
        for line in _of_contrast(contrast):
            writer.writerow({name: _safe(value, decimal) for name, value in (about | line).items()})
    return page.getvalue()


def _safe(value: object, decimal: str) -> object:
    """Words that a spreadsheet would take for a formula get a ' in front, behind blanks too; None is empty."""
    if isinstance(value, str):
        value = value.replace("\r\n", "\n").replace(
            "\r", "\n"
        )  # a lone \r is not quoted, and ends a row in a spreadsheet
        return f"'{value}" if value.startswith(_BLANK_FORMULA) or value.lstrip().startswith(_FORMULA) else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and decimal != ".":
        return repr(value).replace(".", decimal)
    return "" if value is None else value


def _lines(cell: CellReport) -> Iterator[Line]:
    for row in (*cell.rows, *cell.usage, *cell.sweeps):
        yield from _of_row(row)
    yield from _of_repeats(cell)
    for arm in cell.arms:
        about: Line = {"metric": arm.metric, "arm": arm.arm.name, "topology": arm.topology}
        if arm.arm.role != "subject":
            yield from _of_side(arm.side, about)
        if arm.share:
            yield {"what": "share", **about, **_estimate(arm.share), "verdict": arm.verdict}
    for each in cell.node_metrics:
        yield from _of_side(each.side, {**_metric_of(each), "topology": each.topology, "node": each.node})
    for node in cell.nodes:
        yield from _of_node(node)
    if cell.network_breakdown:
        yield from _of_breakdown(cell.network_breakdown)
    for curve in cell.curves:
        about = {**_metric_of(curve), "arm": curve.arm, "point": curve.point, "topology": curve.topology}
        for step, middle, low, high, n in zip(curve.steps, curve.middle, curve.low, curve.high, curve.n, strict=True):
            yield {"what": "curve", **about, "step": step, "value": middle, "low": low, "high": high, "n": n}


def _of_contrast(contrast: Contrast) -> Iterator[Line]:
    """The factor of the cell by the one that it is against, on each topology; then the factors of topologies, by each other."""
    for effect in contrast.effects:
        about = {
            "metric": effect.metric.name,
            "unit": effect.metric.unit,
            "better": effect.metric.better,
            "headline": effect.headline,
            "arm": effect.arm,
        }
        for topology, row in effect.rows.items():
            if row.comparison:
                yield about | _ratio(row.comparison) | {"what": "contrast", "topology": topology}
        if effect.interaction:
            yield about | _ratio(effect.interaction) | {"what": "interaction"}


def _of_repeats(cell: CellReport) -> Iterator[Line]:
    """Of each, the seconds of a pass and the headline; its turn is its step."""
    for each in cell.repeats:
        about: Line = {"arm": cell.subject, "topology": each.topology, "block": each.block, "step": each.turn}
        about["what"] = "repeat"
        yield {**about, "metric": "pass_seconds", "unit": "s", "better": "lower", "value": each.seconds}
        if cell.headline:
            yield {**about, **_metric_of(cell.headline), "headline": True, "value": each.value}


def _of_cost(cost: Cost) -> Line:
    about: Line = {"metric": cost.metric, "unit": cost.currency, "topology": cost.topology}
    return {"what": "cost", **about, **_estimate(cost.per_million)}


def _of_node(node: NodeRow) -> Iterator[Line]:
    for name in _MEASURES:
        place = {"topology": node.topology, "node": node.node}
        yield {"what": "node", "metric": name, **place, "value": getattr(node, name), "n": node.n} | (
            {"stamps": LIKE_IDLE} if name in node.like_idle else {}
        )


def _of_breakdown(breakdown: NetworkBreakdown) -> Iterator[Line]:
    """Seconds a unit of work: on each topology, of each part of the gap, of the gap."""
    about: Line = {"what": "breakdown", "unit": f"s/{breakdown.unit}", "better": "lower"}
    for topology, seconds in breakdown.seconds.items():
        yield {**about, "metric": "seconds", "topology": topology, **_estimate(seconds)}
    both = f"{breakdown.candidate}-{breakdown.baseline}"
    for part in breakdown.parts:
        why = "" if part.seconds else part.rests_on
        yield {**about, "metric": part.name, "topology": both, **_estimate(part.seconds), "missing": why}
    if breakdown.gap:
        yield {**about, "metric": "gap", "topology": both, **_estimate(breakdown.gap)}


def _metric_of(row: MetricRow | NodeMetric | Curve) -> Line:
    metric = row.metric
    return {"metric": metric.name, "unit": metric.unit, "better": metric.better}


def _of_row(row: MetricRow) -> Iterator[Line]:
    about = {**_metric_of(row), "headline": row.headline, "arm": row.arm, "point": row.point}
    for topology, side in row.sides.items():
        yield from _of_side(side, about | {"topology": topology})
    if row.comparison:
        yield about | _ratio(row.comparison)


def _of_side(side: Side, about: Mapping[str, object]) -> Iterator[Line]:
    yield {"what": "median", **about, **_estimate(side.estimate)} | ({"stamps": LIKE_IDLE} if side.like_idle else {})
    for block, value in side.values.items():
        yield {"what": "invocation", **about, "block": block, "value": value}
    for block, why in side.missing.items():
        yield {"what": "invocation", **about, "block": block, "missing": why}


def _ratio(found: Comparison) -> Line:
    return {
        "what": "ratio",
        "topology": f"{found.candidate}/{found.baseline}",
        **_estimate(found.ratio),
        "verdict": "refused" if found.refused else found.verdict,
        "smallest_effect": found.smallest_effect,
        "p": found.p,
        "p_adjusted": found.p_adjusted,
        "missing": "" if found.verdict else found.why,
    }


def _estimate(found: Estimate | None) -> Line:
    if found is None:
        return {}
    return {"value": found.value, "low": found.low, "high": found.high, "level": found.level, "n": found.n}
