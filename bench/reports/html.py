"""The report as one HTML file that opens without a network: the answer first, then numbers, then pictures of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import zip_longest
from typing import TYPE_CHECKING

from bench.analysis import Report
from bench.analysis.caveats.evidence import Severity
from bench.analysis.cells import CellReport
from bench.model import Run
from bench.reports import document
from bench.reports.document import Chapter
from bench.reports.pictures import network_breakdown, normality, profiles, scaling, series, session
from bench.reports.pictures.session import Look, Picture

if TYPE_CHECKING:
    from jinja2 import Template

_MEANINGS: dict[Severity, str] = {"refuses": "Blocks the verdict:", "weakens": "Weakens the verdict:", "note": ""}


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A chapter on the page, and what it is called in the list of them."""

    said: Chapter
    short: str
    pictures: tuple[Picture, ...]


def render(report: Report, runs: Sequence[Run] = ()) -> str:
    """The page. With `runs`, those of the report, it has pictures of their samples too.

    All that comes from a record is escaped; there is no script, and the page's own policy forbids any.
    """
    said = document.compose(report, runs)
    return _template().render(
        said=said,
        titles=document,
        meanings=_MEANINGS,
        overview=list(session.of_session(report)),
        chapters=[
            _Part(
                said=chapter,
                short=f"{cell.experiment} {cell.cell}" if cell else chapter.title,
                pictures=tuple(_pictures(report, cell, runs) if cell else _scaling(report, chapter)),
            )
            # What comes after the cells is about several of them.
            for cell, chapter in zip_longest(report.cells, said.chapters)
        ],
    )


def _scaling(report: Report, chapter: Chapter) -> Iterator[Picture]:
    """Those of the experiment whose scaling a chapter has."""
    for experiment in dict.fromkeys(ladder.experiment for ladder in report.ladders):
        if chapter.title == document.title_of_scaling(report, experiment):
            yield from scaling.of_experiment(report, experiment)


def _pictures(report: Report, cell: CellReport, runs: Sequence[Run]) -> Iterator[Picture]:
    if not report.runs.get("ok"):
        return
    look = Look.of(report)
    yield from session.of_cell(report, cell)
    yield from normality.of_cell(cell, look)
    yield from network_breakdown.of_cell(cell, look)
    yield from series.sweeps(cell, look)
    yield from series.curves(cell, look)
    yield from series.samples(cell, runs, look)
    yield from profiles.of_cell(cell, runs)


def look() -> str:
    """A checksum of the template and the style, which are no code and make the page as much as it does."""
    digest = hashlib.sha256()
    for name in ("report.html.jinja", "report.css"):
        digest.update((resources.files("bench.reports") / "templates" / name).read_bytes())
    return digest.hexdigest()[:16]


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    place = Environment(
        loader=PackageLoader("bench.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (resources.files("bench.reports") / "templates" / "report.css").read_text()
    place.globals["style"] = Markup(style)  # noqa: S704, it is a file of this package
    place.globals["zip"] = zip
    return place.get_template("report.html.jinja")
