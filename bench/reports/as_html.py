"""Writes the report as one HTML file that opens without a network: the answer first, then numbers, then pictures of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

from bench.analysis import Report
from bench.analysis.caveats.evidence import Severity
from bench.model import Run
from bench.reports import document
from bench.reports.drawing.picture import grouped
from bench.reports.sections import compose

if TYPE_CHECKING:
    from jinja2 import Template

_MOST_NOTES = 3  # of one table: more are folded
_MEANINGS: dict[Severity, str] = {"refuses": "Blocks the verdict:", "weakens": "Weakens the verdict:", "note": ""}


def render(report: Report, runs: Sequence[Run] = (), *, dashboards: str = "") -> str:
    """The page. With `runs`, those of the report, it has pictures of their samples too. `dashboards`: the link to those.

    All that comes from a record is escaped; there is no script, and the page's own policy forbids any.
    """
    return _template().render(
        content=compose(report, runs),
        dashboards=dashboards,
        titles=document,
        meanings=_MEANINGS,
        most_notes=_MOST_NOTES,
    )


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
    place.globals["grouped"] = grouped
    return place.get_template("report.html.jinja")
