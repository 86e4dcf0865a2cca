"""That the work of an analysis grows with the session and not with its square: counted, not timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from analysis import made_up
from analysis.made_up import ARMS, METRICS

from bench import analysis
from bench.model import Run, Spec

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
