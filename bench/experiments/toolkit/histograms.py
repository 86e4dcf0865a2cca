"""Collects seconds in HDR histograms of three significant digits, which can be added up where averages of percentiles are wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NANOSECONDS = 1e9
LONGEST_SECONDS = 3600
DIGITS = 3


def histogram(seconds: Iterable[float] = ()) -> Any:
    """Return an HdrHistogram of nanoseconds. Values are limited to the range from a nanosecond to an hour."""
    from hdrh.histogram import HdrHistogram

    longest = round(LONGEST_SECONDS * NANOSECONDS)
    result = HdrHistogram(1, longest, DIGITS)
    for value in seconds:
        result.record_value(min(max(1, round(value * NANOSECONDS)), longest))
    return result


def added(histograms: Iterable[Any]) -> Any:
    """Return a histogram of all values in any of `histograms`."""
    total = histogram()
    for part in histograms:
        total.add(part)
    return total


def encoded(values: Any) -> str:
    """Encode a histogram as HdrHistogram V2, compressed, in base64, which tools of other languages can read."""
    return bytes(values.encode()).decode("ascii")


def decoded(text: str) -> Any:
    """Decode the text that `encoded` returned."""
    from hdrh.histogram import HdrHistogram

    return HdrHistogram.decode(text)


def seconds_at(values: Any, per_mille: int) -> float:
    """Return the value in seconds that `per_mille` of 1,000 values do not exceed."""
    return float(values.get_value_at_percentile(per_mille / 10)) / NANOSECONDS


def calls_needed(per_mille: int) -> int:
    """Return how many values a percentile needs, so that ten lie beyond it."""
    return 10 * 1000 // (1000 - per_mille)
