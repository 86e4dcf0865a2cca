"""Makes the report of the blocks that have ended, once for the terminal, the boards and the stopping rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.model import Session
from bench.record import store

if TYPE_CHECKING:
    from bench.analysis import Report


@dataclass(kw_only=True)
class ReportSoFar:
    """The report of a session in progress. It is made when the first one asks for it, and again after another block."""

    folder: Path
    session: Session
    _report: Report | None = None

    def block_ended(self) -> None:
        """Forget the report: another block has ended."""
        self._report = None

    def read(self) -> Report:
        """The report of the runs until the last block that has ended."""
        if self._report is None:
            from bench.analysis import build  # heavy: the command line must start at once

            self._report = build(self.session, store.load_runs(self.folder, self.session))
        return self._report
