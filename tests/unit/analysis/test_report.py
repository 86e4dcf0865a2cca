from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import METRICS, MULTI, RATE, SINGLE, a_facts, made_up

from bench import analysis
from bench.analysis import Report
from bench.model import Interval, Metric, Sample, from_json, to_json
from bench.reports import FORMATS


def a_report(change=None, **shape):
    session, runs = made_up(**shape)
    return analysis.build(session, change(runs) if change else runs)


def test_each_cell_says_by_its_title_what_makes_it_different():
    report = a_report()
    assert [cell.title for cell in report.cells] == ["batch=1", "batch=10", "batch=100"]
    assert report.common_params == {"inference": {"actors": 2, "image_edge": 28}}


def test_the_ratio_that_was_put_in_comes_out():
    found = a_report(multi=0.8, cells=1, blocks=12, noise=0.01).cells[0].headline.comparison
    assert found.ratio.low < 0.8 < found.ratio.high
    assert (found.verdict, found.pairs) == ("slower", 12)
    assert found.cross_check.value == pytest.approx(found.ratio.value, rel=0.01)


def test_topologies_that_do_equally_well_are_equivalent():
    assert a_report(multi=1.0, cells=1, blocks=12, noise=0.002).cells[0].headline.comparison.verdict == "equivalent"


def test_a_confounded_session_keeps_its_numbers_and_loses_its_verdicts():
    def change(runs):
        return [replace(r, facts=a_facts(MULTI, kernel="x")) if r.spec.topology.name == "multi" else r for r in runs]

    report = a_report(change, cells=1)
    rows = [row.comparison for row in report.cells[0].rows if row.comparison.ratio]
    assert rows
    assert all(row.refused and row.verdict is None for row in rows)
    assert "refused: kernel differs" in report.answer[1]


def test_a_spill_refuses_its_own_cell_only():
    def change(runs):
        return [
            replace(r, usage=tuple(replace(row, spilled_bytes=1) for row in r.usage)) if r.spec.cell == "c02" else r
            for r in runs
        ]

    assert [cell.headline.comparison.refused for cell in a_report(change).cells] == [False, True, False]


@pytest.mark.parametrize(("cells", "method"), [(1, "Holm, 1 comparison"), (3, "Holm, 3 comparisons")])
def test_headlines_are_corrected_for_how_many_they_are(cells, method):
    found = [cell.headline.comparison for cell in a_report(cells=cells).cells]
    assert {each.adjustment for each in found} == {method}
    assert all(each.p_adjusted == pytest.approx(min(1, cells * each.p)) for each in found)


def test_what_was_named_beforehand_is_corrected_by_holm_alone_and_said():
    session, runs = made_up(cells=7)
    undeclared, named = (
        analysis.build(replace(session, primary_cells=primary), runs)
        for primary in ((), ("inference c02", "inference c07"))
    )
    found = {cell.cell: cell.headline.comparison.adjustment for cell in named.cells}
    assert [name for name, how in found.items() if how == "Holm, 2 comparisons"] == ["c02", "c07"]
    assert all(how.startswith("Benjamini-Hochberg") for name, how in found.items() if name not in ("c02", "c07"))
    # Seven headlines cannot all be what was asked.
    assert all(c.headline.comparison.adjustment.startswith("Benjamini-Hochberg") for c in undeclared.cells)
    assert "inference c02, inference c07: named beforehand" in " ".join(FORMATS["text"](named).split())


def test_a_sixth_primary_comparison_is_an_error():
    session, _ = made_up(cells=7)
    cells = tuple(f"inference c{number:02}" for number in range(1, 7))
    assert replace(session, primary_cells=cells[:5]).primary_cells == cells[:5]
    with pytest.raises(ValueError, match="6 primary comparisons, and 5 are the most"):
        replace(session, primary_cells=cells)


def test_a_better_peer_is_said_before_anything_else():
    first, second = a_report(multi=0.8, cells=1).answer
    assert "numpy-one-by-one reaches 1.3 times the throughput" in first
    assert second.startswith("Multi beside single: throughput is 0.")
    assert second.endswith("(6 pairs): slower.")


def test_a_peer_that_is_better_on_one_topology_is_said_with_it():
    session, runs = made_up(cells=1)
    without = [
        run
        if run.spec.topology.name == "multi"
        else replace(run, samples=[sample for sample in run.samples if sample.arm != "numpy-one-by-one"])
        for run in runs
    ]
    assert analysis.build(session, without).answer[0].endswith("reaches 1.3 times the throughput on multi.")


def test_without_a_better_peer_the_second_sentence_is_about_the_ceiling():
    arms = tuple(arm for arm in made_up(blocks=1)[0].arms["inference"] if arm.role != "peer")
    first, second = a_report(arms=arms, cells=1).answer
    assert "Multi beside single" in first
    assert "of what the CPUs can do (numpy-all-cpus)" in second


@pytest.mark.parametrize(
    "shape", [{"cells": 0}, {"blocks": 1}, {"topologies": (SINGLE,)}, {"metrics": (RATE,)}, {"arms": ()}, {"cells": 3}]
)
def test_a_report_comes_back_from_json_as_it_went(shape):
    report = a_report(**shape)
    assert to_json(from_json(to_json(report), Report)) == to_json(report)


def test_a_session_of_which_nothing_ran_still_has_a_report():
    report = a_report(lambda runs: [])
    assert report.answer == ("There is no answer: no run of this session is usable.",)
    assert report.cells[0].headline.sides["multi"].missing[1] == "not run"


def test_runs_that_are_left_out_are_listed_with_their_reasons():
    report = a_report(lambda runs: [replace(runs[0], status="invalid", reasons=("spoilt",)), *runs[1:]], cells=1)
    assert [(each.status, each.reasons) for each in report.excluded] == [("invalid", ("spoilt",))]
    assert report.runs == {"invalid": 1, "ok": 11}
    assert report.cells[0].headline.comparison.pairs == 5


def test_one_topology_is_measured_and_not_compared():
    (cell,) = a_report(topologies=(SINGLE,), cells=1).cells
    assert cell.headline.comparison is None
    assert cell.headline.sides["single"].estimate.n == 6


def test_what_has_no_value_keeps_the_reason():
    row = next(row for row in a_report(cells=1).cells[0].rows if row.metric.name == "latency_p99_seconds")
    assert set(row.sides["single"].missing.values()) == {"p99 needs 1,000 calls"}


def test_the_report_says_how_it_was_done():
    report = a_report(cells=2)
    assert report.question.startswith("Does inference do better or worse on multi (2 nodes of 1 CPU)")
    assert (report.seed, report.blocks, report.planned, report.margin) == (7, 6, 24, 0.02)
    assert "seed 7" in report.randomised
    assert report.versions["ray"] == "2.60.0"
    assert report.command == "bench run inference --profile lab --seed 7"
    assert report.order_test is not None
    assert [row.metric for row in report.cells[0].rows] == list(METRICS)


def test_the_margin_is_the_users():
    session, runs = made_up(cells=1, multi=0.88, blocks=12, noise=0.005)
    assert analysis.build(session, runs).cells[0].headline.comparison.verdict == "slower"
    assert analysis.build(session, runs, margin=0.3).cells[0].headline.comparison.verdict == "equivalent"


def test_a_metric_that_nodes_alone_have_is_no_row_without_a_value():
    session, runs = made_up(cells=1)
    share = Metric(name="share_of_trials", unit="1", better="higher", kind="ratio")
    session = replace(session, metrics={"inference": (*session.metrics["inference"], share)})
    runs = [
        replace(
            run,
            samples=(
                *run.samples,
                Sample(metric=share.name, value=0.5, interval=Interval(1.0, 2.0), arm="ray", turn=2, node="head"),
            ),
        )
        for run in runs
    ]
    (cell,) = analysis.build(session, runs).cells
    assert share.name not in {row.metric.name for row in cell.rows}
    assert {(each.metric.name, each.node) for each in cell.node_metrics} == {(share.name, "head")}


def test_what_a_session_that_ended_early_left_out_is_said_and_is_no_gap() -> None:
    session, runs = made_up(blocks=8, cells=1)
    done = [run for run in runs if run.spec.block <= 6]
    found = analysis.build(replace(session, ended="the time was up", dropped=("blocks 9 to 10",)), done)
    assert (found.blocks, found.left_out_blocks, found.planned) == (6, 2, 16)
    assert (found.ended, found.dropped) == ("the time was up", ("blocks 9 to 10",))
    comparison = found.cells[0].headline and found.cells[0].headline.comparison
    assert comparison
    assert (comparison.pairs, dict(comparison.missing)) == (6, {})
    stopped = analysis.build(session, done).cells[0].headline
    assert stopped
    assert stopped.comparison
    assert set(stopped.comparison.missing) == {7, 8}


def on(topology, **changes):
    """Runs of a made-up session, those of `topology` with other facts."""
    session, runs = made_up(cells=1)
    facts = a_facts(topology, **changes)
    return session, [replace(run, facts=facts) if run.spec.topology.name == topology.name else run for run in runs]


def on_hosts(*boots):
    """Runs of a made-up session, the nodes of multi on machines that were booted so."""
    session, runs = on(MULTI)
    (node, *_) = a_facts(MULTI).nodes
    nodes = tuple(replace(node, node=f"worker-{number}", boot_id=boot) for number, boot in enumerate(boots))
    facts = replace(a_facts(MULTI), nodes=nodes, same_host=False)
    return session, [replace(run, facts=facts) if run.spec.topology.name == "multi" else run for run in runs]


def test_a_page_says_whether_several_nodes_are_several_machines():
    assert analysis.build(*made_up(cells=1)).stamps == ("emulated multi-node",)
    assert analysis.build(*made_up(cells=1, topologies=(SINGLE,))).stamps == ()
    assert analysis.build(*on_hosts("boot-1", "boot-2")).stamps == ("physical multi-node",)
    assert analysis.build(*on_hosts("boot-1", "boot-2", "boot-2")).stamps == ("3 nodes on 2 hosts",)


def test_a_topology_with_more_cpus_gets_no_verdict_and_who_insists_gets_a_stamp_with_it():
    session, runs = on(MULTI, cpus_granted=MULTI.cpus_per_node + 1)
    refused = analysis.build(session, runs)
    assert "unequal" not in refused.stamps
    assert {row.comparison.refused for cell in refused.cells for row in cell.rows if row.comparison} == {True}
    allowed = analysis.build(replace(session, allow_unequal=True), runs)
    assert allowed.stamps == ("emulated multi-node", "unequal")
    assert not any(row.comparison.refused for cell in allowed.cells for row in cell.rows if row.comparison)
    assert [caveat.text for caveat in allowed.caveats if "granted CPUs" in caveat.text]


def test_other_data_gets_no_verdict_whoever_insists():
    session, runs = made_up(cells=1)
    other = [
        replace(run, facts=replace(run.facts, data={"digits": "food"})) if run.spec.topology == MULTI else run
        for run in runs
    ]
    found = analysis.build(replace(session, allow_unequal=True), other)
    assert {row.comparison.refused for cell in found.cells for row in cell.rows if row.comparison} == {True}
    assert [
        caveat.text for caveat in found.caveats if caveat.severity == "refuses" and "checksum of digits" in caveat.text
    ]


def test_a_session_with_equal_facts_has_no_stamp_of_being_unequal():
    session, runs = made_up(cells=1)
    assert analysis.build(replace(session, allow_unequal=True), runs).stamps == ("emulated multi-node",)
