"""Places values along an axis: its ends, its ticks, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.analysis.number_format import Scale

REACH = 2.0  # times what was measured: a line farther off would press all else together
_MOST_TICKS = 7
_LOG_FROM = 8.0  # greatest over least: beyond that only a logarithm shows the small ones


@dataclass(frozen=True)
class Axis:
    """From values to places along one direction of a picture."""

    low: float
    high: float
    begin: float  # where `low` is
    end: float
    is_log: bool = False

    @classmethod
    def around(
        cls, values: Iterable[float], begin: float, end: float, *, is_log: bool = False, holds: Sequence[float] = ()
    ) -> Axis:
        """An axis on which all `values` have room, and those of `holds` too. Only values above 0 have a logarithm."""
        known = [v for v in (*values, *holds) if math.isfinite(v) and (v > 0 or not is_log)] or [1.0]
        low, high = min(known), max(known)
        if is_log:
            room = (high / low) ** 0.06 if high > low else 1.1
            return cls(low / room, high * room, begin, end, is_log=True)
        room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
        return cls(low if low == 0 and 0 in holds else low - room, high + room, begin, end)

    def at(self, value: float) -> float:
        """Where `value` is; what lies outside is put on the edge."""
        held = min(max(value, self.low), self.high)
        if self.is_log:
            part = math.log(held / self.low) / math.log(self.high / self.low)
        else:
            part = (held - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self, divisor: float = 1.0) -> list[float]:
        """Values along it that are round once they are divided by `divisor`: KiB are written, and bytes are drawn."""
        low, high = self.low / divisor, self.high / divisor
        if self.is_log:
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for digits in ((1,), (1, 3), (1, 2, 5)):
                found = [d * 10.0**p for p in powers for d in digits if low <= d * 10.0**p <= high]
                if 3 <= len(found) <= _MOST_TICKS:
                    return [tick * divisor for tick in found]
        return [tick * divisor for tick in _round_steps(low, high)]


def _round_steps(low: float, high: float) -> list[float]:
    raw = (high - low) / (_MOST_TICKS - 2)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(d * power for d in (1, 2, 2.5, 5, 10) if d * power >= raw)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def value_axis(values: Sequence[float], bottom: float, top: float, *, can_be_log: bool = True) -> Axis:
    """An axis from `bottom` up to `top`, logarithmic where `values` are far apart and all above 0."""
    least = min(values)
    return Axis.around(values, bottom, top, is_log=can_be_log and least > 0 and max(values) / least > _LOG_FROM)


def log_note(axis: Axis) -> str:
    """A sentence for a reader of a logarithmic axis."""
    return " The axis is logarithmic." if axis.is_log else ""


def ticks(scale: Scale) -> Callable[[float], str]:
    """How the numbers of an axis are written: without the unit, which its title has."""
    return lambda value: f"{value / scale.divisor:.6g}"


def spread_out(names: Sequence[str], begin: float, end: float) -> dict[str, float]:
    """The places of names side by side, each in the middle of its share."""
    wide = (end - begin) / len(names)
    return {name: begin + wide * (number + 0.5) for number, name in enumerate(names)}
