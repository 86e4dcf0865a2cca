"""Times the data frames of a session: `task time:frames -- SAMPLES`, 10,000 samples by default.

The session is drawn from a seed and written to a disk. `pandas.read_json` of the same samples.jsonl files is the comparison: it reads the lines,
and neither checks them nor joins them with their runs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from made_up import ARMS, METRICS
from made_up_sessions import a_session_on_disk

import bench

ROUNDS = 7
SAMPLES_IN_RUN = 47  # of one run of the session that is drawn


def main(samples: str = "10000") -> None:
    """Print the median seconds of both ways, and their ratio round by round."""
    import pandas as pd
    import pyarrow as pa  # noqa: F401, before the clock starts: the import takes as long as the work

    with tempfile.TemporaryDirectory() as folder:
        blocks = -(-int(samples) // (2 * SAMPLES_IN_RUN))
        written = a_session_on_disk(Path(folder), cells=1, blocks=blocks, metrics=METRICS, arms=ARMS)
        files = sorted(written.glob("runs/*/samples.jsonl"))

        def read_frames() -> Any:
            session = bench.load(written)
            return session.samples, session.usage

        def read_json() -> Any:
            return pd.concat([pd.read_json(file, lines=True) for file in files])

        (rows, usage), _ = read_frames(), read_json()
        rounds = [(seconds(read_frames), seconds(read_json)) for _ in range(ROUNDS)]
    ours, theirs = (median(each) for each in zip(*rounds, strict=True))
    ratios = sorted(one / other for one, other in rounds)
    print(f"{len(files):,} runs, {len(rows):,} samples, {len(usage):,} rows of usage")
    print(f"bench.load, samples and usage: {ours:.3f} s; pandas.read_json of the same files: {theirs:.3f} s")
    print(f"ratio: median {median(ratios):.2f}, {ROUNDS} rounds from {ratios[0]:.2f} to {ratios[-1]:.2f}")


def seconds(work: Callable[[], object]) -> float:
    """Seconds on the clock that `work` takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main(*sys.argv[1:])
