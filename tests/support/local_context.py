"""A Context that stands in for the driver of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TypeVar

from bench.cluster import work_checks
from bench.context import Measured, NodeSlot
from bench.experiments.toolkit.faults import FaultInjector, ToleratedFaults
from bench.model import Arm, Interval, Sample

T = TypeVar("T")


@dataclass
class LocalTurn:
    number: int
    warmup: bool
    watch: Callable[[str, Mapping[str, float]], None]
    passes: int = 2
    faults: FaultInjector | None = None
    invalid: Callable[[str], None] = print

    def order(self, arms: Sequence[Arm]) -> Sequence[Arm]:
        return arms

    def measure(
        self, arm: Arm, work: Callable[[], T], credit: Callable[[T], Mapping[str, float]], *, point: str = ""
    ) -> Measured[T]:
        faults = self.faults if arm.role == "subject" and not self.warmup and not point else None
        if faults:
            faults.begin()
        begin = monotonic()
        results = [work() for _ in range(self.passes)]
        interval = Interval(begin, monotonic())
        assert not work_checks.unresolved(results)
        for reason in faults.end() if faults else ():
            self.invalid(reason)
        for result in results:
            self.watch(arm.name, credit(result))
        return Measured(
            results=results, interval=interval, arm=arm.name, turn=self.number, warmup=self.warmup, point=point
        )


@dataclass
class LocalContext:
    """What an experiment is given, without probes: it keeps what it is told."""

    nodes: Sequence[NodeSlot]
    seed: int = 7
    block: int = 1
    repeats: int = 1
    passes: int = 2  # in each turn
    warmups: int = 0
    folder: Path = Path()
    earlier: Sequence[Path] = ()
    recorded: list[Sample] = field(default_factory=list)
    steps: list[tuple[float, float]] = field(default_factory=list)
    digests: dict[str, set[str]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    may_lose_nodes: bool = False
    reused: int = 0  # passes
    faults: FaultInjector | None = None
    sets: dict[str, str] = field(default_factory=dict)
    credits: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    @property
    def attempt(self) -> int:
        return len(self.earlier) + 1

    def time_once(self, arm: str, work: Callable[[], T]) -> Measured[T]:
        begin = monotonic()
        result = work()
        return Measured(results=[result], interval=Interval(begin, monotonic()), arm=arm, turn=0, warmup=False)

    def turns(self) -> Iterator[LocalTurn]:
        for number in range(1, self.warmups + self.repeats + 1):
            yield LocalTurn(
                number,
                warmup=number <= self.warmups,
                watch=self.keep_credit,
                passes=self.passes,
                faults=self.faults,
                invalid=self.invalid,
            )

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
        """Inject these faults into the run, as the driver of a job does."""
        self.faults = FaultInjector(
            plan=plan, workers=tolerated.workers, seed=self.seed, attempt=self.attempt, nodes=self.nodes
        )

    def keep_credit(self, arm: str, credit: Mapping[str, float]) -> None:
        self.credits.setdefault(arm, []).append(dict(credit))

    @property
    def is_invalid(self) -> bool:
        return bool(self.reasons) or any(len(digests) > 1 for digests in self.digests.values())
