"""Implements the Context of an experiment's run: clocks, probes, turns and their order are here and nowhere else."""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any, TypeVar

from bench.cluster import clock_skew, work_checks
from bench.cluster.recorder import Recorder
from bench.context import Measured, NodeSlot
from bench.experiments.toolkit.faults import FaultInjector
from bench.model import Arm, Clock, Interval, NodeUsage, Sample, Spec
from bench.record.store import DATA, DONE, FILES
from bench.timeline import Timeline

T = TypeVar("T")

IDLE_SECONDS = 2.0  # Ray reports its metrics once in this time
QUOTA_PERIOD_SECONDS = 0.1  # of a CPU quota: the default of the kernel, Docker and kubelet
ROOM = 1.2  # factor on the passes that filled the last turn: a warm-up is slower than the turns after it
MOST_PASSES = 100_000
CLOCK_LOOKS = 21
CLOCK_OFFSET_LOOKS = 5
QUIET = "quiet"  # while this file is in the records folder, the exporter refuses requests. It holds the run's folder
PROBE_TIMEOUT_SECONDS = 30.0
PROGRESS_SECONDS = 1.0  # least time between two progress lines of long work


@dataclass(frozen=True, kw_only=True)
class NodeProbe:
    """A probe, the node that it watches, and the address of the node's raylet, which knows its spilled bytes."""

    actor: Any
    slot: NodeSlot
    address: str
    port: int
    object_store_bytes: int


@dataclass(kw_only=True)
class Invocation:
    """One driver with its actors: the Context that an experiment's run gets."""

    spec: Spec
    probes: Sequence[NodeProbe]
    recorder: Recorder
    faults: FaultInjector | None = None
    reasons: list[str] = field(default_factory=list)
    idle_by_plan: set[str] = field(default_factory=set)
    may_lose_nodes: bool = False
    pause_seconds: float = 0.0  # before every interval, with probes or without
    work_by_node: Counter[str] = field(default_factory=Counter)  # of the subject, without warm-ups
    total_work: float | None = None  # of all arms and nodes, with warm-ups; None: nothing was measured
    credited: dict[work_checks.Interval, float] = field(default_factory=dict)  # work of all nodes, by interval
    _digests: dict[str, str] = field(default_factory=dict)
    _passes: dict[tuple[str, str], int] = field(default_factory=dict)  # by arm and point
    _reuses_work: bool = False  # in the interval in progress
    _reported: float = 0.0  # monotonic time at which progress was last recorded
    _spilled: dict[str, int] = field(default_factory=dict)  # by node, when the interval began

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def attempt(self) -> int:
        return self.spec.attempt

    @property
    def block(self) -> int:
        return self.spec.block

    @property
    def nodes(self) -> Sequence[NodeSlot]:
        return [probe.slot for probe in self.probes]

    def wants(self, arm: Arm) -> bool:
        return self.spec.wants(arm)

    def measure_idle(self) -> None:
        """Record what the nodes use while nothing runs: the baseline that is subtracted from bytes."""
        self._begin_probes()
        begin = monotonic()
        sleep(IDLE_SECONDS)
        idle = Measured[None](results=(), interval=Interval(begin, monotonic()), arm="idle", turn=0, warmup=True)
        self._record_usage(idle, self._ask_probes("end"), work={})

    def time_once(self, arm: str, work: Callable[[], T]) -> Measured[T]:
        begin = monotonic()
        result = work()
        return Measured(results=[result], interval=Interval(begin, monotonic()), arm=arm, turn=0, warmup=False)

    def turns(self) -> Iterator[InvocationTurn]:
        for number in range(1, self.spec.warmups + self.spec.samples + 1):
            yield InvocationTurn(invocation=self, number=number, warmup=number <= self.spec.warmups)

    def same_everywhere(self, name: str, digest: str) -> None:
        known = self._digests.get(name)
        if known is None:
            self._digests[name] = digest
            self.recorder.digest(name, digest)
        elif known != digest:
            self.invalid(f"the checksum of {name} was {digest} and {known}: a result is wrong, lost or counted twice")

    def invalid(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def leaves_idle(self, names: Sequence[str]) -> None:
        self.idle_by_plan.update(names)

    def expects_losses(self) -> None:
        self.may_lose_nodes = True

    def reuses_work(self) -> None:
        self._reuses_work = True

    def data(self, name: str, sha256: str) -> None:
        self.recorder.digest(DATA + name, sha256)

    def record(self, sample: Sample) -> None:
        self.recorder.sample(sample)

    def progress(self, done: float, total: float) -> None:
        now = monotonic()
        if now - self._reported >= PROGRESS_SECONDS or done >= total:
            self._reported = now
            self.recorder.progress(done, total)
        if self.faults:
            self.faults.progress(done, total)

    def handle_faults(self, *, on_fault: Callable[[str, str], None], fill_disk: Callable[[], None]) -> None:
        if self.faults:
            self.faults.on_fault, self.faults.fill_disk = on_fault, fill_disk

    @property
    def folder(self) -> Path:
        return self.recorder.files

    @property
    def earlier(self) -> Sequence[Path]:
        runs = self.recorder.files.parent.parent
        paths = [
            runs / replace(self.spec, attempt=number).folder / FILES / DONE for number in range(1, self.spec.attempt)
        ]
        return [path for path in paths if path.is_file()]

    def measure(
        self,
        turn: InvocationTurn,
        arm: Arm,
        work: Callable[[], T],
        credit: Callable[[T], Mapping[str, float]],
        *,
        point: str = "",
    ) -> Measured[T]:
        """See Turn.measure. How many passes fill a sample is learnt from the turns before."""
        passes, self._reuses_work = self._passes.get((arm.name, point), 1), False
        faults = self.faults if arm.role == "subject" and not turn.warmup and not point else None
        if faults:
            faults.begin()
        if arm.probed:
            self._begin_probes()
            sleep(self.pause_seconds)
            results, interval = _timed(work, passes)
            counters = self._ask_probes(
                "end"
            )  # at once: what is counted of other time than the interval's is not its own
        else:
            with self._silence():
                sleep(self.pause_seconds)
                results, interval = _timed(work, passes)
            counters = []
        for reason in faults.end() if faults else ():
            self.invalid(reason)
        measured = Measured(
            results=results, interval=interval, arm=arm.name, turn=turn.number, warmup=turn.warmup, point=point
        )
        shares = _add_up(credit(result) for result in results)
        credited = math.fsum(shares.values())
        self.total_work = credited + (self.total_work or 0.0)
        if not point:
            self.credited[arm.name, interval.begin, interval.end] = credited
        if arm.probed:
            self._record_usage(measured, counters, work=shares)
        if reason := work_checks.unresolved_reason(arm.name, work_checks.unresolved(results)):
            self.invalid(reason)
        # A pass of which an earlier attempt did a part is shorter than later passes, and says nothing about them.
        least_seconds = self.spec.seconds_of(arm)
        if interval.seconds < least_seconds and not self._reuses_work:
            wanted = math.ceil(ROOM * least_seconds * passes / max(interval.seconds, 1e-6))
            self._passes[arm.name, point] = min(wanted, MOST_PASSES)
        if arm.role == "subject" and not turn.warmup:
            self.work_by_node.update(shares)
        return measured

    def _begin_probes(self) -> None:
        if self.may_lose_nodes:
            self._ask_probes("name")  # drops the probes of lost nodes, whose raylets would not answer either
        self._spilled = {probe.slot.name: self._spilled_bytes(probe) for probe in self.probes}
        self._ask_probes("begin")

    def _ask_probes(self, method: str) -> list[Any]:
        """Call `method` on every probe and return the results. If nodes may be lost, probes of lost nodes are dropped."""
        import ray
        from ray.exceptions import RayActorError

        calls = [(probe, getattr(probe.actor, method).remote()) for probe in self.probes]
        answers, remaining = [], []
        for probe, call in calls:
            try:
                answers.append(ray.get(call, timeout=PROBE_TIMEOUT_SECONDS))
                remaining.append(probe)
            except RayActorError:
                if not self.may_lose_nodes:
                    raise
        self.probes = remaining
        return answers

    def _record_usage(
        self, measured: Measured[T], counters: Sequence[Mapping[str, Any]], *, work: Mapping[str, float]
    ) -> None:
        for probe, counters_of_node in zip(self.probes, counters, strict=True):
            name = probe.slot.name
            usage = NodeUsage(
                node=name,
                arm=measured.arm,
                turn=measured.turn,
                warmup=measured.warmup,
                interval=measured.interval,
                point=measured.point,
                spilled_bytes=self._spilled_bytes(probe) - self._spilled[name],
                work=work.get(name, 0.0) if work else None,
                **counters_of_node,
            )
            self.recorder.usage(usage)

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Stop raymeter's own work during the block: the probes do not sample, and the exporter refuses requests."""
        self._ask_probes("pause")
        records = Path(os.environ["RAYMETER_RECORDS"])
        quiet_file = records / QUIET
        quiet_file.write_text(os.path.relpath(self.recorder.files.parent, records))
        try:
            yield
        finally:
            quiet_file.unlink(missing_ok=True)
            self._ask_probes("resume")

    def timelines(self) -> list[Timeline]:
        """Return the timeline of each node's resource use during the run, on this driver's clock. Lost nodes have none."""
        import ray
        from ray.exceptions import GetTimeoutError, RayActorError

        timelines: list[Timeline] = []
        for probe in self.probes:
            try:
                offset_seconds = _clock_offset(probe)
                timeline: Timeline = ray.get(probe.actor.timeline.remote(), timeout=PROBE_TIMEOUT_SECONDS)
            except (RayActorError, GetTimeoutError):
                continue  # the driver's `run` reports lost nodes
            timelines.append(timeline.moved(-offset_seconds))
        return timelines

    def _spilled_bytes(self, probe: NodeProbe) -> int:
        from ray._private.internal_api import node_stats

        stats = node_stats(probe.address, probe.port, include_memory_info=False)
        return int(stats.store_stats.spilled_bytes_total)


@dataclass(kw_only=True)
class InvocationTurn:
    """One repetition of the measurement; see Turn."""

    invocation: Invocation
    number: int
    warmup: bool

    def order(self, arms: Sequence[Arm]) -> Sequence[Arm]:
        spec = self.invocation.spec
        wanted = [arm for arm in arms if spec.wants(arm)]
        return random.Random(f"{spec.seed}/{spec.block}/{spec.cell}/{self.number}").sample(wanted, len(wanted))

    def measure(
        self, arm: Arm, work: Callable[[], T], credit: Callable[[T], Mapping[str, float]], *, point: str = ""
    ) -> Measured[T]:
        return self.invocation.measure(self, arm, work, credit, point=point)


def _clock_offset(probe: NodeProbe) -> float:
    """Return the seconds by which a node's monotonic clock is ahead of this driver's, from the fastest of several readings."""
    import ray

    looks = []
    for _ in range(CLOCK_OFFSET_LOOKS):
        before = monotonic()
        there: float = ray.get(probe.actor.monotonic.remote(), timeout=PROBE_TIMEOUT_SECONDS)
        after = monotonic()
        looks.append((after - before, clock_skew.offset(before, there, after)))
    return min(looks)[1]


def _timed(work: Callable[[], T], passes: int) -> tuple[list[T], Interval]:
    """Do `work` `passes` times between two readings of the clock, with nothing else between them."""
    begin = monotonic()
    results = [work() for _ in range(passes)]
    return results, Interval(begin, monotonic())


def look_at_clock(clock: Callable[[], float] = monotonic) -> Clock:
    """Measure the smallest step of the clock that intervals are timed with, and the median duration of an empty interval."""
    return Clock(
        step_seconds=min(_step(clock) for _ in range(CLOCK_LOOKS)),
        empty_sample_seconds=median(_timed(lambda: None, 1)[1].seconds for _ in range(CLOCK_LOOKS)),
    )


def _step(clock: Callable[[], float]) -> float:
    """Return the seconds until the clock's next step; for a clock finer than the duration of a call, that duration."""
    begin = clock()
    while (now := clock()) == begin:
        pass
    return now - begin


def _add_up(shares: Iterator[Mapping[str, float]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for share in shares:
        total.update(share)
    return total
