"""A node whose memory gets full while a run goes on, for real."""

from __future__ import annotations

import time

from person import Bench

# More than a node has. The kernel looks for a victim in the node's control group, and takes one of Ray's workers first.
EAT = ("python", "-c", "import time; eaten = b'x' * (6 << 30); time.sleep(60)")


def wait_until_measuring(bench: Bench, before: set[str], seconds: float = 120) -> None:
    """Return as soon as a session that was not there before has counted what a node used in a sample."""
    until = time.monotonic() + seconds
    while True:
        sessions = [path for path in (bench.folder / "results").glob("2*") if path.name not in before]
        records = [record for path in sessions for record in path.glob("runs/*/samples.jsonl")]
        if any('"usage":{' in record.read_text() for record in records):
            return
        assert time.monotonic() < until, "no sample came"
        time.sleep(0.1)


def sessions(bench: Bench) -> set[str]:
    """The names of the sessions that there are."""
    return {path.name for path in (bench.folder / "results").glob("2*")}
