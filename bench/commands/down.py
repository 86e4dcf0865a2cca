"""`bench down`: end all that an appliance started."""

from __future__ import annotations

import typer

from bench import targets
from bench.commands import options as o
from bench.commands.answers import say_json


def command(
    target: o.TargetName = "auto", name: o.Appliance = "raymeter", context: o.Context = None, as_json: o.AsJson = False
) -> None:
    """End all that an appliance started, after a crash too; nothing of it is left.

    Example: bench down
    """
    options = targets.Options(name=name, context=context)
    names = targets.NAMES if target == "auto" else (target,)
    ended = [f"{each}: {what}" for each in names for what in targets.create(each, options).down()]
    if as_json:
        say_json("ended", ended)
        return
    typer.echo("\n".join(ended) if ended else "Nothing was up.")
