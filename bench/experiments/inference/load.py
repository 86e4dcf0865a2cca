"""Inference under open-loop load: a request is one batch, by the data path, to the actor with the fewest in hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bench.context import Context
from bench.experiments.inference.predictors import Predictors
from bench.experiments.toolkit.open_loop import RayCalls
from bench.experiments.toolkit.placement import Span, spans
from bench.experiments.toolkit.response_times import MOST_OUTSTANDING, ResponseTimes, Subject
from bench.model import Arm


class Load(Protocol):
    """What is read of inference's params."""

    @property
    def inputs(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def actors(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def open_loop(self) -> str: ...
    @property
    def open_loop_seconds(self) -> float: ...


MOST_BYTES = 64 * 2**20  # that requests without an answer carry: they lie in the object store


def most_outstanding(bytes_per_request: float, in_flight: int) -> int:
    """Requests without an answer, at most: what the object store has room for, or twice what the closed loop has."""
    return max(2 * in_flight, min(MOST_OUTSTANDING, int(MOST_BYTES / bytes_per_request)))


def response_times(
    arm: Arm, predictors: Predictors, expected: bytes, *, params: Load, context: Context, bytes_per_request: float
) -> ResponseTimes:
    """Those of the actors' answers to one batch each, over and over; `expected` has the answer to every input."""
    batches = spans(0, params.inputs, params.batch)

    def batch(number: int) -> Span:
        return batches[number % len(batches)]

    def is_right(number: int, answer: Any) -> bool:
        start, stop = batch(number)
        return bool(answer == expected[start:stop])

    def by_node(seats: Sequence[int]) -> Mapping[str, float]:
        nodes = [predictors.node_of(seat) for seat in seats]
        return predictors.inputs_by_node(nodes, [batch(number) for number in range(len(seats))])

    subject = Subject(
        arm=arm,
        calls=RayCalls(lambda actor, number: predictors.request(actor, batch(number)), params.actors),
        in_flight=params.in_flight,
        is_right=is_right,
        by_node=by_node,
        most_outstanding=most_outstanding(bytes_per_request, params.in_flight * params.actors),
    )
    return ResponseTimes(context=context, subject=subject, choice=params.open_loop, seconds=params.open_loop_seconds)
