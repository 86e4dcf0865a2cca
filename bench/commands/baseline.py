"""`bench baseline`: names for sessions that others are compared with."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.history import baselines
from bench.options import DEFAULT_OUT, AsJson, Out, SessionName
from bench.terminal.answers import say_json
from bench.terminal.asking import asking
from bench.terminal.output import say

HELP = """Names for sessions to compare with: `bench compare` takes a name wherever it takes a session.

Example: bench baseline set main latest
"""
app = typer.Typer(help=HELP, no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="What to call it: main, v1.2.")]


@app.command("set")
@asking
def put(name: Name, session: SessionName, as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    """Call a session by a name, in place of the one that had it.

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
    """Print each name, and its session.

    Example: bench baseline list
    """
    names = baselines.known(out)
    if as_json:
        say_json(
            "baselines", [{"name": name, "session": of, "here": (out / of).is_dir()} for name, of in names.items()]
        )
        return
    for name, session in names.items():
        typer.echo(f"{name:20} {session}{'' if (out / session).is_dir() else ' (which is gone)'}")
    if not names:
        say(f"No baseline in {out}. Set one with `bench baseline set NAME SESSION`.")


@app.command("rm")
@asking
def take_away(name: Name, as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    """Forget a name. The session stays.

    Example: bench baseline rm main
    """
    baselines.remove(out, name)
    if as_json:
        say_json("baseline", {"name": name, "session": None})
