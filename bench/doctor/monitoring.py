"""Checks that Prometheus scrapes every page, and that every panel of Grafana has data."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench import http_client
from bench.doctor.finding import Finding
from bench.errors import TargetFailed
from bench.prometheus import boards as committed
from bench.prometheus.board_queries import OF_PROMETHEUS, Query, fill, queries, variables
from bench.prometheus.client import Grafana, Prometheus
from bench.prometheus.scraping import SCRAPE_SECONDS, Page

RANGE_SECONDS = 3600.0
MOST_POINTS = 11_000  # of a series, in one answer of Prometheus
MISSED_SECONDS = 30.0  # a busy page may miss scrapes for so long, as in the alert rule LostNode


@dataclass(frozen=True, kw_only=True)
class Empty:
    """A query of a panel without data, and which of its metrics Prometheus does not know."""

    query: Query
    unknown: tuple[str, ...]
    expr: str  # with the variables filled in

    def __str__(self) -> str:
        metrics = ", ".join(self.unknown or self.query.metrics)
        problem = "Prometheus has no metric" if self.unknown else "no data of"
        return f"{self.query}: {problem} {metrics}"


def findings(
    *,
    prometheus_url: str | None,
    grafana_url: str | None,
    pages: Sequence[Page],
    shortest_sample_seconds: float,
    chosen: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """All findings on the monitoring of a cluster with these `pages`; none if it has no monitoring."""
    try:
        if prometheus_url:
            yield from targets(Prometheus(prometheus_url), pages)
            yield from intervals(Prometheus(prometheus_url), pages, shortest_sample_seconds)
        if grafana_url:
            yield from boards(Grafana(grafana_url), chosen or {})
    except (http_client.RequestException, TargetFailed) as error:
        yield Finding("monitoring", "bad", f"Prometheus or Grafana does not answer: {error}", "Run `bench up` again.")


def targets(prometheus: Prometheus, pages: Sequence[Page]) -> Iterator[Finding]:
    """Check that Prometheus scrapes every page, and did so in the last seconds: one scrape that takes too long is no fault."""
    known_targets = {_page_key(target.labels): target for target in prometheus.targets()}
    answered = prometheus.query(f"max_over_time(up[{MISSED_SECONDS:.0f}s]) == 1")
    scraped = {_page_key(series.labels) for series in answered}
    missing = 0
    for page in pages:
        key = (page.job, page.instance, page.endpoint)
        target = known_targets.get(key)
        if target is None:
            missing += 1
            yield Finding(f"page {page}", "bad", "Prometheus does not know it", _NOT_FOUND)
        elif not target.is_up and key in scraped:
            yield Finding(f"page {page}", "note", f"it missed the last scrape: {target.error}", _MISSED)
        elif not target.is_up:
            missing += 1
            yield Finding(f"page {page}", "bad", f"the last scrape failed: {target.error}", _NOT_SCRAPED)
    if not missing:
        yield Finding("pages", "good", f"all {len(pages)} are scraped")


def _page_key(labels: Mapping[str, str]) -> tuple[str | None, ...]:
    """The labels that tell a page from the others of its cluster."""
    return tuple(labels.get(name) for name in ("job", "instance", "endpoint"))


def intervals(prometheus: Prometheus, pages: Sequence[Page], shortest_sample_seconds: float) -> Iterator[Finding]:
    """Check that the scrape interval is what raymeter expects, and no longer than the shortest samples."""
    jobs = {page.job for page in pages}
    slowest = max(
        (target.interval_seconds for target in prometheus.targets() if target.labels.get("job") in jobs), default=0.0
    )
    if slowest > SCRAPE_SECONDS:
        observed = f"a page is scraped every {slowest:g} s, and checks and boards expect {SCRAPE_SECONDS:g} s"
        fix = f"Set scrape_interval to {SCRAPE_SECONDS:g}s in Prometheus' configuration, or run `bench up` again."
        yield Finding("scrape interval", "bad", observed, fix)
    elif slowest > shortest_sample_seconds:
        observed = f"{slowest:g} s, and the shortest samples of a profile last {shortest_sample_seconds:g} s"
        fix = "Boards may miss such samples; the record and its reports have every one."
        yield Finding("scrape interval", "note", observed, fix)
    elif slowest:
        yield Finding("scrape interval", "good", f"{slowest:g} s, no longer than the shortest samples")


_NOT_FOUND = "Check that the pod declares the port and has the label ray.io/is-ray-node, or run `bench up` again."
_MISSED = f"It was scraped in the last {MISSED_SECONDS:.0f} s. A page of a busy machine answers late now and then."
_NOT_SCRAPED = "Check that the node runs, and that the NetworkPolicy admits Prometheus."


def boards(grafana: Grafana, chosen: Mapping[str, str]) -> Iterator[Finding]:
    """Check that every board exists and every panel has data."""
    provisioned = grafana.boards()
    for name in committed.NAMES:
        if committed.uid(name) not in provisioned:
            yield Finding(f"board {name}", "bad", "Grafana does not have it", "Run `bench up` again.")
    end = time.time()
    prometheus = grafana.source
    if not prometheus.label_values("run", "bench_run_status", begin=end - RANGE_SECONDS, end=end):
        yield Finding("panels", "note", "no run in the last hour, so there is no data", "Run `bench run` once.")
        return
    checked = 0
    bad = 0
    for board in provisioned.values():
        checked += sum(not query.may_be_empty for query in queries(board))
        for empty in empty_panels(prometheus, board, chosen=chosen, begin=end - RANGE_SECONDS, end=end):
            bad += 1
            yield Finding(f"panel {empty.query}", "bad" if empty.unknown else "note", str(empty), _EMPTY)
    if not bad:
        yield Finding(
            "panels", "good", f"all {checked} queries of {len(provisioned)} boards that must have data have data"
        )


_EMPTY = "Check that its page is scraped. What cannot be counted here stays empty."


def empty_panels(
    prometheus: Prometheus,
    board: Mapping[str, object],
    *,
    chosen: Mapping[str, str],
    begin: float,
    end: float,
) -> Iterator[Empty]:
    """The queries of a board without data between `begin` and `end`, of panels that have data in every session.

    Its variables are `chosen`, or what Grafana would take.
    """

    def label_values(label: str, selector: str) -> tuple[str, ...]:
        return prometheus.label_values(label, selector, begin=begin, end=end)

    known = prometheus.metric_names(begin=begin, end=end) | OF_PROMETHEUS
    values = variables(board, label_values, chosen)
    for query in queries(board):
        if query.may_be_empty:
            continue
        expr = fill(query.expr, values, range_seconds=end - begin, scrape_seconds=SCRAPE_SECONDS)
        if not _has_data(prometheus, query, expr, begin=begin, end=end):
            unknown = tuple(name for name in query.metrics if name not in known)
            yield Empty(query=query, unknown=unknown, expr=expr)


def _has_data(prometheus: Prometheus, query: Query, expr: str, *, begin: float, end: float) -> bool:
    if query.is_instant:
        return bool(prometheus.query(expr, at=end))
    step_seconds = max(SCRAPE_SECONDS, (end - begin) / MOST_POINTS)
    return bool(prometheus.query_range(expr, begin=begin, end=end, step_seconds=step_seconds))
