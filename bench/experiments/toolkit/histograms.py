"""Seconds in HDR histograms of three significant digits: what is added up where percentiles must not be averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NANOSECONDS = 1e9
LONGEST_SECONDS = 3600
DIGITS = 3


def histogram(seconds: Iterable[float] = ()) -> Any:
    """An HdrHistogram of nanoseconds; what is below one or above an hour counts as that."""
    from hdrh.histogram import HdrHistogram

    longest = round(LONGEST_SECONDS * NANOSECONDS)
    found = HdrHistogram(1, longest, DIGITS)
    for value in seconds:
        found.record_value(min(max(1, round(value * NANOSECONDS)), longest))
    return found


def added(histograms: Iterable[Any]) -> Any:
    """One of all that was counted in any of them."""
    found = histogram()
    for each in histograms:
        found.add(each)
    return found


def encoded(found: Any) -> str:
    """HdrHistogram V2, compressed, in base64: what the tools of other languages read too."""
    return bytes(found.encode()).decode("ascii")


def decoded(text: str) -> Any:
    """The histogram that `encoded` wrote."""
    from hdrh.histogram import HdrHistogram

    return HdrHistogram.decode(text)


def seconds_at(found: Any, per_mille: int) -> float:
    """The value that so many of 1,000 do not exceed."""
    return float(found.get_value_at_percentile(per_mille / 10)) / NANOSECONDS


def calls_needed(per_mille: int) -> int:
    """How many values a percentile takes: ten beyond it."""
    return 10 * 1000 // (1000 - per_mille)
