"""The table of coverage in docs/statistics.md: that it is what the code gives, and that what it says is good."""

from __future__ import annotations

import pytest
from repository import ROOT

from bench.cli import app
from tools.doc_parts import fill
from tools.interval_coverage import SIZES, simulate

PAGE = ROOT / "docs/statistics.md"


def test_the_committed_table_is_what_the_code_gives() -> None:
    text = PAGE.read_text()
    assert "normal, 5 % | 40 |" in text
    assert fill(text, app) == text


def test_the_ratios_interval_holds_the_true_value_as_often_as_it_promises() -> None:
    # 95 % or more by theory, where noise is symmetric; 400 data sets miss it by up to 2.5 % in 99 of 100 cases
    found = [each for each in simulate(400, seed=11) if each.interval.startswith("Hodges")]
    assert [each.n for each in found] == [*SIZES, *SIZES]
    assert min(each.covered for each in found) >= 0.925


def test_an_interval_narrows_with_the_root_of_n() -> None:
    widths = {(each.interval, each.n): each.width for each in simulate(200) if each.noise == "normal, 5 %"}
    for interval in {name for name, _ in widths}:
        assert widths[interval, 10] / widths[interval, 40] == pytest.approx(2, rel=0.2)


def test_the_same_seed_gives_the_same_table() -> None:
    assert list(simulate(20)) == list(simulate(20))
    assert list(simulate(20)) != list(simulate(20, seed=2))
