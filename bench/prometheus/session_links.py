"""Makes links to the boards of Grafana for the sessions that Prometheus has."""

from __future__ import annotations

import time

from bench import http_client
from bench.errors import TargetFailed
from bench.prometheus import boards
from bench.prometheus.client import Prometheus, Series
from bench.prometheus.run_view import SETTLE_SECONDS

MEMORY_SECONDS = 30 * 86400.0  # Prometheus keeps less
MARGIN_SECONDS = 5.0  # before the begin of a session
MOST_SESSIONS = 20  # in one link, the newest ones


def following(grafana_url: str, session: str, experiment: str) -> str:
    """The link to a session from now on, while it is running."""
    begin = time.time() - MARGIN_SECONDS
    return boards.link(grafana_url, boards.LIVE, session, experiment=experiment, begin=begin, end=None)


def newest(prometheus_url: str) -> str:
    """The newest session that Prometheus has; empty if it has none, or does not answer."""
    now = time.time()
    try:
        sessions = Prometheus(prometheus_url).label_values(
            "session", "bench_run_status", begin=now - MEMORY_SECONDS, end=now
        )
    except (http_client.RequestException, TargetFailed):
        return ""
    return max(sessions, default="")


def find(prometheus_url: str, grafana_url: str, session: str, *, is_running: bool) -> str:
    """The link to a session over its whole time; empty if Prometheus does not have it, or does not answer."""
    try:
        begun = _times(Prometheus(prometheus_url), "begun", f'session="{session}"')
        ended = _times(Prometheus(prometheus_url), "ended", f'session="{session}"')
    except (http_client.RequestException, TargetFailed):
        return ""
    if not begun:
        return ""
    end = max(series.last for series in (*begun, *ended)) + SETTLE_SECONDS
    return boards.link(
        grafana_url,
        boards.LIVE if is_running else boards.HOME,
        session,
        experiment=max(begun, key=lambda series: series.last).labels["experiment"],
        begin=min(series.last for series in begun) - MARGIN_SECONDS,
        end=None if is_running else end,
    )


def side_by_side(prometheus_url: str, grafana_url: str) -> str:
    """The link to all sessions of the experiment that was measured last, the oldest first, until now.

    Empty if there are fewer than two, or Prometheus does not answer.
    """
    try:
        begun = _times(Prometheus(prometheus_url), "begun")
    except (http_client.RequestException, TargetFailed):
        return ""
    experiment = max(begun, key=lambda series: series.last).labels["experiment"] if begun else ""
    first: dict[str, float] = {}
    for series in begun:
        if series.labels["experiment"] == experiment:
            session = series.labels["session"]
            first[session] = min(first.get(session, series.last), series.last)
    sessions = sorted(first, key=first.__getitem__)[-MOST_SESSIONS:]
    if len(sessions) < 2:
        return ""
    begin = first[sessions[0]] - MARGIN_SECONDS
    return boards.link(grafana_url, boards.SIDE_BY_SIDE, *sessions, experiment=experiment, begin=begin, end=None)


def _times(prometheus: Prometheus, moment: str, matchers: str = "") -> tuple[Series, ...]:
    """When each run of the sessions that match began or ended."""
    selector = f"bench_run_{moment}_timestamp_seconds{{{matchers}}}"
    return prometheus.query(f"last_over_time({selector}[{MEMORY_SECONDS:.0f}s])")
