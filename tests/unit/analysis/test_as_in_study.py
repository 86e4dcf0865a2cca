"""What a study published stands beside what was measured in the cell that repeats it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from default_sessions import default_session

from bench import analysis
from bench.experiments import NAMES, load
from bench.model import Run, Session
from bench.reports import as_text
from bench.reports.sections import as_in_study
from bench.studies import Study, StudyFigure, StudyRow, StudySetting, StudyTable

PICKS: tuple[Literal["fewest", "most"], ...] = ("fewest", "most")
STUDY = Study(
    title="two ways to send inputs",
    settings=(
        StudySetting(name="CPUs", published="12", ours="CPUs"),
        StudySetting(name="batch", published="10", param="batch"),
    ),
    tables=(
        StudyTable(
            title="Two repeats",
            figures=(
                StudyFigure(name="time", unit="s", metric="throughput_inputs_per_second", of="inputs"),
                StudyFigure(name="CPU", unit="%", metric="cpu_percent"),
                StudyFigure(name="cost", unit="EUR"),
            ),
            rows=(
                StudyRow(
                    what="by value",
                    params={"data_path": "by-value"},
                    topology="single",
                    published=((4.0, 6.0), ("below 30",), (7.0,)),
                ),
                StudyRow(
                    what="by carrier", params={"data_path": "by-dove"}, topology="single", published=((1.0,), (), ())
                ),
            ),
        ),
    ),
)


def studied() -> tuple[Session, list[Run]]:
    session, runs = default_session("inference")
    return replace(session, studies={"inference": STUDY}), [run for run in runs if run.spec.block == 1]


def test_our_repeats_are_in_the_unit_of_the_study_and_words_stay_words() -> None:
    session, runs = studied()
    (beside,) = analysis.build(session, runs).studies
    row, absent = beside.tables[0].rows
    (run,) = [each for each in runs if (each.spec.topology.name, each.spec.cell) == ("single", row.cell)]
    speeds = [
        sample.value
        for sample in run.samples
        if (sample.metric, sample.arm, sample.warmup) == ("throughput_inputs_per_second", "ray", False) and sample.value
    ]
    time, cpu, cost = row.figures
    assert list(time.ours) == [20_000 / speed for speed in speeds]
    assert (time.published_mean, len(cpu.ours), cpu.published_mean) == (5.0, 1, "below 30")
    assert (cost.ours, cost.published_mean) == ((), 7.0)
    assert (absent.cell, [each.ours for each in absent.figures]) == ("", [(), (), ()])
    assert beside.settings == (("CPUs", "12", "2"), ("batch", "10", "1,000"))


def test_the_most_of_points_is_not_known_where_one_has_no_value() -> None:
    row = StudyRow(what="trials", params={"data_path": "by-value"}, topology="single", published=((), ()))
    figures = tuple(StudyFigure(name=pick, unit="", metric="throughput_inputs_per_second", pick=pick) for pick in PICKS)
    session, runs = studied()
    tables = (StudyTable(title="Trials", figures=figures, rows=(row,)),)
    session = replace(session, studies={"inference": replace(STUDY, tables=tables)})

    def with_points(run: Run, *values: float | None) -> Run:
        (sample, *_) = [each for each in run.samples if each.metric == "throughput_inputs_per_second"]
        points = [
            replace(sample, point=f"trial {at}", value=value, reason=None if value else "stopped", warmup=False, turn=2)
            for at, value in enumerate(values)
        ]
        return replace(run, samples=(*run.samples, *points))

    for last, most in ((30.0, (30.0,)), (None, ())):
        (beside,) = analysis.build(session, [with_points(run, 10.0, 20.0, last) for run in runs]).studies
        fewest, greatest = beside.tables[0].rows[0].figures
        assert (fewest.ours, greatest.ours) == ((10.0,), most)


def test_the_table_has_a_line_a_repeat_and_one_of_the_mean_and_says_what_is_not_there() -> None:
    session, runs = studied()
    chapters = list(as_in_study.chapters(analysis.build(session, runs)))
    text = as_text.chapters(chapters)
    for words in ("time, s: study", "below 30", "not in this session on single: by carrier"):
        assert words in text
    (_, table) = chapters[0].sections
    assert table.table is not None
    repeats = [[cell.words for cell in row.cells][:4] for row in table.table.rows]
    assert repeats[:3] == [
        ["by value", "single", "1", "4"],
        ["by value", "single", "2", "6"],
        ["by value", "single", "mean", "5"],
    ]


def test_a_session_that_repeats_no_study_has_no_such_chapter() -> None:
    session, runs = default_session("inference")
    assert not list(as_in_study.chapters(analysis.build(session, runs)))


def test_a_value_that_needs_words_and_what_is_the_same_in_every_session_are_said() -> None:
    session, runs = studied()
    settings = (
        StudySetting(name="batch", published="10", param="batch", words={"1000": "a thousand"}),
        StudySetting(name="inputs", published="10", param="inputs", words={"1000": "a thousand"}),
        StudySetting(name="clock", published="from the start", always="from the first call"),
    )
    session = replace(session, studies={"inference": replace(STUDY, settings=settings)})
    (beside,) = analysis.build(session, runs).studies
    assert beside.settings == (
        ("batch", "10", "a thousand"),
        ("inputs", "10", "20,000"),
        ("clock", "from the start", "from the first call"),
    )


def test_the_studies_name_what_their_figures_depend_on() -> None:
    named = {
        name: {setting.param or setting.name: setting for setting in experiment.study.settings}
        for name in NAMES
        if (experiment := load(name)).study
    }
    assert {"dtype", "clock"} <= named["inference"].keys()
    assert "`unique`" in named["clustering"]
    target = named["parameter-server"]["target_accuracy"]
    assert target.words[str(load("parameter-server").params().target_accuracy)] == "the study's"
