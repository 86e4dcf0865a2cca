"""Writes the comparisons as JUnit XML for CI, as Jenkins, GitLab and GitHub's actions read it.

CPU and network use are no test cases: that two nodes send more than one is not a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal
from xml.etree import ElementTree as ET

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.comparison import Comparison, attempts_that_count
from bench.analysis.number_format import percent
from bench.analysis.rows import MetricRow
from bench.model import Run

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML does not allow
Outcome = Literal["failure", "error", "skipped"]


def render(report: Report, runs: Sequence[Run] = ()) -> str:
    """Write one test suite: its stamps, a test case per comparison, then one per run without values.

    Slower beyond the margin is a failure, no verdict is skipped with the reason, a run that is not ok is an error.
    """
    cases = [*_comparisons(report), *_runs(runs)]
    counts = {
        name: str(sum(case.find(outcome) is not None for case in cases))
        for name, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    about = {"name": f"raymeter {report.session}", "tests": str(len(cases)), **counts}
    suite = _element("testsuite", about | {"timestamp": report.created[:19]})
    if report.stamps:
        properties = ET.SubElement(suite, "properties")
        properties.append(_element("property", {"name": "stamps", "value": ", ".join(report.stamps)}))
    suite.extend(cases)
    page = ET.Element("testsuites")
    page.append(suite)
    ET.indent(page, space="")
    text: bytes = ET.tostring(page, encoding="UTF-8", xml_declaration=True)
    return f"{text.decode()}\n"


def _comparisons(report: Report) -> Iterator[ET.Element]:
    for cell in report.cells:
        for row in (*cell.rows, *cell.sweeps):
            if row.comparison:
                yield _judged(cell, row, row.comparison)


def _judged(cell: CellReport, row: MetricRow, comparison: Comparison) -> ET.Element:
    sides = f"{comparison.candidate}/{comparison.baseline}"
    series = " ".join(word for word in (row.metric.name, row.arm, row.point) if word)
    group, name = f"{cell.experiment}.{cell.cell}", f"{series}, {sides} {cell.title}".rstrip()
    if comparison.verdict == "slower" and comparison.ratio:
        return _case(group, name, "failure", f"{sides} is {comparison.ratio.value:.4g}, {comparison.why}")
    if comparison.verdict in (None, "undecided"):
        detectable = (
            f"; it could have shown {percent(comparison.smallest_effect)}" if comparison.smallest_effect else ""
        )
        return _case(group, name, "skipped", f"{comparison.why or 'no verdict'}{detectable}")
    return _case(group, name)


def _runs(runs: Sequence[Run]) -> Iterator[ET.Element]:
    """Yield an error for each attempt that counts and is not ok."""
    for run in attempts_that_count(runs).values():
        if run.status != "ok":
            group = f"{run.spec.experiment}.{run.spec.cell}"
            first = run.reasons[0] if run.reasons else "no reason is known"
            yield _case(group, f"run {run.spec.folder}", "error", f"{run.status}: {first}")


def _case(group: str, name: str, outcome: Outcome | None = None, message: str = "") -> ET.Element:
    """Return one test case; without an outcome it has passed."""
    case = _element("testcase", {"classname": group, "name": name})
    if outcome:
        kind = {} if outcome == "skipped" else {"type": outcome}
        case.append(_element(outcome, {**kind, "message": message}))
    return case


def _element(tag: str, attributes: dict[str, str]) -> ET.Element:
    return ET.Element(tag, {name: _NO_XML.sub("", value) for name, value in attributes.items()})
