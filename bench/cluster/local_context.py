"""Implements the Context of a run in this process: measures without probes, and keeps all that an experiment reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TypeVar

from bench.cluster import work_checks
from bench.context import Measured, NodeSlot
from bench.errors import RunInvalid
from bench.experiments.toolkit.faults import FaultInjector, ToleratedFaults
from bench.model import Arm, Interval, Sample

T = TypeVar("T")


@dataclass
class LocalTurn:
    """One repetition of the measurement; see Turn."""

    context: LocalContext
    number: int
    warmup: bool

    def order(self, arms: Sequence[Arm]) -> Sequence[Arm]:
        return [arm for arm in arms if self.context.wants(arm)]

    def measure(
        self, arm: Arm, work: Callable[[], T], credit: Callable[[T], Mapping[str, float]], *, point: str = ""
    ) -> Measured[T]:
        faults = self.context.faults if arm.role == "subject" and not self.warmup and not point else None
        if faults:
            faults.begin()
        begin = monotonic()
        results = [work() for _ in range(self.context.passes)]
        interval = Interval(begin, monotonic())
        if reason := work_checks.unresolved_reason(arm.name, work_checks.unresolved(results)):
            raise RunInvalid(f"{reason[:1].upper()}{reason[1:]}.")
        for reason in faults.end() if faults else ():
            self.context.invalid(reason)
        measured = Measured(
            results=results, interval=interval, arm=arm.name, turn=self.number, warmup=self.warmup, point=point
        )
        for result in results:
            self.context.keep_credit(arm, measured, credit(result))
        return measured


@dataclass
class LocalContext:
    """The Context of a run without probes."""

    nodes: Sequence[NodeSlot]
    seed: int = 7
    block: int = 1
    repeats: int = 1
    passes: int = 2  # in each turn
    warmups: int = 0
    arms: Sequence[str] = ()  # that are wanted; empty: all
    folder: Path = Path()
    earlier: Sequence[Path] = ()
    recorded: list[Sample] = field(default_factory=list)
    steps: list[tuple[float, float]] = field(default_factory=list)
    digests: dict[str, set[str]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    may_lose_nodes: bool = False
    reused: int = 0  # passes of which an earlier attempt did a part
    faults: FaultInjector | None = None
    sets: dict[str, str] = field(default_factory=dict)
    credits: dict[str, list[dict[str, float]]] = field(default_factory=dict)  # of each pass, by arm
    work_by_node: Counter[str] = field(default_factory=Counter)  # of the subject, without warm-ups
    total_work: float | None = None  # of all arms and nodes, with warm-ups; None: nothing was measured
    credited: dict[work_checks.Interval, float] = field(default_factory=dict)  # work of all nodes, by interval

    @property
    def attempt(self) -> int:
        return len(self.earlier) + 1

    def wants(self, arm: Arm) -> bool:
        return not self.arms or arm.name in self.arms

    def time_once(self, arm: str, work: Callable[[], T]) -> Measured[T]:
        begin = monotonic()
        result = work()
        return Measured(results=[result], interval=Interval(begin, monotonic()), arm=arm, turn=0, warmup=False)

    def turns(self) -> Iterator[LocalTurn]:
        for number in range(1, self.warmups + self.repeats + 1):
            yield LocalTurn(context=self, number=number, warmup=number <= self.warmups)

    def same_everywhere(self, name: str, digest: str) -> None:
        self.digests.setdefault(name, set()).add(digest)

    def invalid(self, reason: str) -> None:
        self.reasons.append(reason)

    def leaves_idle(self, names: Sequence[str]) -> None:
        self.idle += names

    def expects_losses(self) -> None:
        self.may_lose_nodes = True

    def reuses_work(self) -> None:
        self.reused += 1

    def data(self, name: str, sha256: str) -> None:
        self.sets[name] = sha256

    def record(self, sample: Sample) -> None:
        self.recorded.append(sample)

    def progress(self, done: float, total: float) -> None:
        self.steps.append((done, total))
        if self.faults:
            self.faults.progress(done, total)

    def handle_faults(self, *, on_fault: Callable[[str, str], None], fill_disk: Callable[[], None]) -> None:
        if self.faults:
            self.faults.on_fault, self.faults.fill_disk = on_fault, fill_disk

    def inject(self, plan: str, tolerated: ToleratedFaults) -> None:
        """Inject the faults of `plan` into the run, as the driver of a job does."""
        self.faults = FaultInjector(
            plan=plan, workers=tolerated.workers, seed=self.seed, attempt=self.attempt, nodes=self.nodes
        )

    def keep_credit(self, arm: Arm, measured: Measured[T], credit: Mapping[str, float]) -> None:
        """Add up the work that nodes are credited with in one pass."""
        self.credits.setdefault(arm.name, []).append(dict(credit))
        work = math.fsum(credit.values())
        self.total_work = work + (self.total_work or 0.0)
        if not measured.point:
            key = (arm.name, measured.interval.begin, measured.interval.end)
            self.credited[key] = self.credited.get(key, 0.0) + work
        if arm.role == "subject" and not measured.warmup:
            self.work_by_node.update(credit)

    @property
    def is_invalid(self) -> bool:
        return bool(self.reasons) or any(len(digests) > 1 for digests in self.digests.values())
