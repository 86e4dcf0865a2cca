"""A picture of what was done says the most that could be: a cell with a ceiling has no picture without it."""

from __future__ import annotations

from dataclasses import replace

from made_up import ARMS, RATE, made_up

from bench import analysis
from bench.model import Run
from bench.reports import as_html
from bench.reports.document import CellView
from bench.reports.drawing.picture import Picture
from bench.reports.sections import invocations


def drawn(factor: float, **shape: object) -> Picture:
    """The picture of every invocation, where the ceiling is `factor` times what it is made up to be (9 times the subject)."""
    session, runs = made_up(cells=1, blocks=8, **shape)

    def changed(run: Run) -> Run:
        samples = tuple(
            replace(s, value=s.value * factor) if (s.metric, s.arm) == (RATE.name, "numpy-all-cpus") and s.value else s
            for s in run.samples
        )
        return replace(run, samples=samples)

    report = analysis.build(session, [changed(run) for run in runs])
    (picture,) = invocations.pictures(CellView(cell=report.cells[0], report=report))
    return picture


def test_a_ceiling_far_above_is_named_at_the_edge_and_one_that_is_near_is_drawn_where_it_is():
    far, near = drawn(1.0), drawn(0.15)
    for picture in (far, near):
        assert picture.says.count("numpy-all-cpus") == 2
        assert "The most that the CPUs can do, dotted: " in picture.says
        assert str(picture.svg).count('class="reach"') == 2
    assert str(far.svg).count("↑ numpy-all-cpus") == 2
    assert "↑" not in str(near.svg)


def test_of_two_ceilings_the_one_that_did_best_is_named():
    arms = tuple(replace(arm, role="ceiling") if arm.name in ("numpy-one-by-one", "pool") else arm for arm in ARMS)
    session, runs = made_up(cells=1, arms=arms)
    cell = analysis.build(session, runs).cells[0]
    assert [(row.topology, row.arm.name) for row in cell.ceilings] == [
        ("single", "numpy-all-cpus"),
        ("multi", "numpy-all-cpus"),
    ]


def test_where_no_ceiling_was_measured_nothing_is_said_of_one():
    session, runs = made_up(cells=1, arms=tuple(arm for arm in ARMS if arm.role != "ceiling"))
    report = analysis.build(session, runs)
    (picture,) = invocations.pictures(CellView(cell=report.cells[0], report=report))
    assert "dotted" not in picture.says
    assert "reach" not in str(picture.svg)


def test_every_cell_with_a_ceiling_has_it_on_the_page():
    session, runs = made_up(cells=3, blocks=8)
    assert as_html.render(analysis.build(session, runs)).count("The most that the CPUs can do, dotted: ") >= 3
