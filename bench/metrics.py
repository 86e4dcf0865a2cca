"""Declares metrics, by one short constructor for each kind, and finds them by their meaning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict, Unpack

from bench.meanings import SHARED, Meaning
from bench.model import Better, Metric

UNITS_OF_KINDS = {"rate": ".+/s", "time": "(s|h)(/.+)?"}
"""A regular expression for the whole unit of a metric, by its kind."""


class Rest(TypedDict, total=False):
    """What few metrics have: see the fields of `Metric`."""

    axis: str
    table: str
    load: str
    distribution: str
    percentile: float
    means: Meaning
    is_total: bool


def rate(name: str, unit: str, help: str = "", *, better: Better | None = "higher", **rest: Unpack[Rest]) -> Metric:
    """Something by the second: `unit` is "inputs/s"."""
    return Metric(name=name, unit=unit, better=better, kind="rate", help=help, **rest)


def seconds(
    name: str, help: str = "", *, unit: str = "s", better: Better | None = "lower", **rest: Unpack[Rest]
) -> Metric:
    """A time: in seconds, or in seconds for each of something, "s/iteration"."""
    return Metric(name=name, unit=unit, better=better, kind="time", help=help, **rest)


def size(name: str, unit: str, help: str = "", *, better: Better | None = "lower", **rest: Unpack[Rest]) -> Metric:
    """An amount: bytes, accuracy in per cent, a mean of counts."""
    return Metric(name=name, unit=unit, better=better, kind="size", help=help, **rest)


def count(name: str, unit: str, help: str = "", *, better: Better | None = "lower", **rest: Unpack[Rest]) -> Metric:
    """A whole number of `unit`."""
    return Metric(name=name, unit=unit, better=better, kind="count", help=help, **rest)


def ratio(name: str, unit: str, help: str = "", *, better: Better | None, **rest: Unpack[Rest]) -> Metric:
    """One amount by another of the same unit: `unit` is "s/s", or "1"."""
    return Metric(name=name, unit=unit, better=better, kind="ratio", help=help, **rest)


def meaning(means: Meaning, metrics: Iterable[Metric]) -> Metric | None:
    """The first of `metrics` that means this; None where there is none."""
    return next((metric for metric in metrics if metric.means == means), None)


def conflict(metrics: Sequence[Metric]) -> str:
    """What is wrong with these metrics of one experiment as a whole; empty where nothing is."""
    return next(_conflicts(metrics), "")


def _conflicts(metrics: Sequence[Metric]) -> Iterator[str]:
    if metrics and metrics[0].better is None:
        yield f"the headline, {metrics[0].name}, must say which direction is better"
    for metric in metrics:
        unit = UNITS_OF_KINDS.get(metric.kind, ".*")
        if not re.fullmatch("[a-z][a-z0-9_]*", metric.name):
            yield f"a name must have letters a-z, digits and _ only, got {metric.name!r}"
        if not re.fullmatch(unit, metric.unit):
            yield f"the unit of {metric.name}, a {metric.kind}, must match {unit}, got {metric.unit!r}"
    names = Counter(metric.name for metric in metrics)
    yield from (f"two metrics have the name {name}" for name, times in names.items() if times > 1)
    meanings = Counter(metric.means for metric in metrics)
    for means in [each for each, times in meanings.items() if times > 1 and each not in SHARED]:
        yield f"two metrics mean {means}, and one may: {', '.join(m.name for m in metrics if m.means == means)}"
    for metric in metrics:
        if metric.load and metric.load not in names:
            yield f"{metric.name} has the load {metric.load}, which is no metric"
