"""The scaling card as pictures, drawn from a law whose numbers are known."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from made_up import MULTI, SINGLE, made_up

from bench import analysis
from bench.analysis.scaling_series import ScalingSeries
from bench.analysis.stats import scaling
from bench.metrics import seconds
from bench.model import Metric
from bench.reports import as_html
from bench.reports.drawing.picture import Picture
from bench.reports.sections import scaling as scaling_section

RATE = Metric(name="throughput_inputs_per_second", unit="inputs/s", better="higher", kind="rate")
STEPS = (1, 2, 3, 4, 6, 8, 12, 16)


def a_scaling_series(
    topology: str, *, contention: float, coherency: float, steps=STEPS, noise: float = 0.01
) -> ScalingSeries:
    draw = random.Random(topology)
    values = {
        n: {
            block: scaling.usl(n, rate=100.0, contention=contention, coherency=coherency) * draw.gauss(1, noise)
            for block in range(1, 7)
        }
        for n in steps
    }
    return ScalingSeries(
        experiment="inference",
        parameter="actors",
        params={"batch": 10},
        topology=topology,
        arm="ray",
        metric=RATE,
        card=scaling.card(values, cpus=8),
    )


def a_report(*scaling_series: ScalingSeries) -> analysis.Report:
    session, runs = made_up(cells=1, topologies=(SINGLE, MULTI))
    return replace(analysis.build(session, runs), scaling_series=scaling_series)


def drawn(*scaling_series: ScalingSeries) -> list[Picture]:
    return list(scaling_section.pictures(a_report(*scaling_series), scaling_series))


BOTH = (
    a_scaling_series("single", contention=0.05, coherency=0.005),
    a_scaling_series("multi", contention=0.1, coherency=0.02),
)


def test_the_curve_of_a_law_is_the_law_from_the_fewest_to_the_most_inside_its_band():
    card = BOTH[0].card
    curve = card.law.curve
    assert (curve[0].workers, round(curve[-1].workers, 9)) == (1, 16)
    assert all(point.low <= point.rate <= point.high for point in curve)
    for point in curve:
        true = scaling.usl(point.workers, rate=100.0, contention=0.05, coherency=0.005)
        assert point.rate == pytest.approx(true, rel=0.03)


def test_both_topologies_are_in_one_picture_with_marks_lines_and_bands():
    speed_ups, rates, serial = drawn(*BOTH)
    assert speed_ups.title == "Speed-up by throughput, batch=10, against actors"
    assert rates.title == "Throughput against actors, ray, batch=10"
    root = ET.fromstring(str(rates.svg))  # noqa: S314, our own
    kinds = [element.get("class") for element in root.iter()]
    assert kinds.count("mark") == 2 * len(STEPS) + 2  # and the legend
    assert (kinds.count("range"), kinds.count("l")) == (2, 2)
    assert "From 12 on there are more workers than CPUs." in rates.reads
    assert "USL" in rates.says
    assert serial.title.startswith("Serial fraction against actors")
    assert ET.fromstring(str(serial.svg)) is not None  # noqa: S314, our own


def test_what_is_said_of_the_serial_fraction_is_what_the_card_has():
    serial = drawn(*BOTH)[2]
    for series in BOTH:
        last = series.card.points[-1]
        assert f"to {last.serial_fraction:.3f} at {last.workers}" in serial.says


def test_with_too_few_points_there_are_marks_and_no_line():
    rates = drawn(a_scaling_series("single", contention=0.05, coherency=0.005, steps=(1, 2, 4)))[1]
    assert "no law" in rates.says
    assert 'class="range"' not in str(rates.svg)


def test_the_page_has_the_pictures_in_the_chapter_on_scaling():
    page = as_html.render(a_report(*BOTH))
    chapter = page[page.rindex("inference: how it grows with actors") :]
    assert "Serial fraction against actors" in chapter
    names = re.findall(r'<title id="([^"]+)"', page)
    assert len(set(names)) == len(names)


def test_a_report_without_scaling_series_has_none():
    assert list(scaling_section.pictures(a_report(), [])) == []


def test_the_most_that_the_cpus_can_do_is_drawn_and_said_where_it_was_measured():
    _, rates, serial = drawn(*(replace(series, ceiling=900.0) for series in BOTH))
    assert rates.says.count("inputs/s of 900 inputs/s, the most that the CPUs can do, along USL") == 2
    assert str(rates.svg).count('class="reach"') == 2
    assert "Dotted: the ceiling" in rates.reads
    without = drawn(*BOTH)[1]
    assert "Dotted" not in without.reads
    assert "most that the CPUs" not in without.says
    assert "reach" not in str(without.svg)
    assert "reach" not in str(serial.svg)


def test_the_speed_up_of_every_arm_is_drawn_beside_the_ideal():
    arms = ("ray-sync", "ray-async", "ddp-gloo", "sgd-1", "sgd-all")
    pictures = drawn(*(replace(series, arm=arm) for arm in arms for series in BOTH))
    speed_ups = [picture for picture in pictures if picture.title.startswith("Speed-up")]
    assert len(speed_ups) == 2  # four arms have dashes of their own
    assert len({picture.name for picture in pictures}) == len(pictures)
    for arm in arms:
        assert sum(f"{arm} on multi" in picture.says for picture in speed_ups) == 1
    lines = [element.get("class") for element in ET.fromstring(str(speed_ups[0].svg)).iter()]  # noqa: S314, our own
    assert lines.count("reach") == 1
    assert {"l", "l d1", "l d2", "l d3"} <= set(lines)
    last = BOTH[0].card.points[-1]
    assert f"ray-sync on single {last.speed_up:.2f} at 16" in speed_ups[0].says


def test_speed_ups_against_different_numbers_of_workers_are_in_pictures_of_their_own():
    from_two = a_scaling_series("multi", contention=0.1, coherency=0.02, steps=STEPS[1:])
    of_one, of_two = (each for each in drawn(BOTH[0], from_two) if each.title.startswith("Speed-up"))
    assert of_one.title == "Speed-up by throughput, batch=10, against actors"
    assert of_two.title == "Speed-up by throughput, batch=10, against actors, relative to 2"
    assert "ray on single" in of_one.says
    assert "ray on multi" not in of_one.says
    assert "ray on multi" in of_two.says
    assert "it is as with 1, " in of_one.reads
    assert "it is as with 2, " in of_two.reads
    for picture in (of_one, of_two):
        kinds = [element.get("class") for element in ET.fromstring(str(picture.svg)).iter()]  # noqa: S314, our own
        assert kinds.count("reach") == 1  # an ideal that begins where the speed-ups do


def test_beside_speed_ups_by_time_to_target_it_is_said_that_they_are_of_the_runs_that_reached_it():
    to_target = seconds("time_to_target_seconds", means="time to target")
    series = replace(BOTH[0], metric=to_target, missing=2)
    (picture,) = drawn(series, replace(BOTH[1], metric=to_target))
    said = "Of ray on single, speed-ups are of the runs that have a time to target: 2 runs have none and would take longer."
    assert said in picture.reads
    assert "Of ray on multi" not in picture.reads
