"""Name sessions to compare others with.

`bench compare` takes such a name wherever it takes a session.

Example: bench baseline set main latest
"""

from __future__ import annotations

from typing import Annotated

import typer

from bench.history import baselines
from bench.options import DEFAULT_OUT, AsJson, Out, SessionName
from bench.terminal.answers import say_json
from bench.terminal.asking import asking
from bench.terminal.help import PanelGroup
from bench.terminal.output import say

app = typer.Typer(cls=PanelGroup, help=__doc__, no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the baseline, e.g. main or v1.2.")]


@app.command("set")
@asking
def put(name: Name, session: SessionName, as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    """Set a name to a session, in place of an earlier one.

    Example: bench baseline set main latest
    """
    chosen = baselines.put(out, name, session)
    if as_json:
        say_json("baseline", {"name": name, "session": chosen})
        return
    typer.echo(f"{name} is {chosen}")


@app.command("list")
@asking
def show(as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    """Print each name and its session.

    Example: bench baseline list
    """
    names = baselines.known(out)
    if as_json:
        say_json(
            "baselines",
            [{"name": name, "session": session, "here": (out / session).is_dir()} for name, session in names.items()],
        )
        return
    for name, session in names.items():
        typer.echo(f"{name:20} {session}{'' if (out / session).is_dir() else ' (deleted)'}")
    if not names:
        say(f"No baseline in {out}. Set one with `bench baseline set NAME SESSION`.")


@app.command("rm")
@asking
def take_away(name: Name, as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    """Remove a name; its session stays.

    Example: bench baseline rm main
    """
    baselines.remove(out, name)
    if as_json:
        say_json("baseline", {"name": name, "session": None})
