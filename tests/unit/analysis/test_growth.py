"""That the work of an analysis grows with the session and not with its square, and is little beside reading it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import made_up
import pytest
from made_up import ARMS, METRICS
from repository import SUPPORT

from bench import analysis
from bench.model import Line, Run, Spec
from bench.record import line_format

READS: Counter[str] = Counter()


class Watched(Run):
    """A run that counts how often anything of it is read."""

    def __getattribute__(self, name: str) -> object:
        if not name.startswith("__"):
            READS[name] += 1
        return super().__getattribute__(name)


class Plan(tuple[Spec, ...]):
    """Specs that count how often all of them are gone through."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Spec]:
        READS["plan"] += 1
        return super().__iter__()


def reads(monkeypatch, *, cells, blocks=6):
    """How often a run was read, in the mean, and how often the plan was."""
    monkeypatch.setattr(made_up, "CELLS", tuple({"batch": number} for number in range(cells)))
    monkeypatch.setattr(made_up, "PER_SECOND", (15_000.0,) * cells)
    session, runs = made_up.made_up(cells=cells, blocks=blocks, metrics=METRICS[:2], arms=ARMS[:2])
    watched = [Watched(**{name: getattr(run, name) for name in Run.__dataclass_fields__}) for run in runs]
    session = replace(session, specs=Plan(session.specs))
    READS.clear()
    analysis.build(session, watched)
    plan = READS.pop("plan")
    return READS.total() / len(runs), plan


def test_runs_and_plan_are_read_as_often_among_many_cells_as_among_few(monkeypatch):
    few, many = (reads(monkeypatch, cells=cells) for cells in (3, 12))
    assert many == (pytest.approx(few[0], rel=0.1), few[1])


def test_runs_and_plan_are_read_as_often_among_many_blocks_as_among_few(monkeypatch):
    few, many = (reads(monkeypatch, cells=2, blocks=blocks) for blocks in (6, 24))
    assert many == (pytest.approx(few[0], rel=0.1), few[1])


def fastest(work, times=3):
    """CPU seconds of the fastest of several goes."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def test_an_analysis_takes_no_more_than_a_few_times_what_reading_the_records_takes():
    session, runs = made_up.made_up(cells=2, blocks=20)
    lines = [line_format.encode(Line(seq=1, sample=sample)) for run in runs for sample in run.samples]
    lines += [line_format.encode(Line(seq=1, usage=usage)) for run in runs for usage in run.usage]
    reading = fastest(lambda: [line_format.decode(line) for line in lines])
    # what a run keeps of itself once it was asked is to be worked out anew: each go has new runs
    fresh = iter([[replace(run) for run in runs] for _ in range(4)])
    analysis.build(session, next(fresh))
    assert fastest(lambda: analysis.build(session, next(fresh))) < 5 * reading


def test_a_report_needs_neither_scipy_stats_nor_statsmodels_which_take_longer_to_import_than_it_takes():
    said = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        check=False,
        cwd=SUPPORT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said.stdout.strip() == "[]", said.stderr


IMPORTED = """
import sys
from made_up import made_up
from bench import analysis, reports
session, runs = made_up(cells=1, blocks=12)
reports.render("text", analysis.build(session, runs), runs)
print([name for name in ("scipy.stats", "statsmodels", "pandas") if name in sys.modules])
"""
