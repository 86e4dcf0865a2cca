"""Declares the metrics of inference, and gets their samples from what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

from bench.context import Measured
from bench.data import digits
from bench.experiments.inference.arms import BARE_CALLS, EMPTY_CALLS, RAY
from bench.experiments.inference.params import Params
from bench.experiments.inference.predictors import Answers, success_rate
from bench.experiments.toolkit import parts, response_times
from bench.metrics import rate, ratio, seconds, size
from bench.model import Arm, Interval, Metric, Sample

THROUGHPUT = rate("throughput_inputs_per_second", "inputs/s", "Inputs answered and checked per second.")
END_TO_END = seconds(
    "end_to_end_seconds",
    "Start-up and the first pass over all inputs: what a user waits for.",
    means="end to end",
    is_total=True,
)
STARTUP = seconds("startup_seconds", "Time until every actor has loaded the network and answers.")
FIRST_RESULT = seconds("first_result_seconds", "Start-up and the first batch on the data path.")
LATENCIES = {
    share: seconds(
        f"closed_loop_latency_p{share}_seconds",
        f"Call latency under closed-loop load, {share}th percentile: from submission until the answer is seen.",
        means="median latency" if share == 50 else "",
        distribution="closed loop latency",
        percentile=float(share),
    )
    for share in (50, 90, 99)
}
SUCCESS = ratio("success_ratio", "calls/call", "Share of the calls that gave an answer.", better="higher")
PAYLOAD = size(
    "payload_bytes_per_input",
    "B/input",
    "Bytes that the calls carry for one input, to the actor and back.",
    means="payload",
)
METRICS = (
    *(THROUGHPUT, END_TO_END, STARTUP, FIRST_RESULT, *LATENCIES.values(), SUCCESS, PAYLOAD),
    *(parts.BUSY, parts.COMPUTE, parts.STRAGGLER, parts.SERIALISE),
    *response_times.METRICS,
)

SPAN_BYTES = 16  # two integers, in place of the rows
ANSWER_BYTES = 1


@dataclass(frozen=True, kw_only=True)
class Pass:
    """All inputs, once: checked, and what it took."""

    problem: str | None
    digest: str | None = None  # of the answers; None where there are none
    calls: Answers | None = None  # None where Ray did not carry them


def samples(arm: Arm, measured: Measured[Pass], params: Params) -> Iterator[Sample]:
    """The values of one arm in one turn, or the reason that there are none."""
    problem = next((done.problem for done in measured.results if done.problem), None)
    seconds, passes = measured.interval.seconds, len(measured.results)
    yield sample_or_reason(measured, THROUGHPUT, passes * params.inputs / seconds, problem)
    if arm == RAY:
        yield measured.sample(SUCCESS, success_rate([done.calls for done in measured.results if done.calls]))
        yield measured.sample(PAYLOAD, payload_bytes_per_input(params))
    if arm in (RAY, EMPTY_CALLS, BARE_CALLS):
        yield measured.sample(
            parts.SERIALISE, fsum(done.calls.driver_seconds for done in measured.results if done.calls)
        )


def latencies(timed: Sequence[Measured[Pass]]) -> Iterator[Sample]:
    """Percentiles over all calls of these turns: those of samples must not be averaged."""
    whole = replace(timed[-1], interval=Interval(timed[0].interval.begin, timed[-1].interval.end))
    passes = [done for measured in timed for done in measured.results]
    problem = next((done.problem for done in passes if done.problem), None)
    calls = sorted(one for done in passes if done.calls for one in done.calls.latencies)
    for share, metric in LATENCIES.items():
        needed = 1000 // (100 - share)
        few = None if len(calls) >= needed else f"{len(calls)} calls; p{share} needs {needed}"
        yield sample_or_reason(whole, metric, percentile(calls, share) if calls else 0.0, problem or few)


def percentile(ordered: Sequence[float], share: int) -> float:
    """The least of `ordered` values that `share` per cent of them do not exceed: one that was measured."""
    return ordered[-(-len(ordered) * share // 100) - 1]


def payload_bytes_per_input(params: Params) -> float:
    """What the calls carry for one input: its numbers or its share of two integers, and its answer."""
    if params.data_path == "by-value":
        return digits.PIXELS * (8 if params.dtype == "float64" else 4) + ANSWER_BYTES
    return SPAN_BYTES / params.batch + ANSWER_BYTES


def sample_or_reason(measured: Measured[Any], metric: Metric, value: float, problem: str | None) -> Sample:
    """The value of `metric`, or the problem in its place."""
    return measured.sample(metric, value) if problem is None else measured.missing(metric, problem)
