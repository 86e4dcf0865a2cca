"""Carries payloads by gloo through torch.distributed: one end sends and the other receives, or both reduce.

A payload is sent as 64-bit integers, so that an all-reduce moves as many bytes as every other arm, and its sum can be
checked to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from bench.experiments.network import payload
from bench.experiments.network.points import WORD_BYTES, Point
from bench.experiments.network.transports import Transport

if TYPE_CHECKING:
    from bench.experiments.network.payload import Checker, Words

Kind = Literal["send-recv", "all-reduce"]
TIMEOUT_SECONDS = 60.0
SENDER, RECEIVER = 0, 1  # ranks
LAST_TAG = 1_000_000  # streams have the tags below


class Gloo(Transport):
    """The sending end. `start(kind, point)` starts the other end's loop, and gives a function that waits for its end."""

    def __init__(self, kind: Kind, start: Callable[[Kind, Point], Callable[[], None]], checker: Checker) -> None:
        self._kind = kind
        self._start = start
        self._checker = checker
        self._wait: Callable[[], None] = lambda: None
        self._results: list[Any] = []
        self._streams = 0

    def begin(self, point: Point) -> None:
        self._streams = point.streams
        self._wait = self._start(self._kind, point)

    def end(self) -> None:
        self._wait()

    def prepare(self, payloads: Sequence[Words]) -> None:
        import torch
        import torch.distributed as dist

        dist.recv(torch.empty(1, dtype=torch.int64), src=RECEIVER, tag=LAST_TAG)  # the other end is ready
        self._results = [_tensor(words.copy()) for words in payloads] if self._kind == "all-reduce" else []

    def carry(self, payloads: Sequence[Words]) -> list[float]:
        import torch
        import torch.distributed as dist

        if self._kind == "all-reduce":
            _reduce(self._results)
            return []
        _wait([dist.isend(_tensor(words), dst=RECEIVER, tag=tag) for tag, words in enumerate(payloads)])
        arrival = torch.empty(1, dtype=torch.float64)
        dist.recv(arrival, src=RECEIVER, tag=LAST_TAG)
        return [float(arrival)]

    def received(self) -> list[int]:
        import torch
        import torch.distributed as dist

        numbers = torch.empty(self._streams, dtype=torch.int64)
        dist.recv(numbers, src=RECEIVER, tag=LAST_TAG)
        there = [int(number) for number in numbers]
        if self._kind == "all-reduce":  # both ends have the sum, and both must be right
            here = _numbers_of_sums(self._results, self._checker)
            return [one if one == other else payload.DAMAGED for one, other in zip(here, there, strict=True)]
        return there


def serve(kind: Kind, point: Point, checker: Checker) -> None:
    """The receiving end of one pass."""
    import torch
    import torch.distributed as dist

    own = checker.words[: point.size // WORD_BYTES]
    buffers = [_tensor(own.copy()) for _ in range(point.streams)]
    for _ in range(point.rounds):
        if kind == "all-reduce":
            for buffer in buffers:
                buffer.copy_(_tensor(own.copy()))
        dist.send(torch.ones(1, dtype=torch.int64), dst=SENDER, tag=LAST_TAG)
        if kind == "all-reduce":
            _reduce(buffers)
            numbers = _numbers_of_sums(buffers, checker)
        else:
            _wait([dist.irecv(buffer, src=SENDER, tag=tag) for tag, buffer in enumerate(buffers)])
            dist.send(torch.tensor([monotonic()], dtype=torch.float64), dst=SENDER, tag=LAST_TAG)
            numbers = [checker.number_of(buffer.numpy()) for buffer in buffers]
        dist.send(torch.tensor(numbers, dtype=torch.int64), dst=SENDER, tag=LAST_TAG)


def _reduce(tensors: Sequence[Any]) -> None:
    import torch.distributed as dist

    _wait([dist.all_reduce(tensor, async_op=True) for tensor in tensors])


def _wait(handles: Sequence[Any]) -> None:
    for handle in handles:
        handle.wait()


def _numbers_of_sums(tensors: Sequence[Any], checker: Checker) -> list[int]:
    """The numbers that were added to the other end's words."""
    import numpy as np

    return [checker.number_in_sum(tensor.numpy().view(np.uint64)) for tensor in tensors]


def _tensor(words: Words) -> Any:
    import numpy as np
    import torch

    return torch.from_numpy(words.view(np.int64))
