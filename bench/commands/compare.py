"""Compare a session with a baseline.

It checks that both sessions were measured alike, then prints ratios with confidence intervals and verdicts. --fail-on
sets the verdicts that end with exit code 12.

Example: bench compare main latest --fail-on slower:5%
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import BadInput, NotComparable, RegressionFound, did_you_mean
from bench.history import baselines, confirming, fail_on
from bench.options import DEFAULT_OUT, AsJson, Out
from bench.record import store
from bench.runner.measure import measure_new
from bench.runner.result import judge
from bench.targets import create
from bench.terminal.answers import refuse_beside_json, say_json
from bench.terminal.asking import typed_command
from bench.terminal.output import page_layout, say

if TYPE_CHECKING:
    from bench.analysis.two_sessions import Stored, TwoSessions
    from bench.history.fail_on import Condition

Baseline = Annotated[
    str,
    typer.Argument(metavar="BASELINE", help="Session id or the start of one, a folder, or a baseline."),
]
Candidate = Annotated[str, typer.Argument(metavar="SESSION", help="Session to compare with it: the same, or latest.")]
All = Annotated[bool, typer.Option("--all", help="Compare every metric and point, not only the headline.")]
AllowUnequal = Annotated[
    bool, typer.Option("--allow-unequal", help="Compare though facts differ; the output names them.")
]
Changed = Annotated[
    list[str],
    typer.Option("--changed", metavar="FACT", help="Fact changed on purpose, e.g. 'version of ray', code, image."),
]
Confirm = Annotated[bool, typer.Option("--confirm", help="Measure alarmed cells again; report confirmed alarms only.")]
FailOn = Annotated[
    list[str],
    typer.Option(
        "--fail-on", metavar="VERDICT[:SIZE]", help="Exit with code 12 at a verdict, e.g. slower, slower:5%, undecided."
    ),
]
Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help="Output format: text, markdown or json.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to this file, e.g. comparison.md."),
]


def command(
    baseline: Baseline,
    candidate: Candidate = "latest",
    everything: All = False,
    changed: Changed = [],  # noqa: B006, typer reads it and never changes it
    allow_unequal: AllowUnequal = False,
    confirm: Confirm = False,
    fail_at: FailOn = [],  # noqa: B006, as above
    format: Format = "text",
    output: Output = None,
    as_json: AsJson = False,
    out: Out = DEFAULT_OUT,
) -> None:
    if as_json:
        refuse_beside_json(format, output)
    from bench import reports
    from bench.analysis import two_sessions

    if format not in reports.OF_TWO_SESSIONS:
        raise BadInput(
            f"Unknown format {format}.",
            f"{did_you_mean(format, reports.OF_TWO_SESSIONS)}Choose from: {', '.join(reports.OF_TWO_SESSIONS)}.",
        )
    conditions = fail_on.parse(fail_at)
    baseline_session, candidate_session = (
        _stored(baselines.find(out, baseline)),
        _stored(baselines.find(out, candidate)),
    )
    comparison = two_sessions.compare(baseline_session, candidate_session, everything=everything, changed=changed)
    _check(comparison, changed, allow_unequal=allow_unequal)
    fresh = _confirm(candidate_session, comparison, out=out) if confirm else None
    if fresh is not None:
        again = two_sessions.compare(
            baseline_session, fresh, everything=everything, changed=changed, level=confirming.LEVEL
        )
        comparison = two_sessions.confirmed(comparison, again)
    if as_json:
        say_json("comparison", comparison)
    else:
        layout = dict(page_layout()) if format == "text" and output is None else {}
        _write(reports.OF_TWO_SESSIONS[format](comparison, **layout), output)
    if fresh is not None:
        judge(fresh.session, list(fresh.runs))
    _fail_on(comparison, conditions, confirmed=confirm)


def _stored(folder: Path) -> Stored:
    from bench.analysis.two_sessions import Stored

    session = store.load_session(folder)
    return Stored(session=session, runs=store.load_runs(folder, session))


def _check(comparison: TwoSessions, changed: Sequence[str], *, allow_unequal: bool) -> None:
    """Raise NotComparable if the sessions were not measured alike, and BadInput for a --changed fact that is the same in both."""
    different = {difference.what for difference in comparison.differences}
    if same := [name for name in changed if name not in different]:
        raise BadInput(
            f"--changed {same[0]}: this fact is the same in both sessions.",
            f"{did_you_mean(same[0], different)}Facts that different: {', '.join(sorted(different)) or 'none'}.",
        )
    if data_differences := [difference.text for difference in comparison.confounders if difference.is_data]:
        raise NotComparable(
            f"{'; '.join(data_differences)}. So {comparison.candidate.session} and {comparison.baseline.session} did different work.",
            "Measure both with the same data; --allow-unequal does not cover data.",
        )
    named = "; ".join(difference.text for difference in comparison.confounders)
    if comparison.confounders and not allow_unequal:
        raise NotComparable(
            f"{named}. So {comparison.candidate.session} cannot be compared with {comparison.baseline.session}.",
            "Measure both in one session, name intended changes with --changed, or use --allow-unequal.",
        )
    if not comparison.rows:
        raise NotComparable(
            f"{comparison.candidate.session} and {comparison.baseline.session} have no cell in common.",
            "Cells are compared if experiment and parameters are equal; `bench show` prints them.",
        )


def _confirm(candidate_session: Stored, comparison: TwoSessions, *, out: Path) -> Stored | None:
    """Measure the alarmed cells again in a fresh session, and return it; None if there is no alarm."""
    from bench.analysis import two_sessions

    if not comparison.alarms:
        say("No alarm to confirm.")
        return None
    confirming.check_code(candidate_session.session, list(candidate_session.runs))
    session = confirming.fresh(
        candidate_session.session, candidate_session.runs, comparison.alarms, command=typed_command()
    )
    target = create(session.target, session.options)
    note = f"Confirming on target {target.name}. Session {session.id}, kept in {out / session.id}."
    result = measure_new(out, session, target, note)
    result.write_report()
    fresh = two_sessions.Stored(session=result.session, runs=result.runs)
    differences = two_sessions.unlike(candidate_session, fresh)
    if differences:
        raise NotComparable(
            f"{'; '.join(difference.text for difference in differences)}. So the new session {session.id} does not repeat the candidate.",
            f"Run --confirm on the machine that measured {candidate_session.session.id}.",
        )
    return fresh


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text)
    else:
        store.write_whole(output, text.encode())


def _fail_on(comparison: TwoSessions, conditions: tuple[Condition, ...], *, confirmed: bool) -> None:
    """Raise RegressionFound if a condition names a row's verdict."""
    from bench.reports.two_sessions import describe_row, format_ratio, format_row_verdict

    failing = list(fail_on.failing(conditions, comparison.rows, confirmed=confirmed))
    if failing:
        first = failing[0]
        raise RegressionFound(
            f"{len(failing)} of {len(comparison.rows)} numbers; the first, {describe_row(first)}: {format_row_verdict(first)},"
            f" {format_ratio(first.found)} times the baseline's.",
            "" if confirmed or not first.is_alarm else "--confirm checks it against a new session.",
        )
