"""Where the time of an arm's work went, as a profiler saw it: of each cell the first good run that has a profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.cells import CellReport
from bench.model import Run


def of_cell(cell: CellReport, runs: Sequence[Run]) -> Iterator[tuple[str, str, str]]:
    """A title, the profile, and the file that it is from."""
    for run in runs:
        if run.status == "ok" and run.profiles and (run.spec.experiment, run.spec.cell) == (cell.experiment, cell.cell):
            for arm, profile in run.profiles.items():
                source = f"results/{run.spec.session}/runs/{run.spec.folder}/files/profile-{arm}.txt"
                yield f"Where the time of {arm} went, in seconds, off the clock", profile, source
            return
