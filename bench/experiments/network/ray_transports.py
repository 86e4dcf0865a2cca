"""Carries payloads by Ray from one actor to another: an argument, the object store, many small arguments, to all at once."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from bench.experiments.network.points import WORD_BYTES
from bench.experiments.network.transports import Transport
from bench.experiments.toolkit.placement import get_in_time

if TYPE_CHECKING:
    from bench.experiments.network.payload import Words

ANSWER_SECONDS = 60.0
SMALL_BYTES = 1024  # an argument of many


class Call(Transport):
    """Each payload is the argument of an actor call."""

    def __init__(self, receivers: Sequence[Any]) -> None:
        self._receivers = receivers
        self.copies = len(receivers)

    def carry(self, payloads: Sequence[Words]) -> list[float]:
        begin = monotonic()
        calls = [self._call(receiver, words) for words in payloads for receiver in self._receivers]
        self.copy_seconds = monotonic() - begin
        return get_in_time(calls, ANSWER_SECONDS, "Payloads on their way")

    def received(self) -> list[int]:
        found = get_in_time([one.numbers.remote() for one in self._receivers], ANSWER_SECONDS, "Receivers that check")
        return [number for numbers in found for number in numbers]

    def _call(self, receiver: Any, words: Words) -> Any:
        return receiver.accept.remote(words)


class ManySmall(Call):
    """Each payload is cut up, and its pieces are the arguments of one call."""

    def _call(self, receiver: Any, words: Words) -> Any:
        step = SMALL_BYTES // WORD_BYTES
        return receiver.accept_pieces.remote(*(words[start : start + step] for start in range(0, len(words), step)))


class PutGet(Call):
    """Each payload is put at one end and got at the other; as soon as one is put, its receiver is told."""

    def carry(self, payloads: Sequence[Words]) -> list[float]:
        import ray

        self.copy_seconds = 0.0
        calls = []
        for words in payloads:
            begin = monotonic()
            reference = ray.put(words)
            self.copy_seconds += monotonic() - begin
            # In a list, so that it is the receiver who gets it.
            calls += [receiver.take.remote([reference]) for receiver in self._receivers]
        return get_in_time(calls, ANSWER_SECONDS, "Objects on their way")


class Get(Call):
    """Payloads that were put before the clock, got at the other end."""

    def __init__(self, receivers: Sequence[Any]) -> None:
        super().__init__(receivers)
        self._put: list[Any] = []

    def prepare(self, payloads: Sequence[Words]) -> None:
        import ray

        self._put = [ray.put(words) for words in payloads]

    def carry(self, payloads: Sequence[Words]) -> list[float]:  # noqa: ARG002 it has them already
        calls = [receiver.take.remote([one]) for one in self._put for receiver in self._receivers]
        return get_in_time(calls, ANSWER_SECONDS, "Objects on their way")

    def received(self) -> list[int]:
        self._put.clear()
        return super().received()
