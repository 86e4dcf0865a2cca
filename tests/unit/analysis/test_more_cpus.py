"""Cells that differ in the CPUs of each trial alone are set side by side, pair by pair, with an interval."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import SINGLE

from bench.analysis import build
from bench.analysis.more_cpus import MoreCpus, more_cpus
from bench.analysis.rows import Question
from bench.analysis.table import Table
from bench.experiments.tune import metrics
from bench.metrics import count, seconds, size
from bench.model import Arm, Interval, Run, Sample, Session, Spec
from bench.reports import sections
from bench.reports.sections import more_cpus as words

CPUS = count("cpus_of_a_piece", "CPUs/piece", means="CPUs each")
SEARCH, TRIAL = seconds("search_seconds"), seconds("trial_seconds")
MEMORY = size("memory_bytes", "B")
ARMS = (
    Arm(name="ray", help="", role="subject"),
    Arm(name="pool", help="", role="peer"),
    Arm(name="empty", help="", role="calls"),
)
LADDER = ((10, 1), (16, 1), (16, 2))


def a_run(cell: int, *, block: int, seconds: float, says_cpus: bool = True) -> Run:
    samples, cpus = LADDER[cell]
    spec = Spec(
        id=f"b{block}-c{cell}",
        session="made-up",
        experiment="search",
        cell=f"c{cell:02}",
        params={"samples": samples, "cpus_per_trial": cpus, "same": 1},
        seed=1,
        topology=SINGLE,
        block=block,
        warmups=0,
        samples=1,
        sample_seconds=1.0,
        deadline_seconds=60.0,
        guessed_seconds=10.0,
    )
    given = {SEARCH.name: seconds, TRIAL.name: seconds / samples, MEMORY.name: 1.0}
    given |= {CPUS.name: float(cpus)} if says_cpus else {}
    found = [Sample(metric=name, value=v, interval=Interval(0.0, 1.0), arm="ray") for name, v in given.items()]
    found.append(Sample(metric=SEARCH.name, value=seconds / 2, interval=Interval(0.0, 1.0), arm="pool"))
    return Run(spec=spec, status="ok", samples=tuple(found))


def some_runs(blocks: int, gain: float = 0.8, **how: bool) -> list[Run]:
    """The block's own speed is in all of its runs: pairs alone leave it out."""
    return [
        a_run(cell, block=block, seconds=(10.0, 16.0, 16.0 * gain * (1 + block / 1000))[cell] * block, **how)
        for block in range(1, blocks + 1)
        for cell in range(len(LADDER))
    ]


def a_session(runs: list[Run]) -> Session:
    return Session(
        id="made-up",
        created="2026-01-01T00:00:00+00:00",
        target="local",
        seed=1,
        profile="lab",
        command="",
        metrics={"search": (SEARCH, TRIAL, MEMORY, CPUS)},
        arms={"search": ARMS},
        specs=tuple(each.spec for each in runs),
    )


def found(runs: list[Run]) -> tuple[MoreCpus, ...]:
    known = {each.spec.id: each for each in runs}
    asked = Question(session=a_session(runs), runs=known, topologies=("single",), margin=0.02, table=Table(runs))
    return more_cpus(asked)


def test_tune_says_the_cpus_of_a_trial_in_the_metric_that_is_looked_for() -> None:
    assert metrics.CPUS_EACH.means == CPUS.means


def test_the_ratio_is_of_the_cells_that_differ_in_cpus_alone_and_of_each_block_by_itself() -> None:
    (step,) = found(some_runs(6))
    assert (step.fewer, step.more, step.params) == ("1 CPU", "2 CPUs", {"samples": 16})
    assert [(row.metric.name, row.arm) for row in step.rows] == [
        ("search_seconds", "ray"),
        ("search_seconds", "pool"),
        ("trial_seconds", "ray"),
    ]
    comparison = step.rows[0].comparison
    assert comparison is not None
    assert comparison.ratio is not None
    assert comparison.pairs == 6
    assert comparison.ratio.value == pytest.approx(0.8 * 1.0035, rel=1e-4)
    # Blocks differ sixfold in speed; pairs do not, by more than six thousandths.
    assert comparison.ratio.low == pytest.approx(0.8 * 1.001, rel=1e-6)
    assert comparison.ratio.high == pytest.approx(0.8 * 1.006, rel=1e-6)


def test_a_run_that_failed_is_no_pair_and_without_both_cells_nothing_is_said() -> None:
    runs = some_runs(6)
    (step,) = found([replace(each, status="invalid") if each.spec.id == "b2-c2" else each for each in runs])
    assert step.rows[0].comparison is not None
    assert step.rows[0].comparison.pairs == 5
    assert found([each for each in runs if each.spec.cell != "c02"]) == ()
    assert found(some_runs(6, says_cpus=False)) == ()


@pytest.mark.parametrize(
    ("blocks", "gain", "says"),
    [
        (6, 0.8, "it gains by them"),
        (6, 1.3, "it loses by them"),
        (6, 0.9965, "no difference is shown"),
        (1, 0.8, "1 pair, and it takes 6 to say whether it gains by them"),
        (5, 0.8, "5 pairs, and it takes 6 to say whether it gains by them"),
    ],
)
def test_the_sentence_says_what_the_interval_does(blocks: int, gain: float, says: str) -> None:
    (step,) = found(some_runs(blocks, gain))
    told, beside = words.notes(step)
    assert told.startswith("search of ray with 2 CPUs each is ")
    assert told.endswith(f"of that with 1 CPU: {says}")
    assert beside.endswith("with 2 CPUs each, fewer are at work at once")


def test_the_report_has_a_chapter_with_the_ratio_and_its_interval() -> None:
    runs = some_runs(6)
    chapters = sections.compose(build(a_session(runs), runs)).chapters
    (section,) = next(each for each in chapters if each.title == "search: what more CPUs each buy").sections
    assert section.title == "2 CPUs each instead of 1 CPU, on single, samples=16"
    assert section.table is not None
    rows = [[cell.words for cell in row.cells] for row in section.table.rows]
    assert [row[:3] for row in rows] == [["search", "ray", "s"], ["search", "pool", "s"], ["trial", "ray", "s"]]
    assert rows[0][-2:] == ["0.803 [0.801, 0.805]", "6"]


def with_turns(run: Run, speeds: list[float]) -> Run:
    """`run` in so many turns, each at the search's own seconds times one of `speeds`."""
    once = {sample.metric: sample for sample in run.samples if sample.arm == "ray"}
    turns = [
        replace(once[SEARCH.name], value=(once[SEARCH.name].value or 0.0) * speed, turn=turn)
        for turn, speed in enumerate(speeds, start=1)
    ]
    return replace(run, spec=replace(run.spec, samples=len(speeds)), samples=(once[CPUS.name], *turns))


def test_both_cells_discard_the_turns_that_the_slower_one_to_settle_needs() -> None:
    # With 1 CPU a trial settles after 3 turns; with 2 it goes slower from turn to turn, and never by much.
    courses = {"c01": [2.0, 1.6, 1.3, *[1.0] * 6], "c02": [0.96, 0.97, 0.98, *[1.0] * 6]}
    runs = [with_turns(run, courses.get(run.spec.cell, [1.0] * 9)) for run in some_runs(6, gain=1.0)]
    (step,) = build(a_session(runs), runs).more_cpus
    row = step.rows[0]
    assert row.comparison is not None
    assert row.comparison.ratio is not None
    # With the first three turns of one side alone it would be 0.99 of this.
    assert row.comparison.ratio.value == pytest.approx(1.0035, rel=1e-4)
    fewer, more = (row.sides[name].values for name in (step.fewer, step.more))
    assert [more[block] / fewer[block] for block in fewer] == pytest.approx([1 + b / 1000 for b in fewer])


def test_what_a_caveat_refuses_to_its_experiment_it_refuses_here_too() -> None:
    runs = some_runs(6)
    runs[0] = replace(runs[0], digests={"result": "one"})
    runs[1] = replace(runs[1], digests={"result": "another"})
    report = build(a_session(runs), runs)
    assert any(caveat.severity == "refuses" for caveat in report.caveats)
    (step,) = report.more_cpus
    assert [row.comparison.verdict for row in step.rows if row.comparison] == [None] * len(step.rows)
    told, _ = words.notes(step)
    assert "no verdict, for " in told
