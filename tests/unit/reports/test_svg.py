from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from bench.reports.drawing.axes import Axis
from bench.reports.drawing.svg import Canvas

VALUES = st.floats(min_value=1e-9, max_value=1e12)


@given(st.lists(VALUES, min_size=1, max_size=20), st.booleans())
def test_every_value_lies_inside_its_axis_in_order(values, is_log):
    axis = Axis.around(values, 100.0, 500.0, is_log=is_log)
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert 100 <= places[0] <= places[-1] <= 500


@given(st.lists(VALUES, min_size=2, max_size=20), st.booleans())
def test_an_axis_has_a_few_round_ticks_inside_it(values, is_log):
    axis = Axis.around(values, 100.0, 500.0, is_log=is_log)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 8
    assert all(axis.low * (1 - 1e-9) <= tick <= axis.high * (1 + 1e-9) for tick in ticks)


def test_ticks_of_a_known_axis():
    assert Axis(0.0, 10.0, 0, 1).ticks() == [0, 2, 4, 6, 8, 10]
    assert Axis(0.9, 1100.0, 0, 1, is_log=True).ticks() == [1, 10, 100, 1000]


def test_ticks_are_round_in_the_unit_that_is_written():
    assert [tick / 1024 for tick in Axis(0.0, 10_240.0, 0, 1).ticks(1024)] == [0, 2, 4, 6, 8, 10]
    assert [tick / 1024 for tick in Axis(900.0, 1.1e6, 0, 1, is_log=True).ticks(1024)] == [1, 10, 100, 1000]


def test_on_a_logarithmic_axis_equal_ratios_are_equal_distances():
    axis = Axis(0.5, 2.0, 0.0, 100.0, is_log=True)
    assert axis.at(1.0) == 50.0
    assert axis.at(0.01) == 0.0


def test_a_picture_is_well_formed_whatever_it_is_told():
    canvas = Canvas(height=50)
    canvas.words(1, 2, "<&\"'>")
    canvas.mark(1, 2, "triangle", colour='"><b>')
    canvas.dots([], colour="#000")
    picture = ET.fromstring(canvas.drawn('a"b', "What", "It <shows>."))  # noqa: S314, it is our own
    names = [element.tag.split("}")[1] for element in picture]
    assert names == ["title", "desc", "text", "path"]
    assert picture[1].text == "It <shows>."
