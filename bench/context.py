"""What an experiment is given. It iterates, measures and yields; how often, where and what for is not its business."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from bench.model import STEADY_TURNS, Arm, Interval, Metric, Sample

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class NodeSlot:
    """A node as an experiment sees it: where to place work, and how much of it may run at once."""

    name: str  # "head", "worker-1"
    node_id: str  # Ray's
    cpus: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class Measured(Generic[T]):
    """What a timed piece of work gave, pass by pass, and what it is called in the record."""

    results: Sequence[T]
    interval: Interval
    arm: str
    turn: int
    warmup: bool
    point: str = ""

    def sample(self, metric: Metric, value: float, *, node: str | None = None, step: float | None = None) -> Sample:
        """This interval's value of `metric`; with a `step`, where `metric` is a curve."""
        return Sample(
            metric=metric.name,
            unit=metric.unit,
            value=value,
            interval=self.interval,
            arm=self.arm,
            turn=self.turn,
            warmup=self.warmup,
            node=node,
            point=self.point,
            step=step,
            passes=len(self.results),
            of_many=bool(metric.table and self.point),
        )

    def missing(self, metric: Metric, reason: str) -> Sample:
        """The reason that this interval has no value of `metric`."""
        return Sample(
            metric=metric.name,
            unit=metric.unit,
            value=None,
            reason=reason,
            interval=self.interval,
            arm=self.arm,
            turn=self.turn,
            warmup=self.warmup,
            point=self.point,
        )


class OfTurn(Protocol):
    """Something of one turn."""

    @property
    def turn(self) -> int:
        """Its number."""
        ...


K = TypeVar("K", bound=OfTurn)


def over_turns(timed: Sequence[K], figures: Callable[[Sequence[K]], Iterable[Sample]]) -> Iterator[Sample]:
    """`figures` of all turns in `timed`, and those of what would be left were more of the first turns discarded.

    Percentiles must not be averaged over turns, and which turns count is known when every run is done. So each choice has
    its figures, told apart by `since`; those that do not count unless turns are discarded are marked as warm-ups.
    """
    for first in range(max(len(timed) - STEADY_TURNS, 0) + 1 if timed else 0):
        for sample in figures(timed[first:]):
            yield replace(sample, since=timed[first].turn, turn=0, warmup=first > 0)


class Turn(Protocol):
    """One repetition, in which every arm has its go, in an order of its own."""

    warmup: bool

    def order(self, arms: Sequence[Arm]) -> Sequence[Arm]:
        """Those of `arms` that are wanted, in this turn's seeded order."""
        ...

    def measure(
        self, arm: Arm, work: Callable[[], T], credit: Callable[[T], Mapping[str, float]], *, point: str = ""
    ) -> Measured[T]:
        """Do `work` until the sample is long enough, with clock and probes around it.

        `work` returns when every result is in hand, counted and checked: a run whose results hold references, futures or generators
        is invalid, and so is one whose credit is less work than its headline says was done. `credit` says, after the clock has
        stopped, how much of one pass each node (by name) did, in what the headline counts: inputs, where it is
        inputs/s. Reports divide bytes and CPU time by it. `point` names the point of a sweep that this is.
        """
        ...


class Context(Protocol):
    """All that an experiment may know of the place where it runs."""

    @property
    def seed(self) -> int: ...

    @property
    def attempt(self) -> int:
        """At this run: 1 for the first."""
        ...

    @property
    def block(self) -> int:
        """That this run is of, from 1: what is drawn anew in each block is drawn by it."""
        ...

    @property
    def nodes(self) -> Sequence[NodeSlot]: ...

    def wants(self, arm: Arm) -> bool:
        """Whether `arm` is measured: what only the others need is not started. The subject always is."""
        ...

    def time_once(self, arm: str, work: Callable[[], T]) -> Measured[T]:
        """Do `work` once, on the clock, outside any turn: start-up, first result."""
        ...

    def turns(self) -> Iterator[Turn]:
        """The warm-ups, then as many turns as the Spec asks for."""
        ...

    def same_everywhere(self, name: str, digest: str) -> None:
        """Declare a checksum that must be equal over turns, arms, cells and topologies, or the run is invalid."""
        ...

    def invalid(self, reason: str) -> None:
        """Say why this run's numbers cannot be trusted. It goes on, and everything is kept."""
        ...

    def leaves_idle(self, names: Sequence[str]) -> None:
        """Declare nodes that get no work by the params: that they do none is then no fault."""
        ...

    def expects_losses(self) -> None:
        """Declare that the run goes on without nodes that are lost: the experiment alone then reports what was lost."""
        ...

    def handle_faults(self, *, on_fault: Callable[[str, str], None], fill_disk: Callable[[], None]) -> None:
        """Set what is called with the kind and node of each injected fault, and what fills the disk. See `bench/experiments/toolkit/faults.py`."""
        ...

    def reuses_work(self) -> None:
        """Declare that an earlier attempt did some or all of the pass in progress: its time is not that of a whole pass."""
        ...

    def data(self, name: str, sha256: str) -> None:
        """Declare a data set that was used."""
        ...

    def record(self, sample: Sample) -> None:
        """Keep `sample` at once, in the midst of a timed interval: long work is watched while it goes.

        It is on the disk when this returns, which takes a millisecond or so: not for the inner loop of anything.
        """
        ...

    def progress(self, done: float, total: float) -> None:
        """Say how far long work is, and let faults be injected. Most calls do nothing but look at the clock."""
        ...

    @property
    def folder(self) -> Path:
        """A folder on the driver's node for files of this run. What is appended to them is transferred while the run goes on."""
        ...

    @property
    def earlier(self) -> Sequence[Path]:
        """The files `done.jsonl` that attempts at this run before this one left in their folders, the first attempt's first."""
        ...
