"""`bench image`: build the image that the targets docker and k8s use."""

from __future__ import annotations

from typing import Annotated

import typer

from bench import image
from bench.commands.talk import say
from bench.targets import docker_engine

Tag = Annotated[
    str | None, typer.Option(metavar="NAME:VERSION", help="What to call it. [default: by version and code]")
]


def command(tag: Tag = None) -> None:
    """Build the image of Ray and of this checkout's code, and print its size and digest.

    Example: bench image
    """
    plan = image.recipe(tag=tag)
    built = image.build(docker_engine.connect(), plan, say=say)
    for each in built.tags:
        typer.echo(each)
    typer.echo(f"{built.id}, {built.size_bytes / 1e9:.2f} GB, code {plan.labels[image.CODE_HASH]}")
    say(f"Built in {built.seconds:.0f} s.")
