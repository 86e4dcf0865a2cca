"""`bench pins`: make the pins of images anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench import pins
from bench.commands.answers import say_json
from bench.commands.options import AsJson
from bench.commands.paths import as_path
from bench.errors import BadInput
from bench.sessions import store
from bench.targets.docker import engine

File = Annotated[Path, typer.Option(metavar="FILE", help="Where the pins are.", parser=as_path)]


def command(file: File = Path("images/versions.env"), as_json: AsJson = False) -> None:
    """Ask the registries what the pinned images are now, and write their digests beside their tags.

    Example: bench pins
    """
    if not file.is_file():
        raise BadInput(f"{file} is not there.", "Run this in the folder of the project, or name it with --file.")
    before = file.read_text()
    found = pins.digests(engine.connect(), pins.images(before))
    after = pins.with_digests(before, found)
    if after != before:
        store.write_whole(file, after.encode())
    said = [
        {"name": key.lower(), "digest": digest, "is_new": f"{key}_DIGEST={digest}" not in before}
        for key, digest in found.items()
    ]
    if as_json:
        say_json("pins", said)
        return
    for each in said:
        typer.echo(f"{each['name']:12} {each['digest']}{'  (new)' if each['is_new'] else ''}")
