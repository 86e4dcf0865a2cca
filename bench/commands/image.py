"""Build the container image of the nodes.

It holds Ray and this checkout's code. Prints its tags, size and digest.

Example: bench image
"""

from __future__ import annotations

from typing import Annotated

import typer

from bench.options import AsJson
from bench.targets import image
from bench.targets.docker import engine
from bench.terminal.answers import say_json
from bench.terminal.output import say

Tag = Annotated[
    str | None, typer.Option(metavar="NAME:VERSION", help="Tag of the image. [default: from version and code]")
]


def command(tag: Tag = None, as_json: AsJson = False) -> None:
    plan = image.recipe(tag=tag)
    built = image.build(engine.connect(), plan, say=say)
    say(f"Built in {built.seconds:.0f} s.")
    if as_json:
        say_json("image", {**vars(built), "code_hash": plan.labels[image.CODE_HASH]})
        return
    for image_tag in built.tags:
        typer.echo(image_tag)
    typer.echo(f"{built.id}, {built.size_bytes / 1e9:.2f} GB, code {plan.labels[image.CODE_HASH]}")
