"""Print the report of a session.

It compares both topologies: ratios with confidence intervals, verdicts and caveats.

Example: bench report latest --format html -o report.html
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bench.errors import BadInput, did_you_mean
from bench.model import Session
from bench.options import DEFAULT_OUT, AsJson, OneOf, Out, ReportOptions, SessionName, price_of
from bench.record import store
from bench.terminal.answers import refuse_beside_json, say_json
from bench.terminal.output import page_layout, say

Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Output format: text, markdown, json, csv, html, mllog, openmetrics, perf-metrics, junit or parquet.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to this file, e.g. report.html; of parquet, a folder."),
]
Delimiter = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="CSV delimiter: comma, semicolon or tab. [default: comma]",
    ),
    OneOf(("comma", "semicolon", "tab")),
]
Detail = Annotated[bool, typer.Option("--detail", help="Print all of it; the default fits on a screen.")]
DecimalComma = Annotated[
    bool, typer.Option("--decimal-comma", help="Write 0,5 for 0.5 in CSV, with semicolons as delimiter.")
]


SHORT_BY_DEFAULT = ("text", "markdown")
PARQUET = "parquet"  # not text as the other formats: a file for each data frame
AS_MEASURED = ReportOptions()


def command(
    session: SessionName = "latest",
    format: Format = "text",
    output: Output = None,
    out: Out = DEFAULT_OUT,
    judged: ReportOptions = AS_MEASURED,
    detail: Detail = False,
    delimiter: Delimiter = "",
    decimal_comma: DecimalComma = False,
    as_json: AsJson = False,
) -> None:
    from bench import analysis, reports
    from bench.history import report_file, summaries
    from bench.history.timelines import with_timelines
    from bench.planning import contrasted

    _check_format(format, output, detail=detail)
    layout = _layout(format, delimiter, decimal_comma=decimal_comma)
    if format in SHORT_BY_DEFAULT:
        layout["short"] = not detail
    if format == "text" and output is None:
        layout |= page_layout()
    if as_json:
        refuse_beside_json(format, output)
    folder = store.find(out, session)
    stored = store.load_session(folder)
    planned = replace(
        stored,
        allow_noise=stored.allow_noise or judged.allow_noise,
        allow_unequal=stored.allow_unequal or judged.allow_unequal,
        contrast=judged.contrast or stored.contrast,
        price_per_cpu_hour=price_of(price) if (price := judged.price_per_cpu_hour) else stored.price_per_cpu_hour,
    )
    if judged.contrast:
        contrasted.check(planned)
    summary = summaries.read(folder)
    runs = store.load_runs(folder, planned)
    report = analysis.build(planned, runs)
    if planned == stored:
        report_file.keep(folder, summary, report)
    if as_json:
        say_json("report", report)
        return
    if format == PARQUET and output is not None:
        from bench.frames import Frames

        written = Frames(planned, runs, lambda: report).write_parquet(output)
        say(f"Wrote {', '.join(path.name for path in written)}.")
        return
    layout |= _dashboards(format, stored)
    text = reports.render(format, report, with_timelines(folder, report, runs, format=format), **layout)
    if output is None:
        typer.echo(text, nl=not text.endswith("\n"))  # OpenMetrics must end in its last line
    else:
        store.write_whole(output, text.encode())


def _check_format(format: str, output: Path | None, *, detail: bool) -> None:
    """Raise BadInput for an unknown format, or one that cannot be written as it is asked for."""
    from bench import reports

    formats = (*reports.FORMATS, PARQUET)
    if format not in formats:
        raise BadInput(
            f"Unknown format {format}.",
            f"{did_you_mean(format, formats)}Choose from: {', '.join(formats)}.",
        )
    if detail and format not in SHORT_BY_DEFAULT:
        raise BadInput(
            f"--detail is for {' and '.join(SHORT_BY_DEFAULT)}: {format} always has everything.", "Leave it out."
        )
    if format == PARQUET and output is None:
        raise BadInput("--format parquet writes a file for each data frame.", "Name their folder with --output.")


def _dashboards(format: str, session: Session) -> dict[str, object]:
    """Return the option of HTML with the link to the session on the dashboards of its deployment, if those are up."""
    if format != "html":
        return {}
    from bench import targets
    from bench.runner import dashboards

    try:
        target = targets.create(session.target, session.options)
    except (BadInput, msgspec.ValidationError):  # a session of another raymeter
        return {}
    link = dashboards.of_target(target, session.id, is_running=dashboards.is_running(session.id))
    return {"dashboards": link}


def _layout(format: str, delimiter: str, *, decimal_comma: bool) -> dict[str, object]:
    """Return the options of the CSV format. Raises BadInput."""
    from bench.reports.as_csv import DELIMITERS

    if not delimiter and not decimal_comma:
        return {}
    if format != "csv":
        raise BadInput(f"--delimiter and --decimal-comma apply to CSV, not to {format}.", "Add --format csv.")
    name = delimiter or "semicolon"
    if decimal_comma and name == "comma":
        raise BadInput("--decimal-comma excludes the delimiter comma.", "Use --delimiter semicolon or tab.")
    return {"delimiter": DELIMITERS[name], "decimal": "," if decimal_comma else "."}
