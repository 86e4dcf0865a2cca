"""The comparisons as tests, for CI: JUnit's XML as Jenkins, GitLab and GitHub's actions read it.

What a topology uses of CPU and network is no test: that two nodes send more than one is no failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.comparison import attempts_that_count
from bench.analysis.numbers import percent
from bench.analysis.rows import MetricRow
from bench.model import Run

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test. `outcome` is None where it passed."""

    group: str
    name: str
    outcome: Literal["failure", "error", "skipped"] | None = None
    why: str = ""


def render(report: Report, runs: Sequence[Run] = ()) -> str:
    """One suite: its stamps, a test a comparison, then one for every run that has no numbers.

    Slower beyond the margin is a failure, no verdict is skipped with its reason, a run that is not ok is an error.
    """
    cases = [*_comparisons(report), *_runs(runs)]
    counts = {of: sum(case.outcome == of for case in cases) for of in ("failure", "error", "skipped")}
    said: dict[str, str | int] = {
        "name": f"raymeter {report.session}",
        "tests": len(cases),
        "failures": counts["failure"],
        "errors": counts["error"],
        "skipped": counts["skipped"],
        "timestamp": report.created[:19],
    }
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", f"<testsuite{_attributes(said)}>"]
    if report.stamps:
        stamps = _attributes({"name": "stamps", "value": ", ".join(report.stamps)})
        lines.append(f"<properties><property{stamps}/></properties>")
    lines += [line for case in cases for line in _case(case)]
    return "\n".join([*lines, "</testsuite>", "</testsuites>"]) + "\n"


def _comparisons(report: Report) -> Iterator[Case]:
    for cell in report.cells:
        for row in (*cell.rows, *cell.sweeps):
            if row.comparison:
                yield _judged(cell, row)


def _judged(cell: CellReport, row: MetricRow) -> Case:
    found = row.comparison
    assert found is not None  # noqa: S101, asked for by the caller
    name = " ".join(word for word in (row.metric.name, row.arm, row.point) if word)
    sides = f"{found.candidate}/{found.baseline}"
    case = Case(group=f"{cell.experiment}.{cell.cell}", name=f"{name}, {sides} {cell.title}".rstrip())
    if found.verdict == "slower" and found.ratio:
        why = f"{sides} is {found.ratio.value:.4g}, {found.why}"
        return Case(group=case.group, name=case.name, outcome="failure", why=why)
    if found.verdict in (None, "undecided"):
        seen = f"; it could have shown {percent(found.smallest_effect)}" if found.smallest_effect else ""
        return Case(group=case.group, name=case.name, outcome="skipped", why=f"{found.why or 'no verdict'}{seen}")
    return case


def _runs(runs: Sequence[Run]) -> Iterator[Case]:
    """The attempts that count and are not ok."""
    for run in attempts_that_count(runs).values():
        if run.status != "ok":
            group = f"{run.spec.experiment}.{run.spec.cell}"
            yield Case(group=group, name=f"run {run.spec.folder}", outcome="error", why=f"{run.status}: {_first(run)}")


def _first(run: Run) -> str:
    return run.reasons[0] if run.reasons else "no reason is known"


def _case(case: Case) -> Iterator[str]:
    head = f"<testcase{_attributes({'classname': case.group, 'name': case.name})}"
    if case.outcome is None:
        yield f"{head}/>"
        return
    kind = {} if case.outcome == "skipped" else {"type": case.outcome}
    yield f"{head}><{case.outcome}{_attributes({**kind, 'message': case.why})}/></testcase>"


def _attributes(said: Mapping[str, str | int]) -> Markup:
    return Markup("").join(Markup(' {}="{}"').format(name, _NO_XML.sub("", str(value))) for name, value in said.items())
