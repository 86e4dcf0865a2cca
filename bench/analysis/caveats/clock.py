"""Caveats about how long was timed: samples that the clock, the scheduler and the harness itself weigh on."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.caveats.evidence import Caveat, Evidence, about
from bench.analysis.numbers import plural
from bench.model import Clock, Run

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
        for run in evidence.usable_of(cell):
            need = least_seconds(run.facts.clock if run.facts else None)
            timed = _lengths(run)
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


def _lengths(run: Run) -> list[float]:
    """Seconds of each timed interval of a turn that counts, several metrics of one interval once.

    What is timed once, as a start is, cannot be made longer; the steps of a curve are parts of a sample.
    """
    intervals = {
        (sample.interval.begin, sample.interval.end)
        for sample in run.samples
        if sample.turn and not sample.warmup and sample.step is None and sample.value is not None
    }
    return [end - begin for begin, end in intervals]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds >= SHORT_SECONDS else f"{1000 * seconds:.3g} ms"
