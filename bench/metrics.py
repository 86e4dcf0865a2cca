"""Declares metrics, by one short constructor for each kind, and finds them by their meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict, Unpack

from bench.meanings import SHARED, Meaning
from bench.model import Better, Metric


class Rest(TypedDict, total=False):
    """What few metrics have: see the fields of `Metric`."""

    axis: str
    table: str
    load: str
    distribution: str
    percentile: float
    means: Meaning


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
    if metrics and metrics[0].better is None:
        return f"the headline, {metrics[0].name}, must say which direction is better"
    names = Counter(metric.name for metric in metrics)
    if twice := [name for name, times in names.items() if times > 1]:
        return f"two metrics have the name {twice[0]}"
    meanings = Counter(metric.means for metric in metrics)
    if twice := [means for means, times in meanings.items() if times > 1 and means not in SHARED]:
        return f"two metrics mean {twice[0]}, and one may: {', '.join(m.name for m in metrics if m.means == twice[0])}"
    if lost := [metric for metric in metrics if metric.load and metric.load not in names]:
        return f"{lost[0].name} has the load {lost[0].load}, which is no metric"
    return ""
