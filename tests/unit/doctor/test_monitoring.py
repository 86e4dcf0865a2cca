"""The doctor on monitoring: a page that answers late once is no fault, one that is not scraped at all is."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from bench.doctor import monitoring
from bench.prometheus import boards
from bench.prometheus.client import Series, Target
from bench.prometheus.scraping import Page, pages

PAGES = pages(("head", "worker-1"))
LATE = "context deadline exceeded"


@dataclass
class FakePrometheus:
    """Knows all pages, of which `late` missed the last scrape, and `silent` every one for a while."""

    late: tuple[Page, ...] = ()
    silent: tuple[Page, ...] = ()
    asked: list[str] = field(default_factory=list)

    def targets(self) -> tuple[Target, ...]:
        missed = (*self.late, *self.silent)
        return tuple(
            Target(labels(page), is_up=page not in missed, error=LATE if page in missed else "") for page in PAGES
        )

    def query(self, expr: str) -> tuple[Series, ...]:
        self.asked.append(expr)
        return tuple(Series(labels(page), ((0.0, 1.0),)) for page in PAGES if page not in self.silent)


def labels(page: Page) -> dict[str, str]:
    return {"job": page.job, "instance": page.instance, "endpoint": page.endpoint, "cluster": "made-up"}


def found(prometheus: FakePrometheus) -> list[tuple[str, str, str]]:
    findings = monitoring.targets(prometheus, PAGES)  # type: ignore[arg-type]  # a fake
    return [(finding.about, finding.level, finding.seen) for finding in findings]


ALL = ("pages", "good", f"all {len(PAGES)} are scraped")


def test_pages_that_are_scraped_are_one_line() -> None:
    assert found(FakePrometheus()) == [ALL]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_scrape_that_took_too_long_is_a_note_with_its_error(page: Page) -> None:
    prometheus = FakePrometheus(late=(page,))
    assert found(prometheus) == [(f"page {page}", "note", f"it missed the last scrape: {LATE}"), ALL]
    assert prometheus.asked == ["max_over_time(up[30s]) == 1"]


def test_a_page_that_was_not_scraped_for_a_while_is_a_fault() -> None:
    assert found(FakePrometheus(silent=PAGES[:1])) == [(f"page {PAGES[0]}", "bad", f"the last scrape failed: {LATE}")]


class PrometheusOfAShortRun:
    """Has data of every query, for 5 s in the midst of an hour."""

    def metric_names(self, *, begin: float, end: float) -> frozenset[str]:
        return frozenset()

    def label_values(self, label: str, selector: str, *, begin: float, end: float) -> tuple[str, ...]:
        return (label,)

    def query(self, expr: str, *, at: float) -> tuple[Series, ...]:
        return (Series({}, ((at, 1.0),)),)

    def query_range(self, expr: str, *, begin: float, end: float, step_seconds: float) -> tuple[Series, ...]:
        asked = (begin + step * step_seconds for step in range(int((end - begin) / step_seconds) + 1))
        seen = tuple((at, 1.0) for at in asked if 1801 <= at < 1806)
        return (Series({}, seen),) if seen else ()


def test_panels_of_a_run_of_5_s_are_not_empty() -> None:
    prometheus = PrometheusOfAShortRun()
    for board in boards.load().values():
        empty = monitoring.empty_panels(prometheus, board, chosen={}, begin=0.0, end=3600.0)  # type: ignore[arg-type]
        assert list(empty) == []
