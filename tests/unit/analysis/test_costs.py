"""What a million units cost: by hand, with the interval turned round, in every format that has the medians."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up

from bench import analysis, reports
from bench.analysis.costs import _of_rate
from bench.analysis.stats.estimates import Estimate
from bench.errors import BadInput
from bench.options import price_of


@pytest.fixture(scope="module")
def priced():  # type: ignore[no-untyped-def]
    session, runs = made_up(cells=1, blocks=6)
    return analysis.build(replace(session, price_per_cpu_hour="0.04 EUR"), runs), runs


def test_a_million_units_cost_the_price_of_all_cpus_over_the_rate(priced) -> None:  # type: ignore[no-untyped-def]
    report, _ = priced
    assert [each.topology for each in report.costs] == ["single", "multi"]
    for cost, topology in zip(report.costs, report.topologies, strict=True):
        rate = report.cells[0].headline.sides[topology.name].estimate
        cpus = topology.nodes * topology.cpus_per_node
        assert cost.per_million.value == pytest.approx(0.04 * cpus * 1e6 / rate.value / 3600)
        assert cost.per_million.low == pytest.approx(0.04 * cpus * 1e6 / rate.high / 3600)
        assert cost.per_million.high == pytest.approx(0.04 * cpus * 1e6 / rate.low / 3600)
        assert (cost.per_million.n, cost.unit, cost.currency) == (rate.n, "input", "EUR")


def test_an_interval_that_reaches_zero_bounds_no_cost() -> None:
    found = _of_rate(Estimate(value=2.0, low=0.0, high=4.0, level=0.95, n=6), 8.0)
    assert (found.value, found.low, found.high, found.level) == (4.0, None, None, None)


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_reports_say_it_where_there_is_a_price_and_nothing_where_there_is_none(priced, format: str) -> None:  # type: ignore[no-untyped-def]
    report, runs = priced
    words = "What a million inputs cost, at 0.04 EUR a CPU hour"
    assert words in reports.render(format, report, runs)
    assert "million inputs" not in reports.render(format, analysis.build(*made_up(cells=1)), ())


def test_csv_has_the_same_numbers_unrounded(priced) -> None:  # type: ignore[no-untyped-def]
    report, runs = priced
    lines = [line for line in reports.render("csv", report, runs).splitlines() if ",cost," in line]
    assert len(lines) == 2
    for cost, line in zip(report.costs, lines, strict=True):
        assert f",{cost.topology}," in line
        assert repr(cost.per_million.value) in line
        assert ",EUR," in line


@pytest.mark.parametrize("text", ["0.04EUR", " 0.04  EUR ", "0.04 EUR"])
def test_a_price_is_an_amount_and_a_currency(text: str) -> None:
    assert price_of(text) == "0.04 EUR"


@pytest.mark.parametrize("text", ["", "EUR", "0.04", "0 EUR", "-1 EUR", "nan EUR", "1 EUR; rm"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="price"):
        price_of(text)
