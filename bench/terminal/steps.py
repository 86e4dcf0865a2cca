"""Shows the steps of `bench up` on stderr: a line for each one that is done, and on a terminal the one in progress."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from bench.sanitize import clean_text
from bench.targets.steps import Steps
from bench.terminal.output import Level, level, say


def describe_step(done: str, seconds: float) -> str:
    """A step and its time: "cluster made 41 s". A fast one keeps a decimal."""
    return f"{done} {seconds:.0f} s" if seconds >= 9.95 else f"{done} {seconds:.1f} s"


class StepDisplay:
    """A context in which `steps` are shown, and nothing at the level quiet."""

    def __init__(self) -> None:
        self.steps = Steps(started=self._show, finished=self._report)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and level() != Level.QUIET:
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def _show(self, doing: str) -> None:
        if not self._bar:
            return
        if self._task is None:
            self._task = self._bar.add_task(clean_text(doing), total=None)
        else:
            self._bar.update(self._task, description=clean_text(doing))

    def _report(self, done: str, seconds: float) -> None:
        if not self._bar:
            say(describe_step(done, seconds))
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
        self._bar.console.print(clean_text(describe_step(done, seconds)), highlight=False, markup=False)
