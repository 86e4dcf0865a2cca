"""Recommend samples and blocks for a long session.

It splits the variance of a short session into its levels. Three blocks of five samples are enough:
`bench run inference --profile lab --blocks 3`. Give the recommended number to --samples of the long session.

Example: bench pilot latest
"""

from __future__ import annotations

import typer

from bench.errors import BadInput
from bench.options import DEFAULT_OUT, AsJson, Out, SessionName
from bench.record import store
from bench.terminal.answers import say_json
from bench.terminal.output import page_layout


def command(session: SessionName = "latest", as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    from bench import analysis
    from bench.reports import as_text, pilot

    folder = store.find(out, session)
    planned = store.load_session(folder)
    report = analysis.build(planned, store.load_runs(folder, planned))
    outlooks = list(pilot.outlooks(report))
    if not outlooks:
        raise BadInput(
            f"{folder.name} has no cell with 2 pairs of 2 samples: the levels of its variance cannot be separated.",
            "Run it with --blocks 3 or more and --samples 2 or more; 3 blocks of 5 samples are enough.",
        )
    if as_json:
        say_json("pilot", {"session": planned.id, "cells": outlooks})
        return
    typer.echo(as_text.chapters(list(pilot.chapters(report)), **page_layout()), nl=False)
