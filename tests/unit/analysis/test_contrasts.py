"""Cells that differ in a parameter are held against each other block by block, on each topology."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import RATE, SINGLE, made_up
from made_up_changes import STARTUP, session_of
from scipy.stats import wilcoxon

from bench import analysis
from bench import params as parameters
from bench.analysis.contrasts import Contrast, Effect, pairs, planned
from bench.errors import BadInput
from bench.experiments import NAMES, load
from bench.experiments.tune import metrics as tune_metrics
from bench.model import Session
from bench.planning import contrasted

RATES = st.floats(0.1, 1e4)
BOTH = {"single": 10.0, "multi": 10.0}


def cell(single=10.0, multi=10.0, **params):
    return params, {"single": single, "multi": multi}


def found(*cells, **how) -> tuple[Contrast, ...]:
    return analysis.build(*session_of(cells, **how)).contrasts


def headline(contrast: Contrast) -> Effect:
    effect = contrast.headline
    assert effect is not None
    return effect


def factor(contrast: Contrast, topology: str) -> float:
    comparison = headline(contrast).rows[topology].comparison
    assert comparison is not None
    assert comparison.ratio is not None
    return comparison.ratio.value


def interaction(contrast: Contrast) -> float:
    both = headline(contrast).interaction
    assert both is not None
    assert both.ratio is not None
    return both.ratio.value


def changes(*cells, contrast="") -> list[tuple[tuple[str, ...], str, str]]:
    session, _ = session_of(cells, blocks=1, contrast=contrast)
    return [(each.parameters, each.baseline, each.candidate) for each in planned(session, "work")]


def test_known_factors_are_found_on_each_topology_and_beside_each_other():
    (contrast,) = found(cell(10, 8, batch=1), cell(98, 96, batch=10), noise=0.02, blocks=12)
    for topology, true in (("single", 9.8), ("multi", 12.0)):
        comparison = headline(contrast).rows[topology].comparison
        assert comparison.ratio.low <= true <= comparison.ratio.high
        assert comparison.ratio.high / comparison.ratio.low < 1.1  # though blocks differ fourfold in speed
        assert comparison.verdict == "faster"
    both = headline(contrast).interaction
    assert both.ratio.low <= 12 / 9.8 <= both.ratio.high
    assert both.verdict == "faster"
    assert (both.baseline, both.candidate) == ("single", "multi")


def test_a_factor_and_its_p_are_those_of_scipy_on_the_pairs_of_the_blocks():
    (contrast,) = found(cell(batch=1), cell(20, 20, batch=10), noise=0.05)
    row = headline(contrast).rows["multi"]
    one, other = (np.array(list(row.sides[name].values.values())) for name in contrast.cells)
    logs = np.log(other / one)
    walsh = [(a + b) / 2 for i, a in enumerate(logs) for b in logs[i:]]
    assert factor(contrast, "multi") == pytest.approx(math.exp(float(np.median(walsh))))
    assert row.comparison.p == pytest.approx(wilcoxon(logs).pvalue)
    assert row.comparison.pairs == 8


@given(single=RATES, multi=RATES, other=RATES, another=RATES)
@settings(max_examples=15, deadline=None)
def test_swapped_sides_invert_the_factor_and_the_interaction(single, multi, other, another):
    one, two = cell(single, multi, batch="a"), cell(other, another, batch="b")
    (forth,), (back,) = found(one, two, blocks=2), found(two, one, blocks=2)
    assert factor(forth, "single") == pytest.approx(1 / factor(back, "single"))
    assert interaction(forth) == pytest.approx(1 / interaction(back))


@given(rate=RATES, times=st.floats(0.01, 100))
@settings(max_examples=15, deadline=None)
def test_cells_that_do_the_same_have_the_factor_1_and_equal_factors_the_interaction_1(rate, times):
    (same,) = found(cell(rate, rate, batch=1), cell(rate, rate, batch=2), blocks=2)
    assert (factor(same, "single"), factor(same, "multi")) == pytest.approx((1, 1))
    (scaled,) = found(cell(rate, 3 * rate, batch=1), cell(times * rate, times * 3 * rate, batch=2), blocks=2)
    assert factor(scaled, "single") == pytest.approx(times)
    assert interaction(scaled) == pytest.approx(1)


def test_each_level_stands_beside_the_lowest_and_words_beside_the_first():
    assert changes(cell(batch=100), cell(batch=1), cell(batch=10)) == [
        (("batch",), "c02", "c03"),
        (("batch",), "c02", "c01"),
    ]
    assert changes(cell(path="by-value"), cell(path="a")) == [(("path",), "c01", "c02")]


def test_every_varied_parameter_is_contrasted_where_all_others_are_equal():
    grid = [cell(actors=actors, batch=batch, same=1) for actors in (1, 10) for batch in (1, 10)]
    assert changes(*grid) == [
        (("actors",), "c01", "c03"),
        (("actors",), "c02", "c04"),
        (("batch",), "c01", "c02"),
        (("batch",), "c03", "c04"),
    ]
    (first, *_) = planned(session_of(grid, blocks=1)[0], "work")
    assert (first.params, first.before, first.after) == ({"batch": 1}, {"actors": 1}, {"actors": 10})


def test_what_was_changed_at_once_is_said_to_be_inseparable():
    ((names, baseline, candidate),) = changes(cell(actors=1, batch=1), cell(actors=10, batch=10))
    assert (names, baseline, candidate) == (("actors", "batch"), "c01", "c02")
    session, runs = session_of([cell(actors=1, batch=1), cell(80, 80, actors=10, batch=10)])
    report = analysis.build(session, runs)
    assert report.contrasts[0].at_once == "actors and batch were changed at once and cannot be told apart"
    assert report.answer[0].startswith(
        "Actors and batch were changed at once and cannot be told apart: with actors=10, batch=10 instead of actors=1, batch=1,"
    )


def test_a_cell_that_shares_no_change_stands_beside_the_one_that_differs_in_least():
    cells = [cell(actors=1, batch=b, peers="all") for b in (1, 10)] + [cell(actors=10, batch=10, peers="few")]
    assert changes(*cells) == [(("batch",), "c01", "c02"), (("actors", "peers"), "c02", "c03")]


@given(st.lists(st.tuples(*[st.integers(1, 3)] * 3), min_size=2, max_size=8, unique=True))
@settings(max_examples=40, deadline=None)
def test_no_cell_is_left_out(values):
    cells = [cell(a=a, b=b, c=c) for a, b, c in values]
    those = changes(*cells)
    assert {name for _, *two in those for name in two} == {f"c{number:02d}" for number in range(1, len(cells) + 1)}
    assert len(those) == len(set(those))


def test_named_parameters_are_contrasted_alone_and_joined_ones_at_once():
    grid = [cell(actors=actors, batch=batch) for actors in (1, 10) for batch in (1, 10)]
    assert {names for names, *_ in changes(*grid, contrast="batch")} == {("batch",)}
    assert changes(*grid, contrast="actors + batch") == [(("actors", "batch"), "c01", "c04")]
    assert [names for names, *_ in changes(*grid, contrast="batch,actors+batch")] == [
        ("batch",),
        ("batch",),
        ("actors", "batch"),
    ]


@pytest.mark.parametrize(
    ("contrast", "what", "hint"),
    [
        ("bacth", "there is no parameter bacth", "Did you mean batch? Varied are: actors, batch."),
        ("same", "same is the same in all cells", "Varied are: actors, batch."),
        ("actors+batch", "no two cells differ in actors and batch alone", "Varied are: actors, batch."),
    ],
)
def test_a_name_that_nothing_can_be_contrasted_by_is_refused_with_a_hint(contrast, what, hint):
    cells = [cell(actors=1, batch=1, same=1), cell(actors=1, batch=10, same=1), cell(actors=10, batch=1, same=1)]
    session, _ = session_of(cells, blocks=1, contrast=contrast)
    with pytest.raises(BadInput) as refused:
        contrasted.check(session)
    assert refused.value.what == f"--contrast {contrast}: {what}."
    assert refused.value.hint == hint


def test_a_session_without_varied_parameters_has_no_contrast():
    assert found(cell(batch=1), blocks=1) == ()
    assert pairs({"c01": {"batch": 1}}, ("batch",)) == []


def test_peers_stand_beside_their_own_headline_and_the_subject_also_in_its_times():
    (contrast,) = found(cell(batch=1), cell(20, 20, batch=10))
    assert [(each.metric.name, each.arm, each.headline) for each in contrast.effects] == [
        (RATE.name, "ray", True),
        (RATE.name, "pool", False),
        ("startup_seconds", "ray", False),
    ]
    verdicts = [each.rows["single"].comparison.verdict for each in contrast.effects]
    assert verdicts == ["faster", "equivalent", "faster"]


def test_a_run_that_failed_is_no_pair_on_its_topology_nor_of_the_interaction():
    session, runs = session_of([cell(batch=1), cell(20, 20, batch=10)])
    runs[0] = replace(runs[0], status="invalid", reasons=("a worker died",))
    (contrast,) = analysis.build(session, runs).contrasts
    effect = headline(contrast)
    assert [row.comparison.pairs for row in effect.rows.values()] == [7, 8]
    assert effect.interaction.pairs == 7
    assert effect.interaction.missing == {1: "single: c01: invalid: a worker died"}


def test_both_cells_discard_the_turns_that_the_slower_one_to_settle_needs():
    courses = {"c01": [0.5, 0.6, 0.8, *[1.0] * 6], "c02": [1.04, 1.03, 1.02, *[1.0] * 6]}
    session, runs = session_of([cell(batch=1), cell(batch=10)])

    def in_turns(run):
        first = run.samples[0]
        turns = [
            replace(first, value=first.value * speed, turn=turn)
            for turn, speed in enumerate(courses[run.spec.cell], start=1)
        ]
        return replace(run, spec=replace(run.spec, samples=9), samples=tuple(turns))

    runs = [in_turns(run) for run in runs]
    session = replace(session, specs=tuple(run.spec for run in runs))
    (contrast,) = analysis.build(session, runs).contrasts
    assert factor(contrast, "single") == pytest.approx(1.0)
    assert factor(contrast, "multi") == pytest.approx(1.0)


def verdicts(session: Session, runs) -> set[str | None]:
    return {each.verdict for one in analysis.build(session, runs).contrasts for each in one.effects[0].comparisons}


def test_what_a_caveat_refuses_to_a_cell_it_refuses_to_its_contrasts():
    session, runs = session_of([cell(batch=1), cell(20, 20, batch=10)])
    usage = {"digests": {"result": "one"}}
    runs[0], runs[1] = replace(runs[0], **usage), replace(runs[1], digests={"result": "another"})
    report = analysis.build(session, runs)
    assert any(caveat.severity == "refuses" for caveat in report.caveats)
    assert verdicts(session, runs) == {None}
    assert all(each.refused for each in report.contrasts[0].effects[0].comparisons)


def test_p_values_of_few_headlines_are_corrected_by_holm_and_of_many_by_benjamini_and_hochberg():
    (contrast,) = found(cell(batch=1), cell(20, 20, batch=10))
    ways = {each.adjustment for each in headline(contrast).comparisons}
    assert ways == {"Holm, 3 comparisons"}
    assert {each.adjustment for effect in contrast.effects[1:] for each in effect.comparisons} == {
        "Benjamini-Hochberg, 6 comparisons"
    }
    many = found(*(cell(batch, batch, batch=batch) for batch in (1, 2, 3)))
    assert headline(many[0]).rows["single"].comparison.adjustment == "Benjamini-Hochberg, 18 comparisons"


def test_a_verdict_that_the_number_of_comparisons_leaves_open_is_a_caveat():
    cells = [cell(10, 8, batch=1), cell(98, 96, batch=10)]
    few = analysis.build(*session_of(cells, blocks=6, noise=0.01))
    (text,) = [caveat.text for caveat in few.caveats if "hange of batch" in caveat.text]
    assert "hange of batch 1 -> 10: one of several comparisons; corrected for that, p is 0.0938 (Holm, 3" in text
    enough = analysis.build(*session_of(cells, blocks=8, noise=0.01))
    assert not [caveat for caveat in enough.caveats if "hange of batch" in caveat.text]


def test_on_one_topology_there_is_a_factor_and_no_interaction():
    (contrast,) = found(cell(batch=1), cell(20, batch=10), topologies=(SINGLE,))
    assert headline(contrast).interaction is None
    assert factor(contrast, "single") == pytest.approx(2.0)


def test_the_answer_begins_with_what_was_varied():
    report = analysis.build(*session_of([cell(10, 8, batch=1), cell(98, 96, batch=10)], noise=0.01))
    assert report.answer[0].startswith("With batch=10 instead of 1, throughput is 9.8")
    assert "(both faster): 1.22" in report.answer[0]
    assert report.answer[0].endswith("; multi beside single: slower in both cells.")
    grid = [cell(actors * batch, actors * batch, actors=actors, batch=batch) for actors in (1, 2) for batch in (1, 5)]
    said = analysis.build(*session_of(grid)).answer[0]
    assert said.startswith(
        "Throughput by what was varied: with actors 2 times as high on single and 2 on multi (faster);"
        " with batch 5 times as high on single and 5 on multi (faster)"
    )


def test_of_several_levels_the_answer_names_the_best() -> None:
    levels = [cell(rate, rate, workers=workers) for workers, rate in ((1, 10), (2, 18), (4, 24), (8, 16))]
    said = analysis.build(*session_of(levels)).answer[0]
    assert said.startswith(
        "With workers=2 to 8 instead of 1, throughput is 1.6 to 2.4 times as high on single and 1.6 to 2.4 on multi (faster),"
        " at best 2.40 on multi with workers=4; multi beside single: equivalent in all 4 cells."
    )
    few = analysis.build(*session_of(levels, blocks=5)).answer[0]
    assert "at best" not in few


def test_below_six_pairs_there_is_a_factor_and_no_verdict():
    report = analysis.build(*session_of([cell(batch=1), cell(20, 20, batch=10)], blocks=5))
    assert "2" in report.answer[0]
    assert "(no verdict): 5 pairs, and a verdict needs 6" in report.answer[0]


def test_nothing_is_said_to_stand_alone_where_there_are_several_cells():
    session, runs = session_of([cell(batch=1), cell(20, 20, batch=10)], topologies=(SINGLE,))
    runs = [run for run in runs if run.spec.cell == "c01"]
    for report in (analysis.build(session, runs), analysis.build(*session_of([cell(batch=1)]))):
        assert "no other cell" not in " ".join(report.answer)
        assert "nothing stands beside" not in " ".join(report.answer)


def test_the_cpus_of_a_trial_need_no_meaning_to_be_contrasted():
    assert tune_metrics.CPUS_EACH.means == ""


def disturbed(runs, blocks):
    """A hypervisor took half of the machine in these blocks."""
    return [
        replace(run, usage=tuple(replace(row, watched_seconds=1.0, steal_seconds=1.0) for row in run.usage))
        if run.spec.block in blocks
        else run
        for run in runs
    ]


def test_on_a_noisy_host_every_contrast_is_undecided_and_without_blocks_it_has_no_pair():
    session, runs = made_up(cells=2, blocks=12)
    calm = analysis.build(session, runs).contrasts[0]
    assert {each.verdict for each in headline(calm).comparisons} >= {"faster"}
    noisy = analysis.build(session, disturbed(runs, range(2, 13)))
    assert {each.verdict for effect in noisy.contrasts[0].effects for each in effect.comparisons} == {"undecided"}
    assert all("noisy host" in each.why for each in headline(noisy.contrasts[0]).comparisons)
    nothing = analysis.build(session, disturbed(runs, range(1, 13)))
    assert {each.pairs for each in headline(nothing.contrasts[0]).comparisons} == {0}
    assert nothing.answer[0].startswith("Multi beside single: undecided, noisy host")


def of_other_work(*, amounts):
    """1.6 times as many samples take 1.6 times as long in all, at 0.625 of the rate of the work."""
    cells = [cell(10, 10, samples=10), cell(6.25, 6.25, samples=16)]
    session, runs = session_of(cells, metrics=(replace(STARTUP, is_total=True), RATE))
    return analysis.build(replace(session, amounts=amounts), runs)


def test_more_work_that_takes_longer_is_not_called_slower_and_the_work_is_said():
    as_work = of_other_work(amounts={"work": ("samples",)})
    total, rate = (
        next(each for each in as_work.contrasts[0].effects if (each.metric.name, each.arm) == (name, "ray"))
        for name in (STARTUP.name, RATE.name)
    )
    assert [each.comparison.verdict for each in total.rows.values()] == ["differs", "differs"]
    assert [each.comparison.verdict for each in rate.rows.values()] == ["slower", "slower"]  # a rate is by the work
    assert factor(as_work.contrasts[0], "single") == pytest.approx(1.6)
    assert "(both differ), for 1.60 times the samples; multi beside single" in as_work.answer[0]
    assert not [word for word in ("slower", "faster") if word in as_work.answer[0].partition(";")[0]]
    assert "(both slower); multi beside single" in of_other_work(amounts={}).answer[0]


def test_of_several_amounts_of_work_none_is_called_the_best():
    cells = [cell(10 / n, 10 / n, samples=n) for n in (1, 2, 4)]
    session, runs = session_of(cells, metrics=(replace(STARTUP, is_total=True), RATE))
    said = analysis.build(replace(session, amounts={"work": ("samples",)}), runs).answer[0]
    assert "(differs), for 2 times the samples or 4 times the samples; multi beside single" in said
    assert "at best" not in said


def test_the_experiments_mark_what_is_an_amount_of_their_work():
    marked = {name: parameters.amounts_of_work(load(name).params) for name in NAMES}
    assert marked["tune"] == ("trials", "iteration_samples")
    assert (marked["inference"], marked["clustering"]) == (("inputs",), ("jobs",))
    totals = {name: [metric.name for metric in load(name).metrics if metric.is_total] for name in NAMES}
    assert totals["tune"] == ["search_seconds"]
    assert totals["inference"] == ["end_to_end_seconds"]


def of_other_jobs(single=1.0, multi=1.0):
    """Jobs of ten times the points, a tenth as many of them a second; the start-up takes ten times as long."""
    session, runs = session_of([cell(10, 10, points=1), cell(single, multi, points=10)])
    return analysis.build(replace(session, changed_units={"work": {"points": "job"}}), runs)


def test_where_a_unit_of_work_is_another_one_no_factor_is_called_faster_or_slower() -> None:
    report = of_other_jobs()
    (contrast,) = report.contrasts
    assert contrast.other_units == "each job is different work"
    found = {(each.metric.name, each.arm): each.rows["multi"].comparison.verdict for each in contrast.effects}
    assert found == {(RATE.name, "ray"): "differs", (RATE.name, "pool"): "equivalent", (STARTUP.name, "ray"): "differs"}
    assert factor(contrast, "multi") == pytest.approx(0.1)
    said = report.answer[0].partition("; multi beside single")[0]
    assert said.endswith("(both differ), and each job is different work")
    assert not [word for word in ("slower", "faster") if word in said]
    assert "times as much on multi as on single" in of_other_jobs(1.0, 2.0).answer[0]


def test_of_several_other_units_none_is_called_the_best() -> None:
    session, runs = session_of([cell(10 / n, 10 / n, points=n) for n in (1, 2, 4)])
    said = analysis.build(replace(session, changed_units={"work": {"points": "job"}}), runs).answer[0]
    assert "(differs), and each job is different work; multi beside single" in said
    assert "at best" not in said


def test_a_change_that_leaves_the_unit_of_work_alone_keeps_its_verdict_beside_one_that_does_not() -> None:
    cells = [cell(10 * batch / n, 10 * batch / n, points=n, batch=batch) for n in (1, 10) for batch in (1, 2)]
    session, runs = session_of(cells)
    report = analysis.build(replace(session, changed_units={"work": {"points": "job"}}), runs)
    found = {each.parameters: headline(each).rows["single"].comparison.verdict for each in report.contrasts}
    assert found == {("points",): "differs", ("batch",): "faster"}


def test_the_experiments_mark_what_changes_a_unit_of_their_work() -> None:
    marked = {name: parameters.changed_units(load(name).params) for name in NAMES}
    job = dict.fromkeys(("points", "dimensions", "clusters", "iterations"), "job")
    assert marked["clustering"] == {"job": "job", "job_ms": "job", **job}
    assert marked["clustering-kernels"] == job
    assert marked["parameter-server"] == {"model": "sample"}
    assert set(marked["tune"]) == {"max_iterations", "target_accuracy", "judged_by", "hidden_below"}
    assert marked["inference"] == {}
