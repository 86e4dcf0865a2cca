"""Writes the comparisons as tests, for CI: JUnit's XML as Jenkins, GitLab and GitHub's actions read it.

What a topology uses of CPU and network is no test: that two nodes send more than one is no failure.
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

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot hold
Outcome = Literal["failure", "error", "skipped"]


def render(report: Report, runs: Sequence[Run] = ()) -> str:
    """One suite: its stamps, a test a comparison, then one for every run that has no numbers.

    Slower beyond the margin is a failure, no verdict is skipped with its reason, a run that is not ok is an error.
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


def _judged(cell: CellReport, row: MetricRow, found: Comparison) -> ET.Element:
    sides = f"{found.candidate}/{found.baseline}"
    words = " ".join(word for word in (row.metric.name, row.arm, row.point) if word)
    group, name = f"{cell.experiment}.{cell.cell}", f"{words}, {sides} {cell.title}".rstrip()
    if found.verdict == "slower" and found.ratio:
        return _case(group, name, "failure", f"{sides} is {found.ratio.value:.4g}, {found.why}")
    if found.verdict in (None, "undecided"):
        seen = f"; it could have shown {percent(found.smallest_effect)}" if found.smallest_effect else ""
        return _case(group, name, "skipped", f"{found.why or 'no verdict'}{seen}")
    return _case(group, name)


def _runs(runs: Sequence[Run]) -> Iterator[ET.Element]:
    """The attempts that count and are not ok."""
    for run in attempts_that_count(runs).values():
        if run.status != "ok":
            group = f"{run.spec.experiment}.{run.spec.cell}"
            first = run.reasons[0] if run.reasons else "no reason is known"
            yield _case(group, f"run {run.spec.folder}", "error", f"{run.status}: {first}")


def _case(group: str, name: str, outcome: Outcome | None = None, why: str = "") -> ET.Element:
    """One test; without an outcome it passed."""
    case = _element("testcase", {"classname": group, "name": name})
    if outcome:
        kind = {} if outcome == "skipped" else {"type": outcome}
        case.append(_element(outcome, {**kind, "message": why}))
    return case


def _element(tag: str, attributes: dict[str, str]) -> ET.Element:
    return ET.Element(tag, {name: _NO_XML.sub("", value) for name, value in attributes.items()})
