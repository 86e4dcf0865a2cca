"""Writes the digests of the pinned images into images/versions.env, from their registries: `task pins`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.errors import BadInput
from bench.record import store
from bench.targets.docker import engine
from bench.terminal.paths import as_path
from tools import command_line, image_pins

File = Annotated[Path, typer.Option(metavar="FILE", help="Where the pins are.", parser=as_path)]


def command(file: File = Path("images/versions.env")) -> None:
    """Ask the registries what the pinned images are now, and write their digests beside their tags."""
    if not file.is_file():
        raise BadInput(f"{file} is not there.", "Run this in the folder of the project, or name it with --file.")
    before = file.read_text()
    found = image_pins.digests(engine.connect(), image_pins.images(before))
    after = image_pins.with_digests(before, found)
    if after != before:
        store.write_whole(file, after.encode())
    digests_of_images = [
        {"name": key.lower(), "digest": digest, "is_new": f"{key}_DIGEST={digest}" not in before}
        for key, digest in found.items()
    ]
    for image in digests_of_images:
        typer.echo(f"{image['name']:12} {image['digest']}{'  (new)' if image['is_new'] else ''}")


if __name__ == "__main__":
    command_line.run(command)
