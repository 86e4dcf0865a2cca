"""Holds a picture with its texts, and the look of topologies that all pictures of a report share."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from bench.analysis import Report
from bench.model import Metric
from bench.reports.drawing import colours
from bench.reports.drawing.svg import SHAPES, Canvas, Shape

_CAPTION = 200  # characters of a list in a caption; the page shows all of it on demand


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture with its texts: what it shows, how to read it, where its numbers come from."""

    canvas: Canvas
    name: str  # unique on its page
    title: str
    says: str
    reads: str
    source: str
    alternative: str = ""  # description for screen readers; empty: `says`
    group: str = ""  # of pictures of which one is shown at a time; empty: not in a group
    choice: str = ""  # its name in the group

    @property
    def caption(self) -> str:
        """The first two sentences of `says`, with a long list cut off."""
        sentences = " ".join(re.split(r"(?<=[.!?]) +(?=[A-Z])", self.says)[:2])
        pieces = sentences.split("; ")
        fitting = itertools.takewhile(
            lambda number: len("; ".join(pieces[:number])) <= _CAPTION, range(2, len(pieces) + 1)
        )
        shown = max(fitting, default=1)
        return sentences if shown == len(pieces) else f"{'; '.join(pieces[:shown])}; and {len(pieces) - shown} more."

    @property
    def svg(self) -> Markup:
        return self.canvas.drawn(self.name, self.title, self.alternative or self.says)


def grouped(pictures: Iterable[Picture]) -> list[list[Picture]]:
    """Group consecutive pictures of the same group; pictures without a group stay alone."""
    groups: list[list[Picture]] = []
    for name, members in itertools.groupby(pictures, key=lambda picture: picture.group):
        together = list(members)
        groups += [together] if name else [[picture] for picture in together]
    return groups


@dataclass(frozen=True)
class Look:
    """The colour and the shape of each topology, the same in every picture of a report."""

    topologies: tuple[str, ...]

    @classmethod
    def of(cls, report: Report) -> Look:
        """Return the look of the topologies of `report`."""
        return cls(tuple(topology.name for topology in report.topologies))

    def colour(self, topology: str) -> str:
        return colours.of_topologies(self.topologies).get(topology, colours.NEUTRAL)

    def shape(self, topology: str) -> Shape:
        return SHAPES[self.topologies.index(topology) % len(SHAPES)] if topology in self.topologies else "diamond"

    def legend(self) -> list[tuple[str, str, Shape]]:
        return [(name, self.colour(name), self.shape(name)) for name in self.topologies]


def upper(words: str) -> str:
    """Capitalise the first letter of a title: CPU stays CPU."""
    return words[:1].upper() + words[1:]


def better(metric: Metric) -> str:
    """Return a sentence on which direction of a metric's axis is better; empty if neither is."""
    return f" {metric.direction.capitalize()}." if metric.better else ""
