"""`bench down`: end all that an appliance started."""

from __future__ import annotations

import typer

from bench import options as o
from bench import targets
from bench.terminal.answers import say_json


def command(
    target: o.TargetName = "auto",
    name: o.Appliance = "raymeter",
    context: o.Context = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    """End all that a deployment started, after a crash too; nothing of it is left. Refused while a session runs on it.

    Example: bench down
    """
    options = targets.Options(name=name, context=context)
    names = targets.NAMES if target == "auto" else (target,)

    def down(each: targets.Target) -> tuple[str, ...]:
        with o.changing(each.name, name, force=force):
            return each.down()

    found, troubles = targets.ask_each(names, options, down)
    ended = [f"{name}: {what}" for name, things in found.items() for what in things]
    if as_json:
        say_json("ended", ended)
    elif ended or not troubles:
        typer.echo("\n".join(ended) if ended else "Nothing was up.")
    targets.raise_all(troubles)
