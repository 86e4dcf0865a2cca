"""A local Ray of two CPUs, and a Context that stands in for the driver of a job."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TypeVar

import pytest

from bench.cluster import work_checks
from bench.cluster.driver import refuse_large_functions
from bench.context import Measured, NodeSlot
from bench.experiments.toolkit.faults import FaultInjector, ToleratedFaults
from bench.model import Arm, Interval, Sample
from bench.runner import quiet_check

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


@pytest.fixture(scope="session")
def local_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[NodeSlot]]:
    """The one node, of two CPUs, of a Ray that ends with the tests."""
    import ray

    # Sockets lie below it, and a socket's path may have 107 bytes.
    home = Path(tmp_path_factory.mktemp("r", numbered=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ours = [name for name in os.environ if name.startswith("RAYMETER_")]
        for name in {*ours, "RAY_ADDRESS"} - {quiet_check.WAIT_VARIABLE}:  # which holds for all tests
            patch.delenv(name, raising=False)
        refuse_large_functions()  # as the driver of a run does
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=512 * 2**20,
            log_to_driver=False,
            _temp_dir=str(home),
        )
        yield [NodeSlot(name="head", node_id=ray.nodes()[0]["NodeID"], cpus=2, threads=2)]
        ray.shutdown()


@pytest.fixture
def context(local_ray: Sequence[NodeSlot], tmp_path: Path) -> LocalContext:
    return LocalContext(nodes=local_ray, folder=tmp_path)


@pytest.fixture
def two_halves(local_ray: Sequence[NodeSlot], tmp_path: Path) -> LocalContext:
    """The node as if it were two, of one CPU each."""
    (node,) = local_ray
    return LocalContext(
        nodes=[NodeSlot(name=name, node_id=node.node_id, cpus=1, threads=1) for name in ("head", "worker-1")],
        folder=tmp_path,
    )
