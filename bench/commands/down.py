"""Stop a deployment and remove all its parts.

It works after a crash too. Refused while a session runs on the deployment.

Example: bench down
"""

from __future__ import annotations

import typer

from bench import options as o
from bench import targets
from bench.runner import session_lock
from bench.terminal.answers import say_json
from bench.terminal.asking import typed_command
from bench.terminal.output import say


def command(
    deployment: o.DeploymentOptions,
    target: o.TargetName = "auto",
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    name = str(deployment.get("name", targets.Options.name))
    names = targets.NAMES if target == "auto" else (target,)

    def down(chosen: targets.Target) -> tuple[str, ...]:
        with session_lock.changing(chosen.name, name, typed_command(), force=force) as reason:
            if reason:
                say(f"{reason} --force ignores it.")
            return chosen.down()

    ended_by_target, troubles = targets.ask_each(names, deployment, down)
    ended = [f"{target_name}: {item}" for target_name, items in ended_by_target.items() for item in items]
    if as_json:
        say_json("ended", ended)
    elif ended or not troubles:
        typer.echo("\n".join(ended) if ended else "Nothing was running.")
    targets.raise_all(troubles)
