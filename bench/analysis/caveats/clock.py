"""Caveats about how long was timed: samples that the clock, the scheduler and the harness itself weigh on."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.caveats.evidence import Caveat, Evidence, about
from bench.analysis.number_format import plural
from bench.analysis.table import Selection, numbered
from bench.model import Clock

SHORT_SECONDS = 0.1
CLOCK_STEPS = 1000  # in a sample, at the least
EMPTY_SAMPLES = 50  # that a sample lasts as long as, at the least
RAW_SECONDS = 0.001  # as pyperf has it: what is shorter is no measurement


def least_seconds(clock: Clock | None) -> tuple[float, str]:
    """How long a sample must last where the driver's clock is like this, and why. None: nothing is known of it."""
    needs = [(SHORT_SECONDS, "the clock and the scheduler weigh on them")]
    if clock:
        needs += [
            (CLOCK_STEPS * clock.step_seconds, f"a sample needs {CLOCK_STEPS} steps of the driver's clock"),
            (
                EMPTY_SAMPLES * clock.empty_sample_seconds,
                f"a sample needs {EMPTY_SAMPLES} times what it costs to time nothing",
            ),
        ]
    return max(needs, key=lambda need: need[0])


def short_samples(evidence: Evidence) -> Iterator[Caveat]:
    """Timed intervals, whatever arm, point or metric is theirs, that are shorter than the clock of their run asks for."""
    for cell in evidence.cells:
        lengths: list[float] = []
        short: list[float] = []
        needs = {(SHORT_SECONDS, "")}
        those = evidence.usable_of(cell)
        for run, timed in zip(those.runs, _lengths(those), strict=True):
            need = least_seconds(run.facts.clock if run.facts else None)
            lengths += timed
            if min(timed, default=need[0]) < need[0]:
                needs.add(need)
                short += [seconds for seconds in timed if seconds < need[0]]
        if short:
            seconds, why = max(needs)
            text = (
                f"{plural(len(short), 'sample')} of {len(lengths)} shorter than {_ms(seconds)}"
                f" (the shortest {_ms(min(short))}): {why}."
            )
            raw = sum(seconds < RAW_SECONDS for seconds in short)
            if raw:
                text += f" {raw} shorter than {_ms(RAW_SECONDS)}: what they gave is no measurement."
            yield Caveat(severity="weakens", about=about(cell), text=text)


def _lengths(those: Selection) -> list[list[float]]:
    """By run, seconds of each timed interval of a turn that counts, several metrics of one interval once.

    What is timed once, as a start is, cannot be made longer; the steps of a curve are parts of a sample.
    """
    import numpy as np

    table, samples, rows = those.table, those.table.samples, those.samples
    rows = rows[(samples.turn[rows] > 0) & ~(table.warm_samples[rows] | table.is_curve[rows] | table.is_gap[rows])]
    _, first = np.unique(numbered(samples.end[rows], samples.begin[rows], samples.run[rows]), return_index=True)
    found: dict[int, list[float]] = {at: [] for at in those.at}
    for run, seconds in zip(samples.run[rows[first]].tolist(), samples.seconds[rows[first]].tolist(), strict=True):
        found[run].append(seconds)
    return list(found.values())


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds >= SHORT_SECONDS else f"{1000 * seconds:.3g} ms"
