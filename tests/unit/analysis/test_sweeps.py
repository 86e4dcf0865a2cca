"""Sweeps and curves within a run: every point is compared by itself, and a curve is drawn and never summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from made_up import RATE, made_up

from bench import analysis
from bench.analysis.cells import CellReport
from bench.analysis.curves import MOST_STEPS
from bench.analysis.rows import MetricRow
from bench.model import Interval, Metric, NodeUsage, Run, Sample
from bench.reports import FORMATS
from bench.reports.sections.curves import BARS_WIDE, bars

GOODPUT = Metric(name="goodput_bytes_per_second", unit="B/s", better="higher", kind="rate", help="what arrived")
ACCURACY = Metric(name="accuracy_ratio", unit="1", better="higher", kind="ratio", axis="iterations")
OFFERED = Metric(name="offered", unit="calls/s", better="higher", kind="rate")
RESPONSE = Metric(name="response_time_p50_seconds", unit="s", better="lower", kind="time", load="offered")
COVERS = Interval(100.0, 101.0)


def a_sample(metric: Metric, value: float, *, arm: str = "ray", point: str = "", step: float | None = None) -> Sample:
    return Sample(
        metric=metric.name, unit=metric.unit, value=value, interval=COVERS, arm=arm, turn=2, point=point, step=step
    )


def swept(run: Run) -> Run:
    """With a sweep: on multi a tenth of single's at 64 KiB, and the same at 1 MiB; and what they used."""
    is_multi = run.spec.topology.nodes > 1
    values = {"64 KiB": 1e6 if is_multi else 1e7, "1 MiB": 1e8}
    samples = [
        a_sample(GOODPUT, value * (1 + run.spec.block / 1000), arm=arm, point=point)
        for point, value in values.items()
        for arm in ("ray", "pool")
    ]
    usage = [
        NodeUsage(
            node="head", arm="ray", turn=2, warmup=False, interval=COVERS, point=point, cpu_seconds=2.0, work=1000.0
        )
        for point in values
    ]
    return replace(run, samples=(*run.samples, *samples), usage=(*run.usage, *usage))


def loaded(run: Run, *, multi_share: float, overloaded: int = 0, calls_per_second: float = 100.0) -> Run:
    """With response times at one load, on multi at a share of single's; multi's first blocks were overloaded."""
    is_multi = run.spec.topology.nodes > 1
    point = "90 % poisson"
    response = a_sample(RESPONSE, 0.01 * (1 + run.spec.block / 1000), point=point)
    if is_multi and run.spec.block <= overloaded:
        response = replace(response, value=None, reason="overloaded: 900 calls were unanswered")
    offered = a_sample(OFFERED, calls_per_second * (multi_share if is_multi else 1.0), point=point)
    return replace(run, samples=(*run.samples, offered, response))


def drawn(run: Run, steps: int = 10) -> Run:
    curve = [a_sample(ACCURACY, step / steps + run.spec.block / 1000, step=step) for step in range(1, steps + 1)]
    return replace(run, samples=(*run.samples, *curve))


def a_cell(runs: Sequence[Run], *more: Metric) -> CellReport:
    session, _ = made_up(cells=1)
    session = replace(session, metrics={"inference": (*session.metrics["inference"], *more)})
    (cell,) = analysis.build(session, runs).cells
    return cell


def rows_at(cell: CellReport, point: str, metric: str) -> dict[str, MetricRow]:
    return {row.arm: row for row in cell.sweeps if (row.point, row.metric.name) == (point, metric)}


def test_each_point_of_a_sweep_is_compared_by_itself_arm_by_arm() -> None:
    _, runs = made_up(cells=1)
    cell = a_cell([swept(run) for run in runs], GOODPUT)
    small, large = (rows_at(cell, point, GOODPUT.name) for point in ("64 KiB", "1 MiB"))
    assert set(small) == set(large) == {"ray", "pool"}
    for rows, ratio, verdict in ((small, 0.1, "slower"), (large, 1.0, "equivalent")):
        for row in rows.values():
            assert row.comparison is not None
            assert row.comparison.ratio is not None
            assert abs(row.comparison.ratio.value - ratio) < 1e-9
            assert row.comparison.verdict == verdict
            assert row.comparison.adjustment is not None


def test_the_points_change_nothing_in_the_other_rows() -> None:
    _, runs = made_up(cells=1)
    plain, with_points = a_cell(runs), a_cell([swept(run) for run in runs], GOODPUT)
    assert [row.metric.name for row in with_points.rows] == [row.metric.name for row in plain.rows]
    assert [row.sides for row in with_points.rows] == [row.sides for row in plain.rows]
    assert plain.sweeps == ()


def test_what_a_unit_of_work_used_at_a_point_is_a_row_of_the_sweep() -> None:
    _, runs = made_up(cells=1)
    cell = a_cell([swept(run) for run in runs], GOODPUT)
    row = rows_at(cell, "1 MiB", "cpu_seconds_per_input")["ray"]
    assert {side.estimate and side.estimate.value for side in row.sides.values()} == {0.002}


def test_a_curve_has_the_median_and_the_band_of_its_invocations_and_is_no_row() -> None:
    _, runs = made_up(cells=1)
    cell = a_cell([drawn(run) for run in runs], ACCURACY)
    assert ACCURACY.name not in {row.metric.name for row in cell.rows}
    single, multi = sorted(cell.curves, key=lambda curve: curve.topology, reverse=True)
    assert (single.topology, multi.topology, single.steps) == ("single", "multi", tuple(range(1, 11)))
    assert (single.low[0], single.high[-1], set(single.n)) == (0.101, 1.006, {6})
    assert single.low[4] <= single.middle[4] <= single.high[4]


def test_a_long_curve_is_thinned_to_what_can_be_seen_with_both_its_ends() -> None:
    _, runs = made_up(cells=1)
    curve = a_cell([drawn(run, steps=1000) for run in runs], ACCURACY).curves[0]
    assert (len(curve.steps), curve.steps[0], curve.steps[-1]) == (MOST_STEPS, 1, 1000)


def test_a_curve_that_ends_early_leaves_the_rest_to_the_others() -> None:
    _, runs = made_up(cells=1)
    curves = a_cell([drawn(run, steps=10 if run.spec.block > 1 else 5) for run in runs], ACCURACY).curves
    assert curves[0].n == (6,) * 5 + (5,) * 5


def test_the_text_shows_a_table_a_sweep_and_bars_a_curve() -> None:
    session, runs = made_up(cells=1)
    session = replace(session, metrics={"inference": (*session.metrics["inference"], GOODPUT, ACCURACY)})
    text = FORMATS["text"](analysis.build(session, [drawn(swept(run)) for run in runs]))
    lines = text.splitlines()
    assert any("goodput, point by point: what arrived" in line for line in lines)
    (line,) = [line for line in lines if line.split()[:3] == ["64", "KiB", "ray"] and "MB/s" in line]
    assert line.split()[-1] == "slower"
    (line,) = [line for line in lines if line.split()[:2] == ["single", "ray"] and "▁" in line]
    assert line.split()[2] == "▁▂▃▃▄▅▆▆▇█"


def test_metrics_of_one_table_stand_side_by_side_and_a_point_that_lacks_one_is_no_less_a_row() -> None:
    session, runs = made_up(cells=1)
    took = Metric(name="took_seconds", unit="s", better="lower", kind="time", table="Tries")
    tries = Metric(name="times_tried", unit="times", better="lower", kind="count", table="Tries")
    session = replace(session, metrics={"inference": (*session.metrics["inference"], took, tries)})
    never = replace(a_sample(tries, 0, point="first"), value=None, reason="it never did")
    more = [
        a_sample(took, 2.5, point="first"),
        never,
        a_sample(took, 0.5, point="last"),
        a_sample(tries, 3, point="last"),
    ]
    text = FORMATS["text"](analysis.build(session, [replace(run, samples=(*run.samples, *more)) for run in runs]))
    rows = [line.split() for line in text.splitlines()]
    (head,) = [at for at, row in enumerate(rows) if row == ["point", "arm", "topology", "took,", "s", "times", "tried"]]
    shown = [row for row in rows[head + 1 : head + 6] if len(row) == 5]
    assert shown[0] == ["first", "ray", "single", "2.50", "-"]
    assert shown[-1] == ["last", "ray", "multi", "0.500", "3"]
    assert len(shown) == 4
    assert "took, point by point" not in text


def test_bars_go_from_the_least_to_the_greatest() -> None:
    assert bars([1.0, 1.0]) == "▁▁"
    assert bars([0.0, 7.0]) == "▁█"
    long = bars([float(value) for value in range(1000)])
    assert (len(long), long[0], long[-1]) == (BARS_WIDE, "▁", "█")


def test_a_headline_at_points_alone_is_said_to_be_missing() -> None:
    """The boards and the answer need one figure a run: an experiment that yields none has no headline."""
    _, runs = made_up(cells=1)
    there = [
        replace(run, samples=tuple(replace(s, point="x") if s.metric == RATE.name else s for s in run.samples))
        for run in runs
    ]
    headline = a_cell(there).headline
    assert headline is not None
    assert set(headline.sides["single"].missing.values()) == {"not measured"}


def test_response_times_at_unequal_loads_have_no_verdict_and_the_loads_are_said() -> None:
    _, runs = made_up(cells=1)
    for share, refused in ((1.0, False), (1.01, False), (0.8, True)):
        cell = a_cell([loaded(run, multi_share=share) for run in runs], OFFERED, RESPONSE)
        found = rows_at(cell, "90 % poisson", RESPONSE.name)["ray"].comparison
        assert found
        assert (found.refused, found.verdict) == (refused, None if refused else "equivalent")
        assert ("unequal loads (offered: single 100, multi 80)" in found.why) == refused


def test_overloaded_runs_are_counted_and_named() -> None:
    session, runs = made_up(cells=1, blocks=8)
    session = replace(session, metrics={"inference": (*session.metrics["inference"], OFFERED, RESPONSE)})
    for overloaded in (0, 2):
        report = analysis.build(session, [loaded(run, multi_share=1.0, overloaded=overloaded) for run in runs])
        told = [caveat.text for caveat in report.caveats if "overloaded" in caveat.text]
        assert len(told) == (overloaded > 0)
        assert all("90 % poisson on multi: 2 of 8 runs without response_time_p50_seconds" in text for text in told)
