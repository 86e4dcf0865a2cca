"""Several arms or cells side by side in a report: which, by equal turns, and in every format."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import RATE, made_up

from bench import analysis
from bench.model import from_json
from bench.reports import FORMATS


def in_turns(runs, courses):
    """`runs` whose subject goes at the n-th speed of its cell's course in its n-th turn, and at 1000 in the end."""
    return [
        replace(
            run,
            samples=tuple(
                replace(s, value=(1000 + run.spec.block) * courses[run.spec.cell][s.turn - 1])
                if (s.metric, s.arm) == (RATE.name, "ray")
                else s
                for s in run.samples
            ),
        )
        for run in runs
    ]


def test_cells_and_arms_are_ranked_on_each_topology():
    report = analysis.build(*made_up(blocks=8))
    found = {(one.cell, one.topology): one.found for one in report.multiple_comparisons}
    assert set(found) == {(cell, topology) for cell in ("", "c01", "c02", "c03") for topology in ("single", "multi")}
    assert list(found["", "multi"].mean_ranks) == ["c03", "c02", "c01"]
    # The ceiling, the calls and the control do something else than the work.
    assert list(found["c02", "single"].mean_ranks) == ["numpy-one-by-one", "ray", "pool"]


def test_cells_that_settle_after_different_turns_are_ranked_by_the_same_turns():
    session, runs = made_up(blocks=8, samples=11)
    steady = [1.0] * 12
    # One is slow at first and its turns are discarded; of the others the same turns, which were their best, must not count.
    courses = {"c01": [0.5, 0.5, 0.5, 0.5, *steady], "c02": [1.04, 1.04, 1.04, 1.04, *steady], "c03": steady}
    report = analysis.build(session, in_turns(runs, courses))
    assert [cell.warmups for cell in report.cells] == [4, 1, 1]
    for one in report.multiple_comparisons:
        if not one.cell:
            assert set(one.found.mean_ranks.values()) == {2.0}
            assert not one.found.is_shown


def test_what_a_caveat_refuses_is_not_said_of_ranks_either():
    session, runs = made_up(blocks=8)
    runs = [replace(run, digests={"predictions": "other"}) if run.spec.cell == "c02" else run for run in runs]
    runs[0] = replace(runs[0], digests={"predictions": "third"})
    report = analysis.build(session, runs)
    assert any(caveat.severity == "refuses" for caveat in report.caveats)
    assert all(one.refused for one in report.multiple_comparisons)
    assert "(Friedman" not in FORMATS["text"](report)
    assert "no verdict on them, for " in FORMATS["text"](report)


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_every_format_says_the_ranks(name):
    words = " ".join(FORMATS[name](analysis.build(*made_up(blocks=8))).replace("\\", "").split())
    assert "inference: its cells beside each other" in words
    assert "they are not all the same (Friedman, 8 blocks, p below 0.001)" in words.replace("&lt;", "<")
    assert "mean ranks on multi: numpy-one-by-one 1.00, ray 2.00, pool 3.00" in words


def test_json_has_the_test_as_numbers():
    report = analysis.build(*made_up(blocks=8))
    assert from_json(FORMATS["json"](report), analysis.Report).multiple_comparisons == report.multiple_comparisons
