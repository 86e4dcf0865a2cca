"""Run what a stopped or failed session lacks.

These are the runs that were never started, were stopped, failed or are damaged, and those left out when the session
ended early. With --excluded, blocks that other processes disturbed are measured again as a whole: that is decided
without looking at any result. Changes of code or versions since then are printed first. A session whose plan was
edited is refused.

Example: bench resume latest
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from bench.analysis import exclusions
from bench.analysis.comparison import attempts_that_count
from bench.analysis.table import Table
from bench.counts import plural
from bench.errors import BadInput
from bench.model import Session
from bench.options import DEFAULT_OUT, AsJson, Out, SessionName
from bench.record import store
from bench.runner import changed, session_lock
from bench.runner.measure import check_nodes, describe, measure
from bench.runner.report_so_far import ReportSoFar
from bench.runner.result import announce, is_precise
from bench.runner.session import remaining
from bench.targets import create
from bench.terminal.asking import typed_command
from bench.terminal.output import say

Excluded = Annotated[bool, Option("--excluded", help="Measure blocks that were excluded for interference again.")]


def command(session: SessionName, excluded: Excluded = False, as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    folder = store.find(out, session)
    planned = store.load_session(folder)
    work = remaining(folder, planned, _excluded_blocks(folder, planned) if excluded else ())
    say(f"{planned.id}: {plural(len(work.kept), 'run')} kept, {len(work.again)} again, {len(work.new)} new.")
    if not work.todo:
        without = ", and no block of it is excluded" if excluded else ""
        raise BadInput(f"{planned.id} is complete{without}.", f"See it with `bench report {planned.id}`.")
    store.check_writable(folder)
    if planned.ended:  # the budget starts anew; if the precision was reached, the user wants all blocks
        say(f"It ended early: {planned.ended}.")
        so_far = ReportSoFar(folder=folder, session=planned)
        precision = "" if is_precise(so_far.read, planned) else planned.precision
        work = replace(work, session=replace(planned, ended="", precision=precision))
    say(f"This adds {describe(work)}.")
    if changes := changed.since(store.load_runs(folder, planned), is_local=planned.target == "local"):
        say(f"Changed since the earlier runs: {'; '.join(changes)}. To compare like with like, start a new session.")
    target = create(planned.target, planned.options)
    check_nodes(work.todo, target)
    with session_lock.alone(planned, folder, typed_command()):
        result = measure(work, target)
    announce(result, as_json=as_json)


def _excluded_blocks(folder: Path, session: Session) -> Collection[int]:
    """Return the blocks that others disturbed, by the attempts that count."""
    table = Table(tuple(attempts_that_count(store.load_runs(folder, session)).values()))
    return exclusions.of_runs(table.runs, exclusions.conditions(table)).reasons
