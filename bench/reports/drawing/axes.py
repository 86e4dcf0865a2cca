"""Maps values to positions along an axis, and chooses its ends and ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.analysis.number_format import Scale

REACH = 2.0  # times the largest measured value: a line farther away is not drawn, as it would compress the rest
_MOST_TICKS = 7
_LOG_FROM = 8.0  # ratio of largest to smallest value from which a logarithmic axis is used


@dataclass(frozen=True)
class Axis:
    """Maps values to positions along one direction of a picture."""

    low: float
    high: float
    begin: float  # position of `low`
    end: float
    is_log: bool = False

    @classmethod
    def around(
        cls, values: Iterable[float], begin: float, end: float, *, is_log: bool = False, holds: Sequence[float] = ()
    ) -> Axis:
        """Return an axis with room for all `values` and `holds`. A logarithmic one ignores values that are not above 0."""
        known = [v for v in (*values, *holds) if math.isfinite(v) and (v > 0 or not is_log)] or [1.0]
        low, high = min(known), max(known)
        if is_log:
            room = (high / low) ** 0.06 if high > low else 1.1
            return cls(low / room, high * room, begin, end, is_log=True)
        room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
        return cls(low if low == 0 and 0 in holds else low - room, high + room, begin, end)

    def at(self, value: float) -> float:
        """Return the position of `value`; values beyond the ends are put at the end."""
        limited = min(max(value, self.low), self.high)
        if self.is_log:
            part = math.log(limited / self.low) / math.log(self.high / self.low)
        else:
            part = (limited - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self, divisor: float = 1.0) -> list[float]:
        """Return tick values that are round when divided by `divisor`, e.g. in KiB though the values are bytes."""
        low, high = self.low / divisor, self.high / divisor
        if self.is_log:
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for digits in ((1,), (1, 3), (1, 2, 5)):
                candidates = [d * 10.0**p for p in powers for d in digits if low <= d * 10.0**p <= high]
                if 3 <= len(candidates) <= _MOST_TICKS:
                    return [tick * divisor for tick in candidates]
        return [tick * divisor for tick in _round_steps(low, high)]


def _round_steps(low: float, high: float) -> list[float]:
    raw = (high - low) / (_MOST_TICKS - 2)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(d * power for d in (1, 2, 2.5, 5, 10) if d * power >= raw)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def value_axis(values: Sequence[float], bottom: float, top: float, *, can_be_log: bool = True) -> Axis:
    """Return an axis from `bottom` up to `top`, logarithmic if `values` are all above 0 and differ by more than a factor of 8."""
    least = min(values)
    return Axis.around(values, bottom, top, is_log=can_be_log and least > 0 and max(values) / least > _LOG_FROM)


def log_note(axis: Axis) -> str:
    """Return a sentence for the reader of a logarithmic axis; empty for a linear one."""
    return " The axis is logarithmic." if axis.is_log else ""


def ticks(scale: Scale) -> Callable[[float], str]:
    """Return the function that writes the numbers of an axis, without the unit, which is in its title."""
    return lambda value: f"{value / scale.divisor:.6g}"


def spread_out(names: Sequence[str], begin: float, end: float) -> dict[str, float]:
    """Return the positions of names side by side, each in the middle of its share."""
    wide = (end - begin) / len(names)
    return {name: begin + wide * (number + 0.5) for number, name in enumerate(names)}
