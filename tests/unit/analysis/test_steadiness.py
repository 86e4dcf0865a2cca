"""Labels of flat, sloped and stepped series, how often noise is called one of them, and what a report makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up import ARMS, RATE, made_up

from bench import analysis
from bench.analysis.steadiness import ALARMS, judged, steadiness
from bench.analysis.table import Table
from bench.reports import as_text


def label(values, level=0.95):
    return judged(values.tolist(), arm="ray", topology="single", level=level, margin=0.02).label


SHAPES = {
    "flat": (np.zeros, "steady"),
    "rising": (lambda n: np.linspace(0, 0.3, n), "drifting"),
    "falling": (lambda n: np.linspace(0, -0.3, n), "drifting"),
    "a step up": (lambda n: np.where(np.arange(n) < n // 2, 0, 0.2), "not steady"),
    "a late step down": (lambda n: np.where(np.arange(n) < 3 * n // 4, 0, -0.3), "not steady"),
    "a slope too small to matter": (lambda n: np.linspace(0, 0.02, n), "steady"),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("samples", [8, 20])
def test_flat_sloped_and_stepped_series_get_their_labels(name, samples):
    shape, expected = SHAPES[name]
    noise = np.random.default_rng(4).normal(0, 0.02, (12, samples))
    assert label(shape(samples) + noise) == expected


@pytest.mark.parametrize(("invocations", "samples"), [(5, 20), (20, 3), (1, 100)])
def test_few_samples_or_few_invocations_are_never_called_anything(invocations, samples):
    values = np.tile(np.linspace(0, 1, samples), (invocations, 1))
    assert label(values) == "too few samples to tell"


def shaped(runs, shape, *, topologies=("single", "multi"), arm="ray"):
    """`runs` with the rates of `arm` multiplied turn by turn; turns count from 1."""
    return [
        replace(
            run,
            samples=tuple(
                replace(s, value=s.value * shape(s.turn)) if (s.metric, s.arm) == (RATE.name, arm) else s
                for s in run.samples
            ),
        )
        if run.spec.topology.name in topologies
        else run
        for run in runs
    ]


def a_report(shape, **changes):
    session, runs = made_up(cells=1, blocks=8, samples=8, arms=ARMS[:2])
    return analysis.build(session, shaped(runs, shape, **changes))


def test_a_steady_cell_is_said_to_be_steady():
    report = a_report(lambda _: 1.0)
    assert {(each.arm, each.topology, each.label) for each in report.cells[0].steadiness} == {
        (arm, topology, "steady") for arm in ("ray", "empty-calls") for topology in ("single", "multi")
    }
    assert "inside the invocations: steady" in as_text.render(report)


def test_a_step_on_one_topology_takes_the_verdict_away_and_the_values_stay():
    report = a_report(lambda turn: 1.0 if turn <= 5 else 0.7, topologies=("multi",))
    row = report.cells[0].headline
    assert row.comparison.refused
    assert row.comparison.verdict is None
    assert row.comparison.why.startswith("not steady inside the invocations: ray on multi (-3")
    assert row.comparison.ratio is not None
    assert len(row.sides["multi"].values) == 8


def test_a_drift_weakens_the_verdict_and_leaves_it():
    report = a_report(lambda turn: 1 + 0.015 * turn)
    assert report.cells[0].headline.comparison.verdict == "slower"
    caveats = [caveat for caveat in report.caveats if caveat.text.startswith("drifting")]
    assert [caveat.severity for caveat in caveats] == ["weakens"]


def test_a_step_of_another_arm_is_a_note():
    report = a_report(lambda turn: 1.0 if turn <= 5 else 0.7, arm="empty-calls")
    assert report.cells[0].headline.comparison.verdict == "slower"
    assert [d.severity for d in report.caveats if d.text.startswith("not steady")] == ["note"]


def test_all_that_is_tested_in_a_cell_shares_its_alarms():
    _, runs = made_up(cells=1, blocks=8, samples=8, arms=ARMS[:3])
    samples = {
        name: Table(runs).of(run for run in runs if run.spec.topology.name == name) for name in ("single", "multi")
    }
    found = steadiness(samples, RATE, [arm.name for arm in ARMS[:3]], margin=0.02)
    assert len(found) == 6
    assert {each.shift.level for each in found if each.shift} == {1 - ALARMS / 6}
