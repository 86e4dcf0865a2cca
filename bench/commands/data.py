"""List data sets, or import downloaded files.

Example: bench data list
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import DataMissing
from bench.options import AsJson
from bench.terminal.answers import say_json
from bench.terminal.asking import asking
from bench.terminal.help import PanelGroup

if TYPE_CHECKING:
    from bench.data.images import Source

app = typer.Typer(cls=PanelGroup, help=__doc__, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Data set: mnist or cifar10.")]
From = Annotated[Path, typer.Argument(metavar="PATH", help="Downloaded file, or the folder with the files.")]


@app.command("list")
@asking
def list_sets(as_json: AsJson = False) -> None:
    """List the data sets, their origin and checksum.

    Example: bench data list
    """
    from bench.data import images, seeded

    data_sets = [_about(name) for name in images.SOURCES]
    if as_json:
        say_json("data-sets", data_sets)
        return
    for data_set in data_sets:
        typer.echo(
            f"{data_set['name']:16}{(data_set['sha256'] or 'missing')[:12]:12}  {data_set['origin'] or data_set['hint']}"
        )
    typer.echo(f"\nImported data sets are in {seeded.folder()}; RAYMETER_DATA sets another folder.")


@app.command("seed")
@asking
def seed(name: Name, path: From, as_json: AsJson = False) -> None:
    """Import downloaded files as a data set.

    The files are checked against pinned SHA-256 checksums. mnist takes train-images-idx3-ubyte.gz and the three files beside it,
    or mnist.npz; cifar10 takes cifar-10-binary.tar.gz or cifar-10-python.tar.gz. Nothing is downloaded.

    Example: bench data seed mnist ~/Downloads
    """
    from bench.data import seeding

    file = seeding.seed(name, path)
    if as_json:
        say_json("data-set", {"name": name, "path": str(file)})
        return
    typer.echo(file)


def _about(name: Source) -> dict[str, str | None]:
    from bench.data import images

    try:
        return {"name": name, "sha256": images.checksum(name, 1), "origin": _origin(name), "hint": None}
    except DataMissing as error:
        return {"name": name, "sha256": None, "origin": None, "hint": error.hint}


def _origin(name: str) -> str:
    from bench.data import images, seeded

    if name in seeded.NAMES:
        return f"seeded: {seeded.find(name)}"
    if name in images.SYNTHETIC:
        return "made from the run's seed; this is seed 1"
    return "ships with raymeter"
