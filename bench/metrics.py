"""Declares metrics: one short constructor for each kind, with the direction that is better for most of that kind."""

from __future__ import annotations

from typing import TypedDict, Unpack

from bench.model import Better, Metric


class Rest(TypedDict, total=False):
    """What few metrics have: see the fields of `Metric`."""

    axis: str
    table: str
    load: str
    is_wait: bool


def rate(name: str, unit: str, help: str = "", *, better: Better = "higher", **rest: Unpack[Rest]) -> Metric:
    """Something by the second: `unit` is "inputs/s"."""
    return Metric(name=name, unit=unit, better=better, kind="rate", help=help, **rest)


def seconds(name: str, help: str = "", *, unit: str = "s", better: Better = "lower", **rest: Unpack[Rest]) -> Metric:
    """A time: in seconds, or in seconds for each of something, "s/iteration"."""
    return Metric(name=name, unit=unit, better=better, kind="time", help=help, **rest)


def size(name: str, unit: str, help: str = "", *, better: Better = "lower", **rest: Unpack[Rest]) -> Metric:
    """An amount: bytes, accuracy in per cent, a mean of counts."""
    return Metric(name=name, unit=unit, better=better, kind="size", help=help, **rest)


def count(name: str, unit: str, help: str = "", *, better: Better = "lower", **rest: Unpack[Rest]) -> Metric:
    """A whole number of `unit`."""
    return Metric(name=name, unit=unit, better=better, kind="count", help=help, **rest)


def ratio(name: str, unit: str, help: str = "", *, better: Better, **rest: Unpack[Rest]) -> Metric:
    """One amount by another of the same unit: `unit` is "s/s", or "1"."""
    return Metric(name=name, unit=unit, better=better, kind="ratio", help=help, **rest)
