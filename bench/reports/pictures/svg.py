"""Pictures as SVG, drawn by hand: axes, marks and lines whose colours the page sets, for light, dark and paper.

Why not matplotlib: it fixes every colour and turns words into outlines. Here one picture serves both themes, its words can
be read out, found and copied, it is a tenth of the size, and a report needs no second to import a library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup, escape

WIDTH = 680
LEFT = 78  # room for the numbers of an axis
Anchor = Literal["start", "middle", "end"]
Shape = Literal["circle", "square", "triangle", "diamond"]
SHAPES: tuple[Shape, ...] = ("circle", "square", "triangle", "diamond")
_MOST_TICKS = 7


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


@dataclass
class Canvas:
    """A picture in the making. Every word is escaped here, and nothing else is ever words."""

    height: float
    width: float = WIDTH
    _parts: list[str] = field(default_factory=list)

    def words(self, x: float, y: float, words: str, *, anchor: Anchor = "start", kind: str = "t") -> None:
        """Words, whose baseline begins, ends or has its middle at x, y."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def line(self, points: Sequence[tuple[float, float]], *, kind: str = "l", colour: str = "") -> None:
        """A line through points."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self._parts.append(f'<path class="{kind}" d="{path}"{_style(colour)}/>')

    def area(self, points: Sequence[tuple[float, float]], *, colour: str = "", kind: str = "band") -> None:
        """What points enclose."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + "Z"
        self._parts.append(f'<path class="{kind}" d="{path}"{_style(colour)}/>')

    def box(self, x: float, y: float, wide: float, high: float, *, kind: str = "band", colour: str = "") -> None:
        """A rectangle."""
        self._parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0):.1f}" height="{max(high, 0):.1f}"'
            f"{_style(colour)}/>"
        )

    def tip(self, words: str) -> None:
        """Words that a reader sees who points at the box that was drawn last."""
        self._parts[-1] = f"{self._parts[-1].removesuffix('/>')}><title>{escape(words)}</title></rect>"

    def dots(self, points: Iterable[tuple[float, float]], *, colour: str, kind: str = "dots") -> None:
        """Many small dots in one element: thousands of samples are a few kilobytes."""
        path = "".join(f"M{x:.0f} {y:.1f}h0" for x, y in points)
        if path:
            self._parts.append(f'<path class="{kind}" d="{path}"{_style(colour)}/>')

    def mark(self, x: float, y: float, shape: Shape, *, colour: str, size: float = 5, kind: str = "mark") -> None:
        """One value; topologies differ in colour and in shape."""
        if shape == "circle":
            self._parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"{_style(colour)}/>')
            return
        corners = {
            "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
            "triangle": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
            "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        }[shape]
        self.area([(x + size * 0.9 * dx, y + size * 0.9 * dy) for dx, dy in corners], colour=colour, kind=kind)

    def left_axis(self, axis: Axis, write: Callable[[float], str], *, right: float, divisor: float = 1.0) -> None:
        """Ticks at the left, and a faint line from each to `right`."""
        for tick in axis.ticks(divisor):
            y = axis.at(tick)
            self.line([(LEFT, y), (right, y)], kind="grid")
            self.words(LEFT - 6, y + 4, write(tick), anchor="end")

    def bottom_axis(
        self, axis: Axis, write: Callable[[float], str], *, top: float, bottom: float, divisor: float = 1.0
    ) -> None:
        """Ticks below, and a faint line from each up to `top`."""
        for tick in axis.ticks(divisor):
            x = axis.at(tick)
            self.line([(x, top), (x, bottom)], kind="grid")
            self.words(x, bottom + 16, write(tick), anchor="middle")

    def legend(self, entries: Sequence[tuple[str, str, Shape]], *, y: float = 14) -> None:
        """Names with their colours and shapes, in a row."""
        x = float(LEFT)
        for name, colour, shape in entries:
            self.mark(x + 5, y - 4, shape, colour=colour)
            self.words(x + 15, y, name)
            x += 28 + 7.2 * len(name)

    def drawn(self, name: str, alternative: str) -> Markup:
        """The picture, with the words that stand for it where it is not seen. `name` is unique on its page."""
        title, description = f"{escape(name)}-t", f"{escape(name)}-d"
        head = (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-labelledby="{title} {description}"'
            f' xmlns="http://www.w3.org/2000/svg">'
        )
        what, _, rest = alternative.partition(". ")
        said = f'<title id="{title}">{escape(what)}</title><desc id="{description}">{escape(rest or what)}</desc>'
        return Markup(head + said + "".join(self._parts) + "</svg>")  # noqa: S704, each part is escaped where it is made


def _style(colour: str) -> str:
    return f' style="color:{escape(colour)}"' if colour else ""
