"""What a round of all jobs says, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low

from bench.context import Measured, NodeSlot
from bench.experiments.clustering.work import MODULUS, Aside, Outcome
from bench.experiments.toolkit.parts import SERIALISE, WORK_METRICS, WorkDone, jain, work_samples
from bench.experiments.toolkit.pool import Counts
from bench.experiments.toolkit.recovery import Recovery, node_of
from bench.metrics import count, rate, ratio, seconds, size
from bench.model import Sample

STUDY_JOBS = 8_000_000

JOBS_PER_SECOND = rate(
    "jobs_per_second", "jobs/s", "Jobs that are done, merged and checked, over all the time that this took."
)
EFFICIENCY = ratio(
    "efficiency",
    "",
    "Share of the CPUs' time in which workers were busy with jobs: 1 is the ideal.",
    better="higher",
)
PROJECTED = seconds("projected_hours", "The study's 8,000,000 jobs at this rate.", unit="h", means="projection")
CPU_SECONDS_PER_JOB = seconds("cpu_seconds_per_job", "CPU time of the worker's thread for a job.")
SCHEDULER_SHARE = ratio(
    "scheduler_share", "", "Share of the time in which the driver submitted parts and took answers out.", better="lower"
)
JOURNAL_SHARE = ratio(
    "journal_share",
    "",
    "Share of the time that the journal of done parts took: rows on the disk, and reading them again.",
    better="lower",
)
MERGE_SECONDS = seconds(
    "merge_seconds", "Time to put results in order, on each node first, and to check them.", is_total=True
)
LOST_SECONDS = seconds(
    "lost_seconds",
    "Time that workers waited for the last one at the end of rounds: in total, and of each node.",
    means="wait for the last worker",
    is_total=True,
)
PACE = ratio(
    "slowest_pace",
    "",
    "Time a job takes a node's slowest worker, relative to the median worker of all nodes.",
    better="lower",
)
SHARE = ratio("share_of_jobs", "", "Share of the jobs that a node did.", better=None)
FAIRNESS = ratio("fairness", "", "Jain's index of the nodes' shares: 1 is even.", better="higher")
READ_BYTES = size("read_bytes", "B", "Input read from a node's own disk.")
PULLED_BYTES = size("pulled_bytes", "B", "Input pulled from the node that has it.")
WRITTEN_BYTES = size("written_bytes", "B", "Results written by workers.")
DONE_AGAIN = count(
    "parts_handed_over_again", "parts", "Parts handed over again because a worker died with them, or did not answer."
)
DUPLICATES = count("second_answers", "parts", "Second answers to a part, which do not count.")
CHECKED_SHARE = ratio(
    "checked_share",
    "",
    "Share of the jobs whose results were compared with float64, or have a sum that is known beforehand.",
    better="higher",
)
KEPT = count("jobs_kept", "jobs", "Jobs that earlier attempts had done; they are in no rate.", better=None)
RECOVERY_SECONDS = seconds(
    "recovery_seconds",
    "Time from an injected fault to its recovery, by kind, as bench/experiments/toolkit/recovery.py defines it.",
)
WASTED_WORK = ratio(
    "wasted_work",
    "",
    "Share of the work that was done again; a part that a worker died at counts with the time of its second try.",
    better="lower",
)
MISSING = count("jobs_missing", "jobs", "Jobs that were neither done nor set aside.")
SET_ASIDE = count(
    "jobs_set_aside",
    "jobs",
    "Jobs that failed at every try; up to 1 % of them, or one, do not void the run.",
    means="left out",
)
DRIVER_MEMORY = size("driver_memory_bytes", "B", "Peak memory of the driver so far.")
METRICS = (
    JOBS_PER_SECOND,
    EFFICIENCY,
    PROJECTED,
    CPU_SECONDS_PER_JOB,
    SCHEDULER_SHARE,
    JOURNAL_SHARE,
    MERGE_SECONDS,
    LOST_SECONDS,
    PACE,
    SHARE,
    FAIRNESS,
    READ_BYTES,
    PULLED_BYTES,
    WRITTEN_BYTES,
    DONE_AGAIN,
    DUPLICATES,
    CHECKED_SHARE,
    KEPT,
    RECOVERY_SECONDS,
    WASTED_WORK,
    MISSING,
    SET_ASIDE,
    DRIVER_MEMORY,
    *WORK_METRICS,
    SERIALISE,
)


@dataclass(kw_only=True)
class Account:
    """Totals of a round, added up as it goes: its size grows with the number of parts, and by 8 bytes a clustering."""

    jobs: int = 0
    kept: int = 0  # of these, by earlier attempts
    squares: int = 0
    digest: int = 0
    busy_seconds: float = 0.0
    cpu_seconds: float = 0.0
    read_bytes: int = 0
    pulled_bytes: int = 0
    written_bytes: int = 0
    wasted_seconds: float = 0.0  # of jobs that were done before, by a second answer or by a worker that died
    by_worker: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)  # busy seconds, jobs
    aside: list[Aside] = field(default_factory=list)
    results: dict[int, bytes] = field(default_factory=dict)  # by part, where there are any
    parts: set[int] = field(default_factory=set)
    parts_now: int = 0  # of this attempt

    def add(self, outcome: Outcome, *, is_kept: bool = False, failures: int = 0) -> None:
        """Count a part, that `failures` workers died at before. Raises ValueError where it was counted already."""
        if outcome.part in self.parts:
            raise ValueError(f"part {outcome.part} was counted before")
        self.parts.add(outcome.part)
        self.jobs += outcome.jobs
        self.squares = (self.squares + outcome.squares) % MODULUS
        self.digest = (self.digest + outcome.digest) % MODULUS
        self.aside += outcome.aside
        if outcome.results:
            self.results[outcome.part] = outcome.results
        if is_kept:
            self.kept += outcome.jobs
            return
        self.parts_now += 1
        self.busy_seconds += outcome.busy_seconds
        self.wasted_seconds += outcome.busy_seconds * failures
        self.cpu_seconds += outcome.cpu_seconds
        self.read_bytes += outcome.read_bytes
        self.pulled_bytes += outcome.pulled_bytes
        self.written_bytes += outcome.written_bytes
        busy, jobs = self.by_worker.get((outcome.node, outcome.worker), (0.0, 0))
        self.by_worker[outcome.node, outcome.worker] = busy + outcome.busy_seconds, jobs + outcome.jobs

    @property
    def done_now(self) -> int:
        """Jobs of this attempt."""
        return self.jobs - self.kept

    @property
    def by_node(self) -> Counter[str]:
        """Jobs of this attempt on each node."""
        found: Counter[str] = Counter()
        for (node, _), (_, jobs) in self.by_worker.items():
            found[node] += jobs
        return found


@dataclass(frozen=True, kw_only=True)
class Round:
    """All jobs, done once."""

    account: Account
    workers: int  # CPUs
    seconds: float = 0.0
    counts: Counts | None = None  # of the worker pool
    journal_seconds: float = 0.0
    merge_seconds: float = 0.0
    missing: int = 0  # jobs
    recoveries: tuple[Recovery, ...] = ()


def of_round(measured: Measured[Round], nodes: Sequence[NodeSlot]) -> Iterator[Sample]:
    """The samples that every arm has. Rates are over all rounds of the interval."""
    accounts = [each.account for each in measured.results]
    jobs = sum(account.done_now for account in accounts)
    if not jobs:
        yield measured.missing(JOBS_PER_SECOND, "earlier attempts had done all of it")
        return
    rate = jobs / measured.interval.seconds
    busy = sum(account.busy_seconds for account in accounts)
    yield measured.sample(JOBS_PER_SECOND, rate)
    yield measured.sample(SET_ASIDE, float(max(len(account.aside) for account in accounts)))
    yield measured.sample(EFFICIENCY, busy / (measured.results[0].workers * measured.interval.seconds))
    yield measured.sample(PROJECTED, STUDY_JOBS / rate / 3600)
    yield measured.sample(CPU_SECONDS_PER_JOB, sum(account.cpu_seconds for account in accounts) / jobs)
    by_node = sum((account.by_node for account in accounts), Counter[str]())
    names = sorted({node.name for node in nodes if node.cpus} | set(by_node))  # and those that joined
    parts_of_all = [by_node[name] / jobs for name in names]
    for name, share in zip(names, parts_of_all, strict=True):
        yield measured.sample(SHARE, share, node=name)
    yield measured.sample(FAIRNESS, jain(parts_of_all))


def of_pool(measured: Measured[Round]) -> Iterator[Sample]:
    """What only the worker pool can say: means over the rounds of the interval, sums where things are counted."""
    rounds = [each for each in measured.results if each.account.done_now and each.counts]
    if not rounds:
        return
    seconds = sum(each.seconds for each in rounds)
    counts = [each.counts for each in rounds if each.counts]
    driver = sum(each.driver_seconds for each in counts)
    yield measured.sample(SCHEDULER_SHARE, driver / seconds)
    yield measured.sample(SERIALISE, driver)
    yield measured.sample(JOURNAL_SHARE, sum(each.journal_seconds for each in rounds) / seconds)
    yield measured.sample(MERGE_SECONDS, sum(each.merge_seconds for each in rounds) / len(rounds))
    yield from _stragglers(measured, rounds)
    for metric, values in (
        (READ_BYTES, [each.account.read_bytes for each in rounds]),
        (PULLED_BYTES, [each.account.pulled_bytes for each in rounds]),
        (WRITTEN_BYTES, [each.account.written_bytes for each in rounds]),
        (DONE_AGAIN, [each.counts.calls - each.account.parts_now for each in rounds if each.counts]),
        (DUPLICATES, [len(each.duplicates) for each in counts]),
        (MISSING, [each.missing for each in rounds]),
        (KEPT, [each.account.kept for each in rounds]),
    ):
        yield measured.sample(metric, float(sum(values)))
    again = sum(each.account.wasted_seconds for each in rounds)
    done = again + sum(each.account.busy_seconds for each in rounds)
    yield measured.sample(WASTED_WORK, again / done if done else 0.0)
    yield from _recoveries(measured, [recovery for each in rounds for recovery in each.recoveries])
    yield measured.sample(DRIVER_MEMORY, _peak_memory_bytes())
    yield from work_samples(
        measured,
        [
            [
                WorkDone(node=node, busy_seconds=busy, units=jobs)
                for (node, _), (busy, jobs) in each.account.by_worker.items()
            ]
            for each in rounds
        ],
    )


def _recoveries(measured: Measured[Round], found: Sequence[Recovery]) -> Iterator[Sample]:
    """One figure a kind: the mean over the faults that were recovered from before the work was done."""
    for kind in dict.fromkeys(each.kind for each in found):
        seconds = [each.seconds for each in found if each.kind == kind and each.seconds is not None]
        of_kind = replace(measured, point=kind)
        if seconds:
            yield of_kind.sample(RECOVERY_SECONDS, sum(seconds) / len(seconds))
        else:
            yield of_kind.missing(RECOVERY_SECONDS, "not before the work was done")


def _stragglers(measured: Measured[Round], rounds: Sequence[Round]) -> Iterator[Sample]:
    waits: dict[str, float] = {}
    paces: dict[str, float] = {}
    for each in rounds:
        if each.counts is None:
            continue
        dead = {loss.worker for loss in each.counts.losses}
        ends = {worker: at for worker, at in each.counts.last_answer.items() if worker not in dead}
        last = max(ends.values(), default=0.0)
        for worker, at in ends.items():
            node_name = node_of(worker)
            waits[node_name] = waits.get(node_name, 0.0) + last - at
        by_worker = {key: busy / jobs for key, (busy, jobs) in each.account.by_worker.items() if jobs}
        middle = median_low(by_worker.values())
        for (node, _), of_a_job in by_worker.items():
            paces[node] = max(paces.get(node, 0.0), of_a_job / middle)
    yield measured.sample(LOST_SECONDS, sum(waits.values()))
    for name, wait in waits.items():
        yield measured.sample(LOST_SECONDS, wait, node=name)
    for name, pace in paces.items():
        yield measured.sample(PACE, pace, node=name)


def _peak_memory_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
