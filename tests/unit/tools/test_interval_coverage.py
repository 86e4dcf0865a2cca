"""The table of coverage in docs/statistics.md: that it is what the code gives, and that what it says is good."""

from __future__ import annotations

from repository import ROOT

from bench.cli import app
from tools.doc_parts import fill
from tools.interval_coverage import simulate

PAGE = ROOT / "docs/statistics.md"


def test_the_committed_table_is_what_the_code_gives() -> None:
    text = PAGE.read_text()
    assert "normal, 5 % | 40 |" in text
    assert fill(text, app) == text


def test_the_same_seed_gives_the_same_table() -> None:
    assert list(simulate(20)) == list(simulate(20))
    assert list(simulate(20)) != list(simulate(20, seed=2))
