"""How a number is written: rounded to what its interval can carry, with the prefix that fits it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from bench.analysis.stats.estimates import LEVEL, Estimate
from bench.model import Metric

_UNIT_WORDS = {"s": "seconds", "B": "bytes"}
_SI = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_IEC = ((2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "Ki"))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_NOTHING = 1e-9  # in the unit that is shown: what is left of 0 by rounding
_MOST_DIGITS = 5  # of one number: an interval of width nearly 0 is no reason for more
_RATES = frozenset({"throughput", "goodput", "bandwidth", "rate", "speed"})
_TIMES = frozenset({"time", "latency", "lateness", "overhead", "task"})
_PREPOSITIONS = frozenset({"of", "at", "to", "per", "in", "by", "for", "each", "beyond"})
_OF_SEVERAL = {"rate": "rate", "time": "number", "size": "amount", "count": "number", "ratio": "ratio"}


@dataclass(frozen=True)
class Scale:
    """What values are divided by, and the unit that they then have."""

    divisor: float
    unit: str


def scale_for(metric: Metric, values: Iterable[float]) -> Scale:
    """The prefix that fits the largest of `values`: SI for rates and times, IEC for sizes."""
    largest = max((abs(value) for value in values), default=0.0)
    unit = "" if metric.kind == "ratio" else metric.unit
    if metric.kind == "size" and unit.startswith("B"):
        return _first(_IEC, largest, unit, 1.0)
    if metric.kind == "rate":
        return _first(_SI, largest, unit if unit.startswith("B/") else f" {unit}", 1.0)
    if metric.kind == "time" and unit.startswith("s") and largest > 0:
        return _first(_SMALL, largest, unit, 1e-9)
    return Scale(1.0, unit)


def _first(steps: tuple[tuple[float, str], ...], largest: float, unit: str, smallest: float) -> Scale:
    for divisor, prefix in steps:
        if largest >= divisor:
            return Scale(divisor, f"{prefix}{unit}".strip())
    return Scale(smallest, unit.strip() if smallest == 1.0 else f"{steps[-1][1]}{unit}")


def with_interval(estimate: Estimate, scale: Scale = Scale(1.0, ""), *, decimals: int = _MOST_DIGITS) -> str:
    """A number and its interval, without the unit: 12.34 [11.90, 12.80].

    A ~ behind it: too few values for an interval of 95 %. No brackets: one value, or always the same.
    """
    value = estimate.value / scale.divisor
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return _rounded(value, _places(value, None))
    low, high = estimate.low / scale.divisor, estimate.high / scale.divisor
    places = min(_places(max(abs(low), abs(high)), high - low), decimals)
    weak = "" if estimate.level is None or estimate.level >= LEVEL - 1e-9 else "~"
    middle, least, most = (_rounded(number, places) for number in (value, low, high))
    return _rounded(value, _places(value, None)) if least == most else f"{middle} [{least}, {most}]{weak}"


def ratio(estimate: Estimate) -> str:
    """A ratio and its interval, to three decimals at most: 0.881 [0.853, 0.912]."""
    return with_interval(estimate, decimals=3)


def plain(value: float, scale: Scale = Scale(1.0, "")) -> str:
    """A number alone, to three significant digits, with its unit."""
    scaled = value / scale.divisor
    if abs(scaled) < _NOTHING:
        scaled = 0.0
    text = _rounded(scaled, _places(scaled, None))
    return f"{text} {scale.unit}".strip()


def percent(fraction: float) -> str:
    """A share or a difference, to two significant digits: 0.0512 is 5.1 %."""
    value = 100 * fraction
    places = 0 if value == round(value) else max(0, min(3, 1 - _magnitude(value)))
    return f"{value:.{places}f} %"


def quantity(metric: Metric, value: float) -> str:
    """A value of `metric` with the unit and prefix that fit."""
    return plain(value, scale_for(metric, [value]))


def label(metric: Metric) -> str:
    """The metric's name as text, without the unit that its column has."""
    name = metric.name
    if "/" in metric.unit:
        amount, per = metric.unit.split("/", 1)
        per = "second" if per == "s" else per
        name = name.removesuffix(f"_per_{per}")
        if metric.kind == "rate":
            name = name.removesuffix(f"_{_UNIT_WORDS.get(amount, amount)}")
    else:
        name = name.removesuffix(f"_{_UNIT_WORDS.get(metric.unit, metric.unit)}")
    return name.replace("_", " ").replace("cpu seconds", "CPU time").replace("cpu percent", "CPU use")


def noun(metric: Metric) -> str:
    """The metric's name as the subject of a sentence, always in the singular: throughput, rate of jobs, search time."""
    name = label(metric)
    words = name.split()
    before = next((at for at, word in enumerate(words) if word in _PREPOSITIONS), len(words))
    if any(word.endswith("s") and not word.endswith("ss") for word in words[:before]):
        return f"{_OF_SEVERAL[metric.kind]} of {name}"
    if metric.kind == "rate" and not _RATES & {*words}:
        return f"{name} rate"
    return f"{name} time" if metric.kind == "time" and not _TIMES & {*words} else name


def times_as(metric: Metric) -> str:
    """How a factor of `metric` is said: times as high, of a time times as long."""
    return "times as long" if metric.kind == "time" else "times as high"


def span(values: Iterable[float]) -> str:
    """The least and the greatest, to two digits; one number where they look the same: 1.3 to 1.4. Near 1 to hundredths."""
    ordered = sorted(values)
    low, high = (_two_digits(value) for value in (ordered[0], ordered[-1]))
    return low if low == high else f"{low} to {high}"


def _two_digits(value: float) -> str:
    if 1 <= value < 1.1:
        return f"{value:.2f}"  # 1.02 times is not 1 times
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _places(value: float, width: float | None) -> int:
    """Decimals to show: to the second significant digit of the interval, else three digits of the value."""
    if width:
        most = _MOST_DIGITS - 1 - _magnitude(value)
        return min(1 - _magnitude(width), most)
    if value == round(value) and abs(value) < 1000:
        return 0
    return 2 - _magnitude(value)


def _magnitude(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _rounded(value: float, places: int) -> str:
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text
