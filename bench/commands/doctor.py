"""`bench doctor`: is this machine, and what stands on it, fit to measure on."""

from __future__ import annotations

import typer


def command() -> None:
    """Look at the machine and at what is up; say of each thing whether it is fit, and what to do if not.

    Example: bench doctor
    """
    from bench.doctor import CHECKS
    from bench.errors import TargetFailed

    found = [finding for check in CHECKS for finding in check()]
    for finding in found:
        typer.echo(
            f"{finding.level:4}  {finding.about:20} {finding.seen}{f'. {finding.to_do}' if finding.to_do else ''}"
        )
    bad = [finding.about for finding in found if finding.level == "bad"]
    if bad:
        raise TargetFailed(f"Not fit: {', '.join(bad)}.", "See above for what to do.")
