"""A Context that stands in for the driver of a run that sweeps, on whatever nodes a test has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from bench.context import Measured
from bench.model import Arm, Interval

T = TypeVar("T")


@dataclass
class SweepTurn:
    context: SweepContext
    warmup: bool = False

    def order(self, arms: Sequence[Arm]) -> Sequence[Arm]:
        return [arm for arm in arms if self.context.wants(arm)]

    def measure(
        self, arm: Arm, work: Callable[[], T], credit: Callable[[T], Mapping[str, float]], *, point: str = ""
    ) -> Measured[T]:
        begin = monotonic()
        result = work()
        interval = Interval(begin, monotonic())
        self.context.credits[arm.name, point] = dict(credit(result))
        return Measured(results=[result], interval=interval, arm=arm.name, turn=1, warmup=False, point=point)


@dataclass
class SweepContext:
    """It does each point once, and keeps what it is told."""

    nodes: Sequence[Any]
    seed: int = 7
    repeats: int = 1
    folder: Path = Path()
    reasons: list[str] = field(default_factory=list)
    credits: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    arms: Sequence[str] = ()  # that are wanted; empty: all

    def wants(self, arm: Arm) -> bool:
        return not self.arms or arm.name in self.arms

    def time_once(self, arm: str, work: Callable[[], T]) -> Measured[T]:
        begin = monotonic()
        result = work()
        return Measured(results=[result], interval=Interval(begin, monotonic()), arm=arm, turn=0, warmup=False)

    def turns(self) -> Iterator[SweepTurn]:
        return (SweepTurn(self) for _ in range(self.repeats))

    def invalid(self, reason: str) -> None:
        self.reasons.append(reason)

    def leaves_idle(self, names: Sequence[str]) -> None:
        assert not names
