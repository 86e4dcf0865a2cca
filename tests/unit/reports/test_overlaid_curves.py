"""Curves of several cells in one picture: a line a level, every arm to be chosen, none left out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from made_up import MULTI, RATE, SINGLE
from made_up_changes import session_of

from bench import analysis
from bench.metrics import size
from bench.model import Arm, Interval, Sample
from bench.reports import as_html
from bench.reports.document import CellView
from bench.reports.drawing.colours import LEVELS
from bench.reports.sections import curves, overlaid

ACCURACY = size("accuracy_by_seconds", "%", better="higher", axis="seconds", means="accuracy by seconds")
ARMS = ("ray", "ray-async", "sgd-1", "sgd-all", "ddp-gloo")


def a_report(levels=(1, 2, 5), arms=ARMS):
    session, runs = session_of(
        [({"workers": level, "same": 1}, {"single": 10.0, "multi": 10.0}) for level in levels],
        blocks=2,
        metrics=(RATE, ACCURACY),
    )
    session = replace(
        session,
        arms={"work": tuple(Arm(name=name, help="", role="peer" if at else "subject") for at, name in enumerate(arms))},
    )
    runs = [
        replace(
            run,
            samples=(
                *(sample for sample in run.samples if sample.metric == RATE.name),
                *(
                    Sample(metric=ACCURACY.name, value=step * 10.0, step=step, interval=Interval(0.0, 1.0), arm=arm)
                    for arm in arms
                    for step in (1.0, 2.0, 3.0)
                ),
            ),
        )
        for run in runs
    ]
    return analysis.build(session, runs)


def test_there_is_a_picture_an_arm_with_a_line_a_level_and_topology():
    report = a_report()
    pictures = list(overlaid.pictures(report, report.contrasts))
    assert [picture.choice for picture in pictures] == list(ARMS)
    assert len({picture.group for picture in pictures}) == 1
    assert len({picture.name for picture in pictures}) == len(pictures)
    for picture in pictures:
        assert picture.title == f"Accuracy by seconds, by workers: {picture.choice}"
        kinds = [each.get("class") for each in ET.fromstring(str(picture.svg)).iter()]  # noqa: S314, our own
        assert (kinds.count("l"), kinds.count("l d1")) == (3 + 1, 3 + 1)  # and the legend of topologies
        for level in (1, 2, 5):
            for topology in (SINGLE, MULTI):
                assert f"{level} on {topology.name} to 30 %" in picture.says


def test_the_page_lets_the_reader_choose_an_arm_without_a_script():
    page = as_html.render(a_report())
    assert '<div class="choice"' in page
    groups: dict[str, list[str]] = {}
    for name, checked in re.findall(r'<input type="radio" name="([^"]+)" id="[^"]+"( checked)?>', page):
        groups.setdefault(name, []).append(checked)
    assert groups
    assert all(each.count(" checked") == 1 for each in groups.values())
    (overlay,) = [name for name in groups if name.startswith("overlaid")]
    assert len(groups[overlay]) == len(ARMS)
    assert "<script" not in page


def test_more_levels_than_colours_are_in_more_pictures():
    levels = tuple(range(1, len(LEVELS) + 3))
    report = a_report(levels, arms=ARMS[:1])
    pictures = list(overlaid.pictures(report, report.contrasts))
    assert len(pictures) == 2
    for level in levels:
        assert sum(f" {level} on single" in f" {picture.says.removeprefix('Workers ')}" for picture in pictures) == 1


@pytest.mark.parametrize("arms", [ARMS[:4], ARMS])
def test_no_arm_of_a_cell_is_left_out_of_its_own_curves(arms):
    report = a_report(arms=arms)
    view = CellView(cell=report.cells[0], report=report)
    pictures = list(curves.pictures(view, view.cell.curves))
    for arm in arms:
        assert sum(f"{arm} on single" in picture.says for picture in pictures) == 1
    assert len(pictures) == 1 + (len(arms) > 4)
    assert len({picture.name for picture in pictures}) == len(pictures)
    assert {picture.choice for picture in pictures} == (
        {""} if len(arms) == 4 else {"ray, ray-async, sgd-1, sgd-all", "ddp-gloo"}
    )
