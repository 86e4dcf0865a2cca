"""Writes the parts of README and docs/ that come from the code: `task docs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench import experiments
from bench.errors import RecordDamaged
from bench.record import store
from bench.terminal.paths import as_path
from tools import command_line

Check = Annotated[bool, typer.Option("--check", help="Write nothing; fail where the file is not what it would be.")]
File = Annotated[list[Path], typer.Option(metavar="FILE", help="A file with marked parts.", parser=as_path)]
PAGES = {name: Path(f"docs/experiments/{name}.md") for name in experiments.NAMES}
FILES = [
    Path("README.md"),
    *(
        Path(f"docs/{name}.md")
        for name in ("commands", "dashboards", "frames", "json", "statistics", "troubleshooting")
    ),
    Path("docs/experiments/index.md"),
    *PAGES.values(),
]


def command(check: Check = False, file: File = FILES) -> None:
    """Write the tables of commands, options, experiments, dashboards and exit codes into README and docs/, from the code."""
    from bench.cli import app
    from tools.doc_parts import fill, new_page

    written = []
    for each in file:
        is_new = each in PAGES.values() and each.parent.is_dir() and not each.exists()
        if is_new and not check:
            each.write_text(new_page(each.stem))
        if not each.is_file():
            raise RecordDamaged(
                f"{each} is not there.", "Run this in the folder of the project, or name it with --file."
            )
        before = each.read_text()
        after = fill(before, app)
        if before == after and not is_new:
            continue
        if check:
            raise RecordDamaged(f"{each} does not say what the code says.", "Write it anew with `task docs`.")
        store.write_whole(each, after.encode())
        written.append(each)
    for each in written:
        typer.echo(f"{each} was written anew.")


if __name__ == "__main__":
    command_line.run(command)
