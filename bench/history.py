"""What earlier sessions took, so that a plan can say how long the next one will."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median

from bench import store
from bench.errors import RecordDamaged
from bench.model import Run
from bench.plan import JOB_SECONDS, run_key

SESSIONS = 10  # the last ones; older ones say little of this machine now


def run_seconds(out: Path) -> dict[tuple[str, str], float]:
    """Seconds that a run took, by topology and `plan.run_key`: the median over the last sessions in `out`."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for folder in store.session_folders(out)[-SESSIONS:]:
        try:
            runs = store.load_runs(folder, store.load_session(folder))
        except RecordDamaged:
            continue  # `bench show` says so; it is no reason not to plan
        for run in runs:
            if run.status == "ok":
                found[run.spec.topology.name, run_key(run.spec)].append(_seconds(run))
    return {key: median(values) for key, values in found.items()}


def _seconds(run: Run) -> float:
    intervals = [usage.interval for usage in run.usage] + [sample.interval for sample in run.samples]
    measured = max(i.end for i in intervals) - min(i.begin for i in intervals) if intervals else 0.0
    return JOB_SECONDS + measured
