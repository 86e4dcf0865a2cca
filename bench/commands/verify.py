"""Check a capsule and recompute its numbers.

Every file is compared with the manifest, and every number of the report is computed from the raw samples.

Example: bench verify 20260101-120000-inference-tiny-1a2b-0123456789abcdef0123456789abcdef.capsule.zip
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.options import AsJson
from bench.terminal.answers import say_json

File = Annotated[Path, typer.Argument(metavar="FILE", help="Capsule, as `bench export` writes it.")]


def command(capsule: File, as_json: AsJson = False) -> None:
    from bench.capsules.checking import verify
    from bench.counts import plural

    verified = verify(capsule)
    manifest = verified.manifest
    if as_json:
        counts = {
            name: getattr(verified, name) for name in ("runs", "samples", "numbers", "damaged", "extract", "same_code")
        }
        say_json("verified", {"session": verified.session.id, **counts, "manifest": manifest})
        return
    state = {True: ", with changes", False: "", None: ""}[manifest.git_dirty]
    typer.echo(f"{verified.session.id}: {plural(len(manifest.files), 'file matches', 'files match')} the manifest.")
    typer.echo(
        f"{verified.numbers:,} numbers of the report were recomputed from {verified.samples:,} samples of {plural(verified.runs, 'run')}."
    )
    for damaged in verified.damaged:
        typer.echo(f"Damaged, left out of the report: {damaged}.")
    typer.echo(f"Contains {verified.extract}.")
    typer.echo(
        f"Packed by raymeter {manifest.raymeter}, code {manifest.code_hash}, revision {manifest.git_revision}{state}."
    )
    typer.echo(f"Measured by code {', '.join(manifest.code_of_nodes) or 'unknown'}.")
    if not verified.same_code:
        typer.echo(
            "This checkout has other code: the numbers were recomputed; the HTML page was checked by checksum only."
        )
