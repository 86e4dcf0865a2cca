"""Several arms of a cell side by side in a report, in every format."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up

from bench import analysis
from bench.model import from_json
from bench.reports import FORMATS


def test_arms_are_ranked_in_each_cell_on_each_topology():
    report = analysis.build(*made_up(blocks=8))
    found = {(one.cell, one.topology): one.found for one in report.multiple_comparisons}
    assert set(found) == {(cell, topology) for cell in ("c01", "c02", "c03") for topology in ("single", "multi")}
    # The ceiling, the calls and the control do something else than the work.
    assert list(found["c02", "single"].mean_ranks) == ["numpy-one-by-one", "ray", "pool"]


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
    assert "they are not all the same (Friedman, 8 blocks, p below 0.001)" in words.replace("&lt;", "<")
    assert "mean ranks on multi: numpy-one-by-one 1.00, ray 2.00, pool 3.00" in words


def test_json_has_the_test_as_numbers():
    report = analysis.build(*made_up(blocks=8))
    assert from_json(FORMATS["json"](report), analysis.Report).multiple_comparisons == report.multiple_comparisons
