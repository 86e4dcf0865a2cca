"""Times the analysis of a large session: `task time:analysis -- CELLS BLOCKS`, 100 cells of 60 blocks by default.

The session is drawn from a seed, each run with 47 samples and 21 rows of usage a node, like one of inference with 3 turns that
count. Timing begins with columns in memory, as reading leaves them, and ends with the value that every renderer reads.
Reading the record of one cell from a disk is timed by itself.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from made_up import ARMS, METRICS, made_up
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.model import to_json
from bench.record import store

T = TypeVar("T")


def main(cells: str = "100", blocks: str = "60") -> None:
    """Print the seconds of CPU and of the clock, and how large the report is."""
    session, runs = made_up(cells=int(cells), blocks=int(blocks))
    rows = sum(len(run.samples) + len(run.usage) for run in runs)
    analysis.build(*made_up(cells=1, blocks=6))  # imports and tables that the first report of a process makes
    gc.collect()
    report, cpu, wall = timed(lambda: analysis.build(session, runs))
    print(f"{cells} cells x {blocks} blocks: {len(runs):,} runs, {rows:,} samples and rows of usage")
    print(f"analysis: {cpu:.2f} s of CPU, {wall:.2f} s on the clock; {1e3 * cpu / int(cells):.1f} ms a cell")
    print(f"report: {len(to_json(report)):,} bytes of JSON")
    with tempfile.TemporaryDirectory() as folder:
        written = a_session_on_disk(Path(folder), cells=1, blocks=int(blocks), metrics=METRICS, arms=ARMS)
        _, cpu, wall = timed(lambda: store.load_runs(written, store.load_session(written)))
    print(f"reading one cell of {blocks} blocks from disk: {cpu:.2f} s of CPU, {wall:.2f} s on the clock")


def timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """What `work` gives, with its seconds of CPU and on the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    return found, time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    main(*sys.argv[1:])
