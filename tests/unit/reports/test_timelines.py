"""Pictures of timelines: one for each topology, with every node, its phases and gaps; nothing where none was kept."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import MULTI, SINGLE, made_up
from made_up_timelines import with_timelines

from bench import analysis
from bench.analysis.timelines import MOST_RUNS, drawn, shown
from bench.model import Run
from bench.reports import FORMATS
from bench.reports.document import CellView
from bench.reports.drawing.picture import Picture
from bench.reports.sections import timelines
from bench.reports.sections.timelines import ceiling


def a_view(readings: int = 400, **shape: int) -> CellView:
    session, runs = made_up(**{"cells": 1, "blocks": 3, **shape})
    report = analysis.build(session, runs)
    wanted = {run.spec.id for run in drawn(report.cells, runs)}
    kept: Sequence[Run] = [with_timelines(run, readings=readings) if run.spec.id in wanted else run for run in runs]
    return CellView(cell=report.cells[0], report=report, runs=kept)


def medians(view: CellView) -> list[Picture]:
    """Those of the block in the middle, a topology each."""
    return [picture for picture in pictures(view) if picture.choice.endswith("median")]


def pictures(view: CellView) -> list[Picture]:
    return list(timelines.pictures(view))


def test_each_topology_has_a_picture_with_all_of_its_nodes() -> None:
    view = a_view()
    single, multi = medians(view)
    for picture, topology, nodes in ((single, SINGLE, ["head"]), (multi, MULTI, ["head", "worker-1"])):
        assert picture.title.endswith(f": {topology.name}")
        strong = re.findall(r'class="t strong"[^>]*>([^<]+)<', str(picture.svg))
        assert strong == nodes
    block = shown(view.cell, view.runs)[0].spec.block
    assert f"inference c01 in block {block}, the median one of 3 by throughput." in single.says
    assert re.search(r"CPU use was \d+ % on head and|CPU use was \d+ % on head, \d+ % on worker-1", multi.says)
    assert len(re.findall(r"[.!?](?: |$)", single.caption)) <= 2


def test_turns_are_shaded_and_named_and_a_pause_is_a_gap() -> None:
    single = str(pictures(a_view())[0].svg)
    assert "turn 1, ray, warm-up: " in single
    assert "turn 2, ray, counted: " in single
    assert "turn 2, numpy-all-cpus, counted: " in single
    lines = re.findall(r'class="fine[^"]*" d="([^"]+)"', single)
    assert len(lines) == 2 * 6  # before the pause and after it, of each of six quantities


def test_a_long_run_is_drawn_with_no_more_points_than_there_is_room_for_and_a_band_up_to_the_peaks() -> None:
    few, many = (pictures(a_view(readings, blocks=1))[0] for readings in (200, 5_000))
    assert 'class="range" d=' not in str(few.svg)
    assert 'class="range" d=' in str(many.svg)
    assert len(str(many.svg)) < 3 * len(str(few.svg))
    assert len(str(many.svg)) < 60_000


def test_without_timelines_there_is_no_picture_and_the_page_is_whole() -> None:
    session, runs = made_up(cells=1, blocks=3)
    report = analysis.build(session, runs)
    assert pictures(CellView(cell=report.cells[0], report=report, runs=runs)) == []
    assert "over time: single" not in FORMATS["html"](report, runs)
    assert "over time: single" in FORMATS["html"](report, a_view().runs)


def test_what_was_not_counted_says_so_in_place_of_a_line() -> None:
    view = a_view()
    for run in view.runs:
        for timeline in run.timelines:
            for name in ("received_bytes_per_second", "sent_bytes_per_second"):
                for column in (timeline.mean[name], timeline.peak[name]):
                    column[:] = type(column)("d", [math.nan] * len(column))
    single = str(pictures(view)[0].svg)
    assert single.count("not counted here") == 1
    (baseline,) = (float(y) for y in re.findall(r'<text x="[\d.]+" y="([\d.]+)"[^>]*>not counted here<', single))
    grid = [float(y) for y in re.findall(r'<path class="grid" d="M[\d.]+ ([\d.]+)L', single)]
    assert len(grid) == 3 * 4
    assert not [y for y in grid if baseline - 12 <= y <= baseline + 4]


def test_of_each_topology_one_block_is_shown_at_a_time_the_median_one_first() -> None:
    found = pictures(a_view())
    for group in (found[:3], found[3:]):
        assert len({picture.group for picture in group}) == 1
        assert next(picture.choice.partition(", ")[2] for picture in group) == "median"
        assert {picture.choice.partition(", ")[2] for picture in group} == {"median", "fastest", "slowest"}
    assert len({picture.name for picture in found}) == 6
    view = a_view()
    page = FORMATS["html"](view.report, view.runs)
    names = re.findall(r'<input type="radio" name="(timelines-[^"]+)"', page)
    assert (len(names), len(set(names))) == (6, 2)
    assert re.search(r"<label [^>]*>block \d, fastest</label>", page)


def test_all_blocks_of_a_topology_have_the_same_axes() -> None:
    view = a_view()
    one = view.runs[0].timelines[0]
    for column in (one.peak["sent_bytes_per_second"], one.mean["sent_bytes_per_second"]):
        column[5] = 9e9
    found = pictures(view)
    assert len(found) == 6
    assert all("network, GB/s" in str(picture.svg) for picture in found)


def test_a_lone_block_has_no_choice_and_no_rank() -> None:
    single, multi = pictures(a_view(blocks=1))
    assert (single.choice, multi.choice) == ("block 1", "block 1")
    assert "inference c01 in block 1." in single.says


def test_a_cell_that_the_page_has_no_room_for_says_where_its_timelines_are() -> None:
    session, runs = made_up(cells=2, blocks=1)
    report = analysis.build(session, runs)
    kept = [with_timelines(run) if run.spec.cell == "c01" else run for run in runs]
    first, other = (CellView(cell=cell, report=report, runs=kept) for cell in report.cells)
    assert list(timelines.left_out(first)) == []
    assert next(timelines.left_out(other)).endswith("it is in runs/*/files/timeline.json.gz")
    assert list(timelines.left_out(CellView(cell=report.cells[1], report=report, runs=runs))) == []
    assert pictures(other) == []


def test_many_timelines_keep_the_page_small() -> None:
    session, runs = made_up(cells=4, blocks=6)
    report = analysis.build(session, runs)
    assert len(drawn(report.cells, runs)) == len(runs) == MOST_RUNS
    page = FORMATS["html"](report, [with_timelines(run, readings=1_000) for run in runs])
    assert len(page.encode()) < 2_000_000


@given(st.floats(1e-6, 1e15))
def test_an_axis_ends_in_a_round_number_not_far_above_what_it_shows(value: float) -> None:
    assert value * 0.999 <= ceiling(value) <= 1.67 * value
    assert float(f"{ceiling(value):.2g}") == pytest.approx(ceiling(value))
