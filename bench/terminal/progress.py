"""Prints progress on stderr: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from bench.counts import plural
from bench.model import Line, RunResult, Spec, Topology
from bench.planning.estimate import Pace
from bench.planning.plan import Known, format_duration
from bench.terminal.output import Level, level, say
from bench.terminal.steps import describe_step

if TYPE_CHECKING:
    from bench.analysis import Report

SLOW_STEP_SECONDS = 30.0  # of making a cluster
TELL_SECONDS = 10.0  # between two lines on the same work, where there is no bar


@dataclass
class WorkInHand:
    """How far a run is with its long work, by its own words: how much, how fast, how long it will yet take."""

    words: str = ""
    _first: tuple[float, float] = (0.0, 0.0)  # when it began, and how much was done by then
    _last: tuple[float, float] = (0.0, 0.0)  # done, total
    _told: float = 0.0

    def came(self, progress: tuple[float, float], now: float) -> None:
        """Take in how much is done of how much."""
        done, total = progress
        last_done, last_total = self._last
        if not self.words or done < last_done or total != last_total or last_done >= last_total:
            self._first = (now, done)  # other work than before: short work is heard of at its end alone
        self._last = progress
        begun, done_then = self._first
        rate = (done - done_then) / (now - begun) if now > begun else 0.0
        pace = f", {rate:,.4g}/s, {format_duration((total - done) / rate)} left" if rate > 0 else ""
        self.words = f"{done:,.0f} of {total:,.0f}{pace}"

    def due(self, now: float) -> str:
        """The text for a plain log, if it is new and the last one was printed some time ago."""
        if not self.words or now - self._told < TELL_SECONDS:
            return ""
        self._told = now
        return self.words


class Progress:
    """Prints the progress of a session; a Listener."""

    def __init__(
        self,
        *,
        todo: tuple[Spec, ...],
        known: Known,
        so_far: Callable[[], Report],
        left_seconds: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._todo = todo
        self._so_far = so_far  # the report of the blocks until now
        self._first_block = todo[0].block if todo else 0
        self._left_seconds = left_seconds  # of the budget
        self._ended = 0
        self._samples = 0
        self._work = WorkInHand()
        self._pace = Pace(todo, known)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and level() != Level.QUIET:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[eta]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=len(self._todo), eta=self._eta())
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def host_is_busy(self, block: int, what: str) -> None:
        self._tell(f"block {block} {what}", is_step=True)

    def cluster_wanted(self, topology: Topology, block: int) -> None:
        nodes, cpus = plural(topology.nodes, "node"), plural(topology.cpus_per_node, "CPU")
        self._tell(f"block {block}: starting {topology.name}, {nodes} of {cpus}")

    def cluster_step_started(self, doing: str) -> None:
        if self._bar:
            self._bar.update(self._task, description=doing, eta=self._eta())

    def cluster_step_finished(self, done: str, seconds: float) -> None:
        """Print a slow step in every block, the others in the first one."""
        self._tell(describe_step(done, seconds), is_step=seconds >= SLOW_STEP_SECONDS)

    def dashboards_ready(self, link: str) -> None:
        self._tell(f"dashboards of this session: {link}", is_step=True)

    def run_begun(self, spec: Spec) -> None:
        self._samples = 0
        self._work = WorkInHand()
        params = " ".join(f"{name}={value}" for name, value in spec.params.items())
        self._tell(f"{spec.folder} begins: {params}", at=Level.VERBOSE)
        self._show(spec)

    def line_came(self, spec: Spec, line: Line) -> None:
        if line.progress:
            self._work.came(line.progress, time.monotonic())
            self._show(spec)
        if line.sample:
            self._samples += 1
            self._show(spec)

    def cluster_silent(self, spec: Spec, what: str) -> None:
        self._tell(f"{spec.folder}: {what}", is_step=True)

    def run_ended(self, spec: Spec, result: RunResult) -> None:
        self._ended += 1
        self._pace.ended = self._ended
        why = f": {result.reasons[0]}" if result.reasons else ""
        window = {True: "", False: "; Prometheus does not agree with the record", None: ""}[result.reconciled]
        count = f"{self._ended}/{len(self._todo)}"
        self._tell(f"{count} {spec.folder}: {result.status}{why}{window} ({self._eta()})", is_step=True)

    def block_ended(self, block: int) -> None:
        """Show what the blocks so far say; after the last one the report does."""
        if level() == Level.QUIET or self._ended == len(self._todo):
            return
        from bench.reports import interim  # heavy: the command line must start at once

        report = self._so_far()
        done = f"block {block} of {report.blocks} done, {self._eta()}"
        if block == self._first_block:
            self._tell("\n".join([f"{done}:", *(f"  {line}" for line in interim.values(report))]), is_result=True)
        else:
            self._tell(f"{done}: {interim.ratios(report)}", is_result=True)

    def _eta(self) -> str:
        """What is left, of the runs and of the budget."""
        budget = self._left_seconds()
        until = "" if budget is None else f", {format_duration(max(budget, 0.0))} of the budget"
        return f"about {format_duration(self._pace.left_seconds)} left{until}"

    def _show(self, spec: Spec) -> None:
        if self._bar:
            self._bar.update(self._task, description=f"{spec.folder}: {self._in_hand()}", eta=self._eta())
        elif words := self._work.due(time.monotonic()):
            say(f"{spec.folder}: {words}")

    def _in_hand(self) -> str:
        return self._work.words or plural(self._samples, "sample")

    def _tell(self, text: str, *, is_step: bool = False, is_result: bool = False, at: Level = Level.USUAL) -> None:
        if level() < at:
            return
        if self._bar:
            style = None if is_result else "dim"
            # Long lines are left to the terminal: a link with line breaks in it cannot be opened.
            self._bar.console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)
            self._bar.update(self._task, completed=self._ended, eta=self._eta())
        elif is_step or is_result or self._ended == 0 or level() == Level.VERBOSE:
            say(text)
