"""Asks Prometheus, by itself or through Grafana's proxy for its data source, which answers in the same way."""

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
    interval_seconds: float = 0.0  # from scrape to scrape; 0: it does not say


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that answers at `url`. Every call may fail with http_client.RequestException or TargetFailed."""

    url: str

    def query(self, expr: str, *, at: float | None = None) -> tuple[Series, ...]:
        """What `expr` is now, or was at a time."""
        found = self._get("query", query=expr, **({} if at is None else {"time": at}))
        if found["resultType"] == "scalar":
            return (Series({}, (_point(found["result"]),)),)
        return tuple(Series(each["metric"], (_point(each["value"]),)) for each in found["result"])

    def query_range(self, expr: str, *, begin: float, end: float, step_seconds: float) -> tuple[Series, ...]:
        """What `expr` was from `begin` to `end`."""
        found = self._get("query_range", query=expr, start=begin, end=end, step=step_seconds)
        return tuple(Series(each["metric"], tuple(map(_point, each["values"]))) for each in found["result"])

    def recorded(self, selector: str, *, begin: float, end: float) -> tuple[Series, ...]:
        """What was scraped of `selector` after `begin` and until `end`, each point at its own moment."""
        found = self._get("query", query=f"{selector}[{round(1000 * (end - begin))}ms]", time=end)
        return tuple(Series(each["metric"], tuple(map(_point, each["values"]))) for each in found["result"])

    def label_values(self, label: str, selector: str, *, begin: float, end: float) -> tuple[str, ...]:
        """The values that `label` had in the series of `selector`."""
        found = self._get(f"label/{label}/values", **{"match[]": selector, "start": begin, "end": end})
        return tuple(found)

    def metric_names(self, *, begin: float, end: float) -> frozenset[str]:
        """All metrics that had a value."""
        return frozenset(self._get("label/__name__/values", start=begin, end=end))

    def targets(self) -> tuple[Target, ...]:
        """The pages that are scraped, and how the last scrape of each went."""
        found = self._get("targets", state="active")["activeTargets"]
        return tuple(
            Target(
                labels=each["labels"],
                is_up=each["health"] == "up",
                error=each["lastError"],
                interval_seconds=duration_seconds(each.get("scrapeInterval", "")),
            )
            for each in found
        )

    def _get(self, path: str, **query: Any) -> Any:
        answer = http_client.get(f"{self.url.rstrip('/')}/api/v1/{path}", params=query, timeout_seconds=TIMEOUT_SECONDS)
        try:
            body = answer.json()
        except ValueError:
            body = {"error": f"HTTP {answer.status_code}"}
        if not isinstance(body, dict) or body.get("status") != "success":
            said = body.get("error") or body.get("message") if isinstance(body, dict) else body
            raise TargetFailed(f"Prometheus at {self.url} refuses {query.get('query', path)}: {said}.")
        return body["data"]


@dataclass(frozen=True)
class Grafana:
    """A Grafana that answers at `url`."""

    url: str

    @property
    def source(self) -> Prometheus:
        """Prometheus, as the boards ask it."""
        return Prometheus(f"{self.url.rstrip('/')}/api/datasources/proxy/uid/{SOURCE_UID}")

    def boards(self) -> Mapping[str, Mapping[str, Any]]:
        """The provisioned boards by their uids."""
        found = self._get("search?type=dash-db")
        return {each["uid"]: self._get(f"dashboards/uid/{each['uid']}")["dashboard"] for each in found}

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
