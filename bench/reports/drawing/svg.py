"""Draws pictures as SVG: axes, marks and lines, whose colours the page sets for light, dark and paper.

matplotlib is not used: it fixes every colour and turns text into outlines. Here one picture serves both themes, its text can be
read aloud, found and copied, it is a tenth of the size, and a report needs no second to import a library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup, escape

from bench.reports.drawing.axes import Axis

WIDTH = 680
LEFT = 78  # room for the numbers of an axis
RIGHT = WIDTH - 16
MOST_ARMS = 4  # lines per topology in one picture; the tables have all arms
DASHES = ("", " d1", " d2", " d3")  # one per arm
Anchor = Literal["start", "middle", "end"]
Shape = Literal["circle", "square", "triangle", "diamond"]
SHAPES: tuple[Shape, ...] = ("circle", "square", "triangle", "diamond")


@dataclass
class Canvas:
    """A picture under construction. It escapes all text."""

    height: float
    width: float = WIDTH
    _parts: list[str] = field(default_factory=list)

    def words(self, x: float, y: float, words: str, *, anchor: Anchor = "start", kind: str = "t") -> None:
        """Draw text whose baseline begins, ends or has its middle at x, y, as `anchor` says."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def line(self, points: Sequence[tuple[float, float]], *, kind: str = "l", colour: str = "") -> None:
        """Draw a line through `points`."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self._parts.append(f'<path class="{kind}" d="{path}"{_style(colour)}/>')

    def area(self, points: Sequence[tuple[float, float]], *, colour: str = "", kind: str = "band") -> None:
        """Draw the area that `points` enclose."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + "Z"
        self._parts.append(f'<path class="{kind}" d="{path}"{_style(colour)}/>')

    def range(self, ends: Sequence[tuple[float, float, float]], *, colour: str) -> None:
        """Draw a pale band: at each x, from one y to another."""
        self.area([*((x, y) for x, y, _ in ends), *((x, y) for x, _, y in reversed(ends))], colour=colour, kind="range")

    def box(self, x: float, y: float, wide: float, high: float, *, kind: str = "band", colour: str = "") -> None:
        """Draw a rectangle."""
        self._parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0):.1f}" height="{max(high, 0):.1f}"'
            f"{_style(colour)}/>"
        )

    def tip(self, words: str) -> None:
        """Add text that is shown when the reader points at the box drawn last."""
        self._parts[-1] = f"{self._parts[-1].removesuffix('/>')}><title>{escape(words)}</title></rect>"

    def dots(self, points: Iterable[tuple[float, float]], *, colour: str, kind: str = "dots") -> None:
        """Draw many small dots in one element, so that thousands of samples take a few kilobytes."""
        path = "".join(f"M{x:.0f} {y:.1f}h0" for x, y in points)
        if path:
            self._parts.append(f'<path class="{kind}" d="{path}"{_style(colour)}/>')

    def mark(self, x: float, y: float, shape: Shape, *, colour: str, size: float = 5, kind: str = "mark") -> None:
        """Draw one value; topologies differ in colour and in shape."""
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
        """Draw ticks at the left, and a faint line from each to `right`."""
        for tick in axis.ticks(divisor):
            y = axis.at(tick)
            self.line([(LEFT, y), (right, y)], kind="grid")
            self.words(LEFT - 6, y + 4, write(tick), anchor="end")

    def bottom_axis(
        self, axis: Axis, write: Callable[[float], str], *, top: float, bottom: float, divisor: float = 1.0
    ) -> None:
        """Draw ticks below, and a faint line from each up to `top`."""
        for tick in axis.ticks(divisor):
            x = axis.at(tick)
            self.line([(x, top), (x, bottom)], kind="grid")
            self.words(x, bottom + 16, write(tick), anchor="middle")

    def legend(self, entries: Sequence[tuple[str, str, Shape]], *, y: float = 14) -> None:
        """Draw names with their colours and shapes, in a row."""
        x = float(LEFT)
        for name, colour, shape in entries:
            self.mark(x + 5, y - 4, shape, colour=colour)
            self.words(x + 15, y, name)
            x += 28 + 7.2 * len(name)

    def legend_of_arms(self, arms: Sequence[str]) -> None:
        """Draw which arm has which dashes, if there are several arms."""
        x = float(LEFT)
        for arm, dash in zip(arms if len(arms) > 1 else (), DASHES, strict=False):
            self.line([(x, 32), (x + 30, 32)], kind=f"l{dash}")
            self.words(x + 36, 36, arm)
            x += 50 + 7.2 * len(arm)

    def drawn(self, name: str, title: str, description: str) -> Markup:
        """Return the picture with a title and a description for screen readers. `name` is unique on its page."""
        ids = escape(f"{name}-t"), escape(f"{name}-d")
        head = (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-labelledby="{ids[0]} {ids[1]}"'
            f' xmlns="http://www.w3.org/2000/svg">'
        )
        words = f'<title id="{ids[0]}">{escape(title)}</title><desc id="{ids[1]}">{escape(description)}</desc>'
        return Markup(head + words + "".join(self._parts) + "</svg>")  # noqa: S704, each part is escaped where it is made


def _style(colour: str) -> str:
    return f' style="color:{escape(colour)}"' if colour else ""
