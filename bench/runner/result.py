"""Reports a finished session, and decides from its runs whether the command succeeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bench.counts import plural
from bench.errors import DoesNotFit, NothingMeasured, RecordDamaged, RunFailed, RunInvalid
from bench.history import summaries
from bench.model import Run, Session
from bench.record import store
from bench.terminal.answers import say_json
from bench.terminal.output import page_layout, say

if TYPE_CHECKING:
    from bench.analysis import Report


@dataclass(frozen=True, kw_only=True)
class SessionResult:
    """A session that was run, with all its runs."""

    folder: Path
    session: Session  # if it ended early, with the reason
    runs: list[Run]
    dashboards: str = ""  # link to them, if the deployment stays up

    @cached_property
    def report(self) -> Report:
        """The report of the session."""
        from bench import analysis

        return analysis.build(self.session, self.runs)

    def write_report(self) -> None:
        """Write the report into the session's folder as text, HTML and JSON. Raises CannotWrite."""
        from bench import reports
        from bench.history import report_file
        from bench.history.timelines import with_timelines

        text = reports.render("text", self.report, self.runs, short=True)
        store.write_whole(self.folder / "report.txt", text.encode())
        runs = with_timelines(self.folder, self.report, self.runs)
        page = reports.render("html", self.report, runs, dashboards=self.dashboards)
        store.write_whole(self.folder / "report.html", page.encode())
        report_file.keep(self.folder, summaries.read(self.folder), self.report)

    def text(self) -> str:
        """The report for the terminal."""
        from bench import reports

        return reports.render("text", self.report, self.runs, short=True, **page_layout())


def announce(result: SessionResult, *, as_json: bool) -> None:
    """Print the report, and raise what `judge` raises. Raises DoesNotFit if nothing was run."""
    if result.session.ended and not result.runs:
        raise DoesNotFit(f"Nothing was run: {result.session.ended}.", "Give more --budget, or a smaller profile.")
    result.write_report()
    if as_json:
        say_json("report", result.report)
    else:
        typer.echo(result.text(), nl=False)
    if again := result.report.excluded_blocks:
        say(f"Measure the {plural(len(again), 'excluded block')} again: `bench resume {result.session.id} --excluded`.")
    say(f"Kept as files: {result.folder / 'report.html'}, report.txt and report.json.")
    if result.dashboards:
        say(f"Dashboards of this session, until `bench down`: {result.dashboards}")
    judge(result.session, result.runs)


def is_precise(read_report: Callable[[], Report], session: Session) -> bool:
    """Whether the headlines' confidence intervals are as narrow as the session asks for. The report is read only if it asks."""
    from bench.analysis import stopping

    if session.precision_share is None:
        return False
    return stopping.precision_reached(stopping.headline_ratios(read_report()), session.precision_share)


def judge(session: Session, runs: list[Run]) -> None:
    """Raise if a value is missing or invalid, so that the exit code is not that of success."""
    last = store.last_attempts(runs)
    # A run counts as failed if it was stopped by anything but the user.
    failed = [run for run in last if run.status == "failed" or (run.status == "stopped" and not session.ended)]
    invalid = [run for run in last if run.status == "invalid"]
    damaged = [run for run in last if run.status == "damaged"]
    if failed:
        raise RunFailed(
            f"{len(failed)} of {len(session.specs)} runs failed; the first, {failed[0].spec.id}:"
            f" {'; '.join(failed[0].reasons[:1]) or 'without a message'}.",
            f"See it with `bench show {session.id} {failed[0].spec.folder}`; try them again with `bench resume {session.id}`.",
        )
    if invalid:
        raise RunInvalid(
            f"{len(invalid)} of {len(session.specs)} runs {_be(invalid)} invalid; the first, {invalid[0].spec.id}:"
            f" {invalid[0].reasons[0]}.",
            f"See it with `bench show {session.id} {invalid[0].spec.folder}`.",
        )
    if damaged:
        raise RecordDamaged(
            f"{len(damaged)} of {len(session.specs)} runs {_be(damaged)} damaged; the first, {damaged[0].spec.id}:"
            f" {damaged[0].reasons[0]}.",
            f"Run them again with `bench resume {session.id}`.",
        )
    if without := list(_without_headline(session, last)):
        raise NothingMeasured(
            f"No run measured {' or '.join(without)}.", f"See why with `bench show {session.id} {last[0].spec.folder}`."
        )


def _be(runs: list[Run]) -> str:
    return "is" if len(runs) == 1 else "are"


def _without_headline(session: Session, runs: list[Run]) -> Iterator[str]:
    """Yield the headline of every experiment that has no value of it in `runs`, with the first reason."""
    for experiment in dict.fromkeys(run.spec.experiment for run in runs):
        headline = session.metrics[experiment][0].name
        samples = [
            sample
            for run in runs
            if run.spec.experiment == experiment
            for sample in run.samples
            if sample.metric == headline and not sample.warmup
        ]
        if not any(sample.value is not None for sample in samples):
            reason = next((sample.reason for sample in samples if sample.reason), "")
            yield f"the {headline} of {experiment}" + (f" ({reason})" if reason else "")
