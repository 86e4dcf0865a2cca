"""Reports the steps in which a target makes a cluster, each with the time that it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


def _ignore(*_: object) -> None:
    """The listener of a caller that wants no reports."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Two listeners: one for what is being done, one for what is done and the seconds that it took."""

    started: Callable[[str], None] = _ignore
    finished: Callable[[str, float], None] = _ignore

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[Callable[[str], None]]:
        """Report one step, such as "making the cluster", "cluster made". Yields a function that reports progress, such as "1 of 2".

        A step that raises is not reported as done. The latest progress is part of both reports.
        """
        start = time.monotonic()
        latest = ""

        def report_progress(progress: str) -> None:
            nonlocal latest
            if progress != latest:
                latest = progress
                self.started(f"{doing} {progress}")

        self.started(doing)
        yield report_progress
        self.finished(f"{done} {latest}".strip(), time.monotonic() - start)


SILENT = Steps()
