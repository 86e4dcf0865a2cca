"""Queries Prometheus, directly or through Grafana's data source proxy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import http_client
from bench.errors import TargetFailed

TIMEOUT_SECONDS = 10.0
SOURCE_UID = "raymeter-prometheus"


@dataclass(frozen=True)
class Series:
    """One series of an answer: its labels, and times with values."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float:
        """The newest value."""
        return self.points[-1][1]


@dataclass(frozen=True)
class Target:
    """A page that Prometheus scrapes."""

    labels: Mapping[str, str]
    is_up: bool
    error: str
    interval_seconds: float = 0.0  # between scrapes; 0: not reported


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that answers at `url`. Every call may fail with http_client.RequestException or TargetFailed."""

    url: str

    def query(self, expr: str, *, at: float | None = None) -> tuple[Series, ...]:
        """The value of `expr` now, or at a time."""
        answer = self._get("query", query=expr, **({} if at is None else {"time": at}))
        if answer["resultType"] == "scalar":
            return (Series({}, (_point(answer["result"]),)),)
        return tuple(Series(series["metric"], (_point(series["value"]),)) for series in answer["result"])

    def query_range(self, expr: str, *, begin: float, end: float, step_seconds: float) -> tuple[Series, ...]:
        """The values of `expr` from `begin` to `end`."""
        answer = self._get("query_range", query=expr, start=begin, end=end, step=step_seconds)
        return tuple(Series(series["metric"], tuple(map(_point, series["values"]))) for series in answer["result"])

    def recorded(self, selector: str, *, begin: float, end: float) -> tuple[Series, ...]:
        """The scraped points of `selector` after `begin` and until `end`, at their own times."""
        answer = self._get("query", query=f"{selector}[{round(1000 * (end - begin))}ms]", time=end)
        return tuple(Series(series["metric"], tuple(map(_point, series["values"]))) for series in answer["result"])

    def label_values(self, label: str, selector: str, *, begin: float, end: float) -> tuple[str, ...]:
        """The values that `label` had in the series of `selector`."""
        values = self._get(f"label/{label}/values", **{"match[]": selector, "start": begin, "end": end})
        return tuple(values)

    def metric_names(self, *, begin: float, end: float) -> frozenset[str]:
        """The names of all metrics that had a value."""
        return frozenset(self._get("label/__name__/values", start=begin, end=end))

    def targets(self) -> tuple[Target, ...]:
        """The scraped pages, with the result of their last scrape."""
        active = self._get("targets", state="active")["activeTargets"]
        return tuple(
            Target(
                labels=target["labels"],
                is_up=target["health"] == "up",
                error=target["lastError"],
                interval_seconds=duration_seconds(target.get("scrapeInterval", "")),
            )
            for target in active
        )

    def _get(self, path: str, **query: Any) -> Any:
        answer = http_client.get(f"{self.url.rstrip('/')}/api/v1/{path}", params=query, timeout_seconds=TIMEOUT_SECONDS)
        try:
            body = answer.json()
        except ValueError:
            body = {"error": f"HTTP {answer.status_code}"}
        if not isinstance(body, dict) or body.get("status") != "success":
            reason = body.get("error") or body.get("message") if isinstance(body, dict) else body
            raise TargetFailed(f"Prometheus at {self.url} refused {query.get('query', path)}: {reason}.")
        return body["data"]


@dataclass(frozen=True)
class Grafana:
    """A Grafana that answers at `url`."""

    url: str

    @property
    def source(self) -> Prometheus:
        """Prometheus through the data source of the boards."""
        return Prometheus(f"{self.url.rstrip('/')}/api/datasources/proxy/uid/{SOURCE_UID}")

    def boards(self) -> Mapping[str, Mapping[str, Any]]:
        """The provisioned boards by their uids."""
        entries = self._get("search?type=dash-db")
        return {entry["uid"]: self._get(f"dashboards/uid/{entry['uid']}")["dashboard"] for entry in entries}

    def _get(self, path: str) -> Any:
        answer = http_client.get(f"{self.url.rstrip('/')}/api/{path}", timeout_seconds=TIMEOUT_SECONDS)
        answer.raise_for_status()
        return answer.json()


def duration_seconds(text: str) -> float:
    """A duration as Prometheus writes it: 2s, 1m30s, 500ms."""
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    return sum(float(count) * units[unit] for count, unit in re.findall(r"(\d+)(ms|s|m|h)", text))


def _point(pair: Sequence[Any]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])
