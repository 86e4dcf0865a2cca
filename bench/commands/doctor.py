"""Check whether the machine is fit to measure on.

It checks the machine and the running deployment, and prints for each finding what to do.

Example: bench doctor
"""

from __future__ import annotations

import typer

from bench import options as o
from bench import targets
from bench.terminal.answers import say_json


def command(deployment: o.DeploymentOptions, target: o.TargetName = "auto", as_json: o.AsJson = False) -> None:
    from bench import doctor
    from bench.errors import TargetFailed

    names = targets.NAMES if target == "auto" else (target,)
    findings = list(doctor.findings(names, deployment))
    if as_json:
        say_json("findings", findings)
    for finding in () if as_json else findings:
        typer.echo(
            f"{finding.level:4}  {finding.about:20} {finding.seen}{f'. {finding.to_do}' if finding.to_do else ''}"
        )
    bad = [finding.about for finding in findings if finding.level == "bad"]
    if bad:
        raise TargetFailed(f"Not fit to measure on: {', '.join(bad)}.", "The lines above say what to do.")
