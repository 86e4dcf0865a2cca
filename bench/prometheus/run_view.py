"""Queries Prometheus for a run: whether it agrees with the record, and which alert rules held during the run."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import http_client
from bench.errors import TargetFailed
from bench.model import Sample, Spec
from bench.prometheus import scraping
from bench.prometheus.client import Prometheus, Series
from bench.prometheus.reconcile import differences

SETTLE_SECONDS = 5 * scraping.SCRAPE_SECONDS  # until the last samples have been scraped
MEMORY = "1h"  # how old the last value of a run may be
DISAGREE = "RecordAndPrometheusDisagree"  # the name of its alert rule
MOST_DIFFERENCES = 3  # are named; the others are counted
IDENTITY = ("session", "run", "cluster")  # a series with other values of these labels belongs to another run


@dataclass(frozen=True, kw_only=True)
class Rule:
    """An alert rule: a condition that must not hold for longer than `for_seconds`."""

    name: str
    expr: str
    for_seconds: float
    summary: str


@dataclass(frozen=True, kw_only=True)
class Span:
    """The time of a run, on Prometheus' clock in seconds, and the labels of its series."""

    begin: float
    end: float  # including the scrapes after its end
    now: float
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class RunView:
    """Prometheus' view of a run."""

    reconciled: bool | None  # None: Prometheus did not answer
    alerts: tuple[str, ...] = ()  # name and summary of each rule that held, and where Prometheus and the record differ
    span: Span | None = None  # None: Prometheus does not know the run


def look(url: str, spec: Spec, samples: Sequence[Sample]) -> RunView:
    """Wait until Prometheus has scraped the run's end, compare, and evaluate the alert rules over its time."""
    prometheus = Prometheus(url)
    try:
        texts = settled_differences(prometheus, spec, samples)
        span = span_of(prometheus, spec)
        alerts = tuple(alerts_of(prometheus, span, rules()))
    except (http_client.RequestException, TargetFailed):
        return RunView(reconciled=None)
    alerts = (*alerts, *(f"{DISAGREE}: {text}" for text in shortened(texts)))
    return RunView(reconciled=not texts, alerts=alerts, span=span)


def settled_differences(
    prometheus: Prometheus, spec: Spec, samples: Sequence[Sample], *, settle_seconds: float = SETTLE_SECONDS
) -> list[str]:
    """The differences between Prometheus and the record, after the time to scrape the last sample."""
    until = time.monotonic() + settle_seconds
    while True:
        texts = differences(spec, samples, page_of(prometheus, spec))
        if not texts or time.monotonic() > until:
            return texts
        time.sleep(scraping.SCRAPE_SECONDS / 4)


def shortened(texts: Sequence[str]) -> tuple[str, ...]:
    """The first few texts, and the number of the others."""
    more = len(texts) - MOST_DIFFERENCES
    return (*texts[:MOST_DIFFERENCES], *((f"and {more} more",) if more > 0 else ()))


def page_of(prometheus: Prometheus, spec: Spec) -> str:
    """A run's samples in Prometheus, in the format of the exporter's page."""
    of_run = f'session="{spec.session}",run="{spec.folder}"'
    series = f'{{__name__=~"bench_sample_value|bench_run_samples",{of_run}}}'
    shown = prometheus.query(f"last_over_time({series}[{MEMORY}])")
    return "".join(_line(series) for series in shown)


def _line(series: Series) -> str:
    return f"{named(series.labels)} {series.last!r}\n"


def named(labels: Mapping[str, str]) -> str:
    """A series in the format of metrics pages: `name{label="value"}`."""
    pairs = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items() if key != "__name__")
    return f"{labels['__name__']}{{{pairs}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def rules() -> tuple[Rule, ...]:
    """The alert rules of Prometheus."""
    import yaml

    groups = yaml.safe_load(scraping.rules())["groups"]
    return tuple(_rule(rule) for group in groups for rule in group["rules"])


def _rule(rule: Mapping[str, Any]) -> Rule:
    return Rule(
        name=rule["alert"],
        expr=rule["expr"],
        for_seconds=float(str(rule.get("for", "0s")).removesuffix("s")),
        summary=rule["annotations"]["summary"],
    )


def alerts_of(prometheus: Prometheus, span: Span | None, rules: Sequence[Rule]) -> Iterator[str]:
    """The rules that held during the run of `span`, one sentence each, with the worst value that held long enough.

    They are evaluated here, not read from Prometheus' own alerts: so Prometheus needs no rules of its own, and a run that is
    shorter than two evaluations is not missed.
    """
    if span is None:
        yield f"{DISAGREE}: Prometheus does not know this run, and no alert rule could be evaluated on it"
        return
    own = {name: span.labels[name] for name in IDENTITY if name in span.labels}
    for rule in rules:
        held: dict[str, None] = {}
        for series in prometheus.query_range(
            rule.expr,
            begin=span.begin,
            end=span.end,
            step_seconds=scraping.SCRAPE_SECONDS,
        ):
            is_other = any(series.labels.get(name, value) != value for name, value in own.items())
            worst = None if is_other else worst_that_held(series.points, rule.for_seconds)
            if worst is not None:
                held[f"{rule.name}: {fill_summary(rule.summary, series.labels, worst)}"] = None
        yield from held


def span_of(prometheus: Prometheus, spec: Spec) -> Span | None:
    """The time of the run of `spec`; None if Prometheus does not know it."""
    of_run = f'{{session="{spec.session}",run="{spec.folder}"}}'
    begun = prometheus.query(f"last_over_time(bench_run_begun_timestamp_seconds{of_run}[{MEMORY}])")
    if not begun:
        return None
    ended = prometheus.query(f"last_over_time(bench_run_ended_timestamp_seconds{of_run}[{MEMORY}])")
    (now,) = prometheus.query("time()")
    return Span(
        begin=begun[0].last,
        # The last samples are scraped after the end.
        end=min(ended[0].last + SETTLE_SECONDS, now.last) if ended else now.last,
        now=now.last,
        labels=begun[0].labels,
    )


def worst_that_held(points: Sequence[tuple[float, float]], for_seconds: float) -> float | None:
    """The greatest value that was reached for `for_seconds` without a gap; None if there is none.

    `points`: seconds and values, in order of time.
    """
    for least in sorted({value for _, value in points}, reverse=True):
        if _longest([point for point in points if point[1] >= least]) >= for_seconds:
            return least
    return None


def _longest(points: Sequence[tuple[float, float]]) -> float:
    """Seconds of the longest stretch without a gap."""
    longest, begin = 0.0, points[0][0]
    for (before, _), (now, _) in itertools.pairwise(points):
        if now - before > 1.5 * scraping.SCRAPE_SECONDS:
            begin = now
        longest = max(longest, now - begin)
    return longest


def fill_summary(summary: str, labels: Mapping[str, str], value: float) -> str:
    """A rule's summary with its template filled in, as Prometheus does."""
    known = {
        "$value": f"{value:g}",
        "$value | humanizePercentage": f"{value:.1%}",
        **{f"$labels.{name}": text for name, text in labels.items()},
    }
    return re.sub(r"\{\{\s*(.+?)\s*\}\}", lambda match: known.get(match[1], "?"), summary)
