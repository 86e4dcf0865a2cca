"""The index: the app, its commands, and the one place where an expected failure becomes a line and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bench.commands import (
    dashboards,
    data,
    docs,
    doctor,
    down,
    export,
    history,
    image,
    list,
    manifest,
    pilot,
    pins,
    plan,
    replay,
    report,
    resume,
    rm,
    run,
    show,
    status,
    up,
    verify,
)
from bench.errors import BenchError

app = typer.Typer(
    name="bench",
    help="Measure Ray on one node and on many, side by side, and say what the numbers mean.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole trace of a failure.")]


@app.callback()
def settings(debug: Debug = False) -> None:  # noqa: D103, its docstring would take the place of the app's help
    global _debug  # noqa: PLW0603, read once by main, after typer has gone
    _debug = debug


_debug = False

app.command("run")(run.command)
app.command("plan")(plan.command)
app.command("pilot")(pilot.command)
app.command("resume")(resume.command)
app.command("report")(report.command)
app.command("list")(list.command)
app.command("show")(show.command)
app.command("history")(history.command)
app.command("rm")(rm.command)
app.command("export")(export.command)
app.command("verify")(verify.command)
app.command("replay")(replay.command)
app.command("up")(up.command)
app.command("down")(down.command)
app.command("status")(status.command)
app.command("manifest")(manifest.command)
app.command("doctor")(doctor.command)
app.command("image")(image.command)
app.command("pins")(pins.command)
app.command("docs")(docs.command)
app.command("dashboards")(dashboards.command)
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; ends the process with the exit code of what happened."""
    try:
        app()
    except BenchError as error:
        if _debug:
            raise
        typer.echo(f"bench: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("bench: Stopped at once. End what is left with `bench down`.", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
