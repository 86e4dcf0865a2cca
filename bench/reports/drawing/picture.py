"""Holds a picture with its words, and the look of topologies that all pictures of a report share."""

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

_CAPTION = 200  # characters of a list below a picture; all of it is a click away


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture and its words: what it shows, how to read it, where its numbers come from."""

    canvas: Canvas
    name: str  # unique on its page
    title: str
    says: str
    reads: str
    source: str
    alternative: str = ""  # for those who do not see it; empty: what it says
    group: str = ""  # of pictures of which the reader chooses one; empty: it stands by itself
    choice: str = ""  # what it is called there

    @property
    def caption(self) -> str:
        """What it says in two sentences at most, and of a long list its beginning."""
        sentences = " ".join(re.split(r"(?<=[.!?]) +(?=[A-Z])", self.says)[:2])
        pieces = sentences.split("; ")
        kept = list(
            itertools.takewhile(lambda number: len("; ".join(pieces[:number])) <= _CAPTION, range(2, len(pieces) + 1))
        )
        shown = kept[-1] if kept else 1
        return sentences if shown == len(pieces) else f"{'; '.join(pieces[:shown])}; and {len(pieces) - shown} more."

    @property
    def svg(self) -> Markup:
        return self.canvas.drawn(self.name, self.title, self.alternative or self.says)


def grouped(pictures: Iterable[Picture]) -> list[list[Picture]]:
    """Pictures that follow each other in one group, together; every other by itself."""
    return [
        each
        for name, those in itertools.groupby(pictures, key=lambda picture: picture.group)
        for found in [list(those)]
        for each in ([found] if name else [[picture] for picture in found])
    ]


@dataclass(frozen=True)
class Look:
    """The colour and the shape of each topology, the same in every picture of a report."""

    topologies: tuple[str, ...]

    @classmethod
    def of(cls, report: Report) -> Look:
        """For the topologies of `report`."""
        return cls(tuple(topology.name for topology in report.topologies))

    def colour(self, topology: str) -> str:
        return colours.of_topologies(self.topologies).get(topology, colours.NEUTRAL)

    def shape(self, topology: str) -> Shape:
        return SHAPES[self.topologies.index(topology) % len(SHAPES)] if topology in self.topologies else "diamond"

    def legend(self) -> list[tuple[str, str, Shape]]:
        return [(name, self.colour(name), self.shape(name)) for name in self.topologies]


def upper(words: str) -> str:
    """Words at the beginning of a title: CPU stays CPU."""
    return words[:1].upper() + words[1:]


def better(metric: Metric) -> str:
    """A sentence for a reader of its axis, where one direction is good."""
    return f" {metric.direction.capitalize()}." if metric.better else ""
