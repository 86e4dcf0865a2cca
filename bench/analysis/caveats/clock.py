"""Finds samples that are too short for the clock, the scheduler and the cost of timing."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.caveats.evidence import Caveat, Evidence, about
from bench.analysis.table import Selection, numbered
from bench.counts import plural
from bench.model import Clock

SHORT_SECONDS = 0.1
CLOCK_STEPS = 1000  # least length of a sample in steps of the clock
EMPTY_SAMPLES = 50  # least length of a sample in durations of an empty one
RAW_SECONDS = 0.001  # pyperf's limit: anything shorter is not a measurement


def least_seconds(clock: Clock | None) -> tuple[float, str]:
    """Return the least length of a sample for the driver's clock, and the reason. None: the clock is unknown."""
    needs = [(SHORT_SECONDS, "the clock and the scheduler weigh on them")]
    if clock:
        needs += [
            (CLOCK_STEPS * clock.step_seconds, f"a sample needs {CLOCK_STEPS} steps of the driver's clock"),
            (
                EMPTY_SAMPLES * clock.empty_sample_seconds,
                f"a sample needs {EMPTY_SAMPLES} times the duration of an empty one",
            ),
        ]
    return max(needs, key=lambda need: need[0])


def short_samples(evidence: Evidence) -> Iterator[Caveat]:
    """Timed intervals, of any arm, point or metric, that are shorter than the clock of their run requires."""
    for cell in evidence.cells:
        lengths: list[float] = []
        short: list[float] = []
        needs = {(SHORT_SECONDS, "")}
        usable = evidence.usable_of(cell)
        for run, timed in zip(usable.runs, _lengths(usable), strict=True):
            need = least_seconds(run.facts.clock if run.facts else None)
            lengths += timed
            if min(timed, default=need[0]) < need[0]:
                needs.add(need)
                short += [seconds for seconds in timed if seconds < need[0]]
        if short:
            seconds, reason = max(needs)
            text = (
                f"{plural(len(short), 'sample')} of {len(lengths)} shorter than {_ms(seconds)}"
                f" (the shortest {_ms(min(short))}): {reason}."
            )
            raw = sum(seconds < RAW_SECONDS for seconds in short)
            if raw:
                text += f" {raw} shorter than {_ms(RAW_SECONDS)}: those are not measurements."
            yield Caveat(severity="weakens", about=about(cell), text=text)


def _lengths(usable: Selection) -> list[list[float]]:
    """Return the seconds of each timed interval, by run, without warm-ups; several metrics of one interval count once.

    Intervals timed once, like a start, are left out, since they cannot be made longer; so are the steps of a curve.
    """
    import numpy as np

    table, samples, rows = usable.table, usable.table.samples, usable.samples
    rows = rows[(samples.turn[rows] > 0) & ~(table.warm_samples[rows] | table.is_curve[rows] | table.is_gap[rows])]
    _, first = np.unique(numbered(samples.end[rows], samples.begin[rows], samples.run[rows]), return_index=True)
    by_run: dict[int, list[float]] = {at: [] for at in usable.at}
    for run, seconds in zip(samples.run[rows[first]].tolist(), samples.seconds[rows[first]].tolist(), strict=True):
        by_run[run].append(seconds)
    return list(by_run.values())


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds >= SHORT_SECONDS else f"{1000 * seconds:.3g} ms"
