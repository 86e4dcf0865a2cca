"""Repeat the session of a capsule.

It verifies the capsule, runs its session on this machine, and prints whether the verdicts agree. Nothing that the capsule
names is executed or downloaded: the experiments are those of this raymeter, with parameters within their bounds.

Example: bench replay 20260101-120000-inference-tiny-1a2b-0123456789abcdef0123456789abcdef.capsule.zip
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench import identity
from bench import options as o
from bench.capsules import replaying
from bench.errors import BadInput
from bench.runner.measure import measure_new
from bench.runner.result import judge
from bench.targets import choose
from bench.terminal.answers import say_json
from bench.terminal.asking import typed_command

if TYPE_CHECKING:
    from bench.analysis import Report

File = Annotated[Path, typer.Argument(metavar="FILE", help="Capsule, as `bench export` writes it.")]
Times = Annotated[
    int, typer.Option(min=1, max=10, metavar="N", help="Number of replays; three that agree give the badge.")
]
OtherCode = Annotated[bool, typer.Option("--other-code", help="Replay with other code than the code that measured.")]


def command(
    capsule: File,
    given: o.TargetOptions,
    other_code: OtherCode = False,
    times: Times = 1,
    target: o.TargetName = "auto",
    as_json: o.AsJson = False,
    out: o.Out = o.DEFAULT_OUT,
) -> None:
    from bench.capsules.checking import verify

    verified = verify(capsule)
    code = identity.code_hash()
    if code not in verified.manifest.code_of_nodes and not other_code:
        raise BadInput(
            f"The capsule was measured by code {', '.join(verified.manifest.code_of_nodes) or 'unknown'}, and this checkout has {code}.",
            f"Check out revision {verified.manifest.git_revision}, or use --other-code.",
        )
    rate = verified.session.options.get("link_rate")
    network = {"link_rate": rate} if isinstance(rate, str) else {}  # the link of the replay gets the same bandwidth
    chosen = choose(target, {**network, **given})
    results, reproduced = [], []
    for _ in range(times):
        session = replaying.again(
            verified.session, target=chosen.target.name, options=chosen.options.given(), command=typed_command()
        )
        note = chosen.describe(f"Session {session.id}, kept in {out / session.id}.")
        result = measure_new(out, session, chosen.target, note)
        result.write_report()
        results.append(result)
        reproduced.append(replaying.is_reproduced(replaying.agreements(verified.report, result.report)))
        if not as_json:
            typer.echo(result.text())
            _compare(verified.report, result.report)
    if as_json:
        _say(verified.report, [result.report for result in results], reproduced)
    elif times > 1:
        typer.echo(_badge(reproduced))
    for result in results:
        judge(result.session, result.runs)


def _say(original: Report, reports: list[Report], reproduced: list[bool]) -> None:
    """Print the verdicts of the last replay, and for every replay whether it reproduced the capsule."""
    replayed = reports[-1]
    agreements = replaying.agreements(original, replayed)
    verdicts = [
        {
            "about": agreement.about,
            "there": agreement.there,
            "here": agreement.here,
            "agrees": agreement.agrees,
            "overlap": agreement.overlap,
        }
        for agreement in agreements
    ]
    differs = replaying.changed_versions(original, replayed)
    summary = {"capsule": original.session, "differs": differs, "reproduced": reproduced[-1]}
    replays = [
        {"session": report.session, "reproduced": is_reproduced}
        for report, is_reproduced in zip(reports, reproduced, strict=True)
    ]
    badge = {"replays": replays, "badge": replaying.has_badge(reproduced)}
    say_json("replay", {**summary, **badge, "verdicts": verdicts, "report": replayed})


def _badge(reproduced: list[bool]) -> str:
    """Return the line about the reproducibility badge after these replays."""
    counted = f"{sum(reproduced)} of {len(reproduced)} replays reproduced it"
    if replaying.has_badge(reproduced):
        return f"Reproducibility badge: {counted}."
    return f"No reproducibility badge: {counted}, and all of {replaying.BADGE_REPLAYS} or more must."


def _compare(original: Report, replayed: Report) -> None:
    """Print each verdict of the capsule beside the one of the replay."""
    for line in replaying.changed_versions(original, replayed):
        typer.echo(f"differs: {line}")
    agreements = replaying.agreements(original, replayed)
    for agreement in agreements:
        sign = "same  " if agreement.agrees else "other " if agreement.there and agreement.here else "none  "
        apart = ", intervals do not overlap" if agreement.overlap is False else ""
        typer.echo(
            f"{sign} {agreement.about}: {agreement.there or 'no verdict'} in the capsule, {agreement.here or 'no verdict'} here{apart}"
        )
    judged = [agreement for agreement in agreements if agreement.there]
    agreed = sum(agreement.agrees for agreement in judged)
    typer.echo(f"{agreed} of {len(judged)} verdicts of {original.session} agree with those of {replayed.session}.")
    is_reproduced = replaying.is_reproduced(agreements)
    typer.echo(
        "Reproduced."
        if is_reproduced
        else "Not reproduced: each headline's verdict must agree, and its interval overlap."
    )
