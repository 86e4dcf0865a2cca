"""`bench pins`: make the pins of images anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench import pins, store
from bench.errors import BadInput
from bench.targets import docker_engine

File = Annotated[Path, typer.Option(metavar="FILE", help="Where the pins are.")]


def command(file: File = Path("images/versions.env")) -> None:
    """Ask the registries what the pinned images are now, and write their digests beside their tags.

    Example: bench pins
    """
    if not file.is_file():
        raise BadInput(f"{file} is not there.", "Run this in the folder of the project, or name it with --file.")
    before = file.read_text()
    found = pins.digests(docker_engine.connect(), pins.images(before))
    after = pins.with_digests(before, found)
    for key, digest in found.items():
        typer.echo(f"{key.lower():12} {digest}{'' if f'{key}_DIGEST={digest}' in before else '  (new)'}")
    if after != before:
        store.write_whole(file, after.encode())
