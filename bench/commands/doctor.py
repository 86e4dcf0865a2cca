"""`bench doctor`: is this machine, and what stands on it, fit to measure on."""

from __future__ import annotations

import typer

from bench import options as o
from bench import targets
from bench.terminal.answers import say_json


def command(deployment: o.DeploymentOptions, target: o.TargetName = "auto", as_json: o.AsJson = False) -> None:
    """Look at the machine and at what is up; say of each thing whether it is fit, and what to do if not.

    Example: bench doctor
    """
    from bench import doctor
    from bench.errors import TargetFailed

    names = targets.NAMES if target == "auto" else (target,)
    found = list(doctor.findings(names, deployment))
    if as_json:
        say_json("findings", found)
    for finding in () if as_json else found:
        typer.echo(
            f"{finding.level:4}  {finding.about:20} {finding.seen}{f'. {finding.to_do}' if finding.to_do else ''}"
        )
    bad = [finding.about for finding in found if finding.level == "bad"]
    if bad:
        raise TargetFailed(f"Not fit: {', '.join(bad)}.", "See above for what to do.")
