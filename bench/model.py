"""The nouns: frozen values that everything else passes on.

JSON both ways is `to_json` and `from_json`; a file from elsewhere is checked against the types while it is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import msgspec

from bench.columns import Columns, Layout
from bench.meanings import UNITS, ArmMeaning, Meaning
from bench.options import RunRequest
from bench.studies import Study
from bench.timeline import Timeline

SCHEMA_VERSION = 4
STEADY_TURNS = 5  # no fewer are left of an invocation whose first turns are discarded beyond those declared

WORK_TOLERANCE = 0.01  # of the headline's own count: what is rounded, or cut off at the end of an interval

MOST_PRIMARY = 5  # comparisons of a session: more than that cannot all be the one that was asked

NOT_FINITE = "not a finite number"  # how the reason begins of a sample whose value was NaN or infinite
OUT_OF_RANGE = "not a number from 1e-100 to 1e+100"  # in size, nor 0: squares and ratios of it overflow, or are lost
LEAST, MOST = 1e-100, 1e100

T = TypeVar("T")

Better = Literal["higher", "lower"]
Kind = Literal["rate", "time", "size", "ratio", "count"]
Status = Literal["ok", "invalid", "failed", "stopped", "damaged"]
"""How a run ended. `damaged` is never written: it is said of a run whose record cannot be read."""
Role = Literal["subject", "ceiling", "peer", "calls", "control"]
"""What an arm is compared as: the thing measured; the most that the CPUs can do; another way to do the work;
what the calls cost without the work; the thing measured while raymeter does not watch."""

Value = bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What is measured: its unit, which way is better, and how repeats are summed up."""

    name: str
    unit: str
    better: Better | None  # None: neither direction is, as of a size that was chosen
    kind: Kind
    help: str = ""
    axis: str = ""  # of a curve: what its steps count, "iterations". A curve is shown, and never summed up to one value
    table: str = ""  # in which its points are rows: those with the same one stand there side by side
    load: str = ""  # the metric that says at which load it was measured: two sides are compared at an equal one
    distribution: str = ""  # of which it is a percentile, "response time": those of one are drawn together
    percentile: float | None = None  # in per cent: 99.9
    means: Meaning = ""  # to analysis and reports, which look for no metric by its name
    is_total: bool = False  # over all the work of a pass: with more work there is more of it

    def __post_init__(self) -> None:
        if bool(self.distribution) != (self.percentile is not None):
            raise ValueError(f"{self.name} must have both distribution and percentile, or neither")
        if self.means not in UNITS:
            raise ValueError(f"{self.name} must mean one of {', '.join(filter(None, UNITS))}, got '{self.means}'")
        if not re.fullmatch(UNITS[self.means], self.unit):
            raise ValueError(
                f"{self.name} means {self.means}: its unit must match {UNITS[self.means]}, got '{self.unit}'"
            )

    @property
    def direction(self) -> str:
        """Which direction is better; empty where neither is."""
        return f"{self.better} is better" if self.better else ""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to do an experiment's work, measured in turn with the others by the same driver."""

    name: str
    help: str
    role: Role = "peer"
    probed: bool = True  # False: probes, record and exporter are silent while it is timed
    reference: str = ""  # of a training: the arm that does the same at the same batch, and is believed to converge
    scales: bool = True  # False: it does the same whatever the number of workers is
    repeatable: bool = True  # False: the same seed gives another result each time
    required: bool = False  # the subject's figures are relative to it: no choice of arms leaves it out
    means: ArmMeaning = ""  # to the time breakdown
    profiled_in: str = ""  # the function of workers that all of its work is done by, as profilers name it: "do (a.py)"


@dataclass(frozen=True, kw_only=True)
class Topology:
    """How many nodes, and what each of them has. Two topologies are comparable when their totals are equal."""

    name: str
    nodes: int
    cpus_per_node: int
    memory_bytes_per_node: int
    object_store_bytes_per_node: int
    threads_per_node: int
    shares: int = 0  # nodes of the topology that this one is compared with: both are given the same CPUs. 0: none

    @property
    def totals(self) -> dict[str, int]:
        """CPUs, memory, object store and native threads of all nodes together."""
        return {
            "CPUs": self.nodes * self.cpus_per_node,
            "memory": self.nodes * self.memory_bytes_per_node,
            "object store": self.nodes * self.object_store_bytes_per_node,
            "native threads": self.nodes * self.threads_per_node,
        }


@dataclass(frozen=True, kw_only=True)
class Spec:
    """All that one run needs to know, with what its experiment declares of its params: the module is not asked again."""

    id: str  # unique in its session: b03-multi-inference-c02
    session: str
    experiment: str
    cell: str  # c02: the params without the topology
    params: Mapping[str, Value]
    seed: int
    topology: Topology
    block: int
    warmups: int  # turns that are kept and marked, not counted
    samples: int  # turns that count
    sample_seconds: float  # an arm's work is done again until a sample has lasted so long
    deadline_seconds: float
    guessed_seconds: float  # that the run takes with its job, before any such run has been timed
    arms: tuple[str, ...] = ()  # names of those that are measured, the subject first; empty: all of its experiment
    peer_sample_seconds: float | None = None  # the same of arms beside the subject; None: as long as its own
    ray_settings: Mapping[str, str] = field(default_factory=dict)  # that it varies, without the RAY_ before them
    data_sets: tuple[str, ...] = ()  # that the user has seeded
    busy_workers: int | None = None  # that compute at once; None: their number follows from that of CPUs
    faults: str = ""  # to inject, as in worker:5+driver:3
    breaks_cluster: bool = False  # it removes or adds nodes on purpose: the next run needs a new cluster
    attempt: int = 1
    profile_with: str = ""  # the profiler that watches driver and workers, at a cost; empty: none
    cell_title: str = ""  # the params in which its cell differs from the others: "batch=1"; empty: an older plan

    def wants(self, arm: Arm) -> bool:
        """Whether `arm` is measured."""
        return not self.arms or arm.name in self.arms

    def seconds_of(self, arm: Arm) -> float:
        """How long a sample of `arm` must last."""
        peers = self.peer_sample_seconds
        return self.sample_seconds if arm.role == "subject" or peers is None else peers

    @property
    def folder(self) -> str:
        """Name of the folder of this run, and the end of its job's submission id."""
        return self.id if self.attempt == 1 else f"{self.id}.attempt-{self.attempt}"


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the experiment of a run declares, for who reads the run's record without its module."""

    metrics: tuple[Metric, ...]  # the headline first
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """From `begin` to `end`, seconds on the driver's monotonic clock."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One value of one metric in one interval, or the reason that there is none.

    A value that is NaN or infinite becomes a reason: JSON has no such numbers, and no statistic of them means anything.
    So does one so large or so small that statistics of it cannot be computed, as a loss has just before it is infinite.
    """

    metric: str
    value: float | None
    interval: Interval
    arm: str
    unit: str = ""
    turn: int = 0
    warmup: bool = False
    node: str | None = None
    point: str = ""  # of a sweep that one run makes by itself: "64 KiB x 4". Each point is compared by itself
    step: float | None = None  # where on the axis of its metric, which is a curve
    reason: str | None = None
    passes: int = 1  # of the work, in its interval
    of_many: bool = (
        False  # its point is one of any number, as a trial is: for records and reports, and no series of its own
    )
    since: int | None = (
        None  # of a figure over several turns: the first of them. Which of its figures counts is chosen later
    )

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError(f"a sample of {self.metric} has either a value or a reason that there is none")
        if self.step is not None and not math.isfinite(self.step):
            raise ValueError(f"a sample of {self.metric} must have a finite step, got {self.step}")
        if self.value and not LEAST <= abs(self.value) <= MOST:
            why = OUT_OF_RANGE if math.isfinite(self.value) else NOT_FINITE
            object.__setattr__(self, "reason", f"{why}: {self.value}")
            object.__setattr__(self, "value", None)

    @property
    def is_not_finite(self) -> bool:
        """Whether its value was NaN, infinite or as good as that, as the loss of a training that diverged."""
        return self.reason is not None and self.reason.startswith((NOT_FINITE, OUT_OF_RANGE))


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeUsage:
    """What one node used in one interval. None: it could not be counted here, which is not zero."""

    node: str
    arm: str
    turn: int
    warmup: bool
    interval: Interval
    point: str = ""
    cpu_seconds: float | None = None
    peak_cpus: float | None = None  # that were busy in the busiest tenth of a second, as of the network below
    peak_memory_bytes: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    received_packets: int | None = None
    sent_packets: int | None = None
    retransmits: int | None = None
    peak_bytes_per_second: float | None = None
    periods: int | None = None
    throttled_periods: int | None = None
    disk_read_bytes: int | None = None
    disk_written_bytes: int | None = None
    spilled_bytes: int | None = None
    major_faults: int | None = None
    run_queue_wait_seconds: float | None = None  # of all threads together: fit to run, and no CPU was free
    voluntary_switches: int | None = None  # of all threads: from a CPU, to wait for something
    involuntary_switches: int | None = None  # of all threads: from a CPU that another one was given
    cpu_mhz: float | None = None  # mean of the CPUs that the node may run on, when the interval ended
    celsius: float | None = None  # of its machine's warmest sensor, then
    watched_seconds: float | None = None  # a little more than the interval: this and what stands below is of that time
    host_busy_seconds: float | None = None  # of all CPUs of the node's host, of all processes
    steal_seconds: float | None = None  # of the CPUs that the node may run on, given to others by the hypervisor
    pressure_cpu_seconds: float | None = None  # in which some task of the host waited for a CPU
    pressure_io_seconds: float | None = None
    pressure_memory_seconds: float | None = None
    swapped_bytes: int | None = None  # in and out, by the whole host
    work: float | None = None  # units of work done here: inputs, trials, jobs


SAMPLES = Layout(Sample, Interval)
USAGE = Layout(NodeUsage, Interval)


@dataclass(frozen=True, kw_only=True)
class Core:
    """A physical core: those of its hardware threads that a node may run on, and all of them."""

    cpus: tuple[int, ...]
    siblings: tuple[int, ...]
    kind: str = ""  # "performance 4.9 GHz"; empty where all cores of the machine are alike, or nothing is known


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """What must be equal on two nodes for their numbers to be compared."""

    node: str
    boot_id: str
    kernel: str
    cpu_model: str
    machine: str
    cpus_granted: int
    cpus_allowed: int  # what affinity and cpuset let it run on
    cpu_quota: float | None  # of its control group and its parents
    memory_limit_bytes: int | None
    object_store_bytes: int
    shared_memory_bytes: int
    threads: Mapping[str, str]  # OMP_NUM_THREADS and its kin
    versions: Mapping[str, str]
    code_hash: str
    image_digest: str | None
    ray_environment: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)  # of its machine, as far as they show: clock source, SMT
    cpus_effective: float | None = (
        None  # that can be busy at once, see bench/machine/effective_cpus.py; None: an older record
    )
    cores: tuple[Core, ...] = ()  # that it may run on; empty: an older record


@dataclass(frozen=True, kw_only=True)
class Clock:
    """What the driver's clock can tell apart, and what it costs to time nothing."""

    step_seconds: float  # the least that two different readings differ by
    empty_sample_seconds: float  # a sample of work that does nothing: the harness's own share of every sample


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What was true while a run was done: of each node, of the cluster and of the data."""

    nodes: tuple[NodeFacts, ...]
    cluster: str  # the Ray cluster's own id
    ray_config: Mapping[str, Value]
    data: Mapping[str, str]  # name of a data set: its SHA-256
    link: str  # what joins the nodes: "veth", "veth at 1gbit", "loopback, no bytes counted", "pod network"
    same_host: bool
    profiler: str = ""  # that watched driver and workers
    clock: Clock | None = None  # of the driver; None: written before it was looked at
    clock_offsets_seconds: Mapping[str, float] = field(
        default_factory=dict
    )  # of nodes, from the driver's; empty: older
    copy_bytes_per_second: float | None = None  # from memory to memory, by one core of the driver's node


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of samples.jsonl: a number in sequence, and exactly one of the rest."""

    seq: int
    facts: Facts | None = None
    sample: Sample | None = None
    usage: NodeUsage | None = None
    digest: tuple[str, str] | None = None  # its name, its checksum
    progress: tuple[float, float] | None = None  # how much of the current work is done, and how much it is in total


@dataclass(frozen=True, kw_only=True)
class IdleLoad:
    """CPUs that a deployment uses on its machine while nothing runs, as measured after it was made."""

    cpus: float  # of what stands beside Ray's nodes: Kubernetes' own processes, monitoring
    ray_cpus: float  # of Ray's nodes


@dataclass(frozen=True, kw_only=True)
class QuietCheck:
    """What the machine that the session runs on was like before a block began. None: not to be seen there."""

    is_quiet: bool
    waited_seconds: float  # for it to become so
    busy: float | None  # share of all CPUs, in the last look
    pressure: float | None  # share of that time in which some task waited for a CPU
    boot_id: str  # of that machine: the nodes' is another one where they are elsewhere
    deployment_cpus: float = 0.0  # that the deployment itself uses at rest: `is_quiet` is about what is beyond them


@dataclass(frozen=True, kw_only=True)
class Extract:
    """What a run's folder keeps of its series in Prometheus. `missing`: why that is nothing."""

    series: int = 0
    points: int = 0
    every: int = 1  # of so many points of a series one is kept
    left_out: int = 0  # series that were too many
    sha256: str = ""  # of the file
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """run.json, written last: how the run ended, and what samples.jsonl must then hold."""

    status: Status
    reasons: tuple[str, ...] = ()
    lines: int
    sha256: str
    reconciled: bool | None = None
    alerts: tuple[str, ...] = ()
    log_end: str = ""
    quiet_check: QuietCheck | None = None  # of the run's block
    clock_offsets_seconds: Mapping[str, float] = field(
        default_factory=dict
    )  # of head and Prometheus, from the client's
    extract: Extract | None = None  # None: written before there were any
    idle_load: IdleLoad | None = None  # of the deployment; None: not measured there
    seconds: float | None = (
        None  # of the run with its job, by the client's clock; None: it was written by the driver alone
    )
    cluster_seconds: float | None = None  # that starting a cluster for it took; None: it was up
    monitored: bool | None = None  # whether a Prometheus stood beside its cluster; None: written before this was kept
    version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class Run:
    """One Spec, done. `status` says whether its numbers may be used, `reasons` why not."""

    spec: Spec
    status: Status
    reasons: tuple[str, ...] = ()
    facts: Facts | None = None
    samples: Sequence[Sample] = ()  # this and the next become columns
    usage: Sequence[NodeUsage] = ()
    digests: Mapping[str, str] = field(default_factory=dict)  # what must be equal over cells and arms: its checksum
    reconciled: bool | None = None  # Prometheus and the record agreed; None: not asked
    alerts: tuple[str, ...] = ()  # "Throttled: head was ...": alert rules that held while it went
    log_end: str = ""
    quiet_check: QuietCheck | None = None
    clock_offsets_seconds: Mapping[str, float] = field(
        default_factory=dict
    )  # of head and Prometheus, from the client's
    extract: Extract | None = None  # of Prometheus; None: the run is older than these
    idle_load: IdleLoad | None = None  # of its deployment; None: not measured there
    timelines: tuple[Timeline, ...] = ()  # of its nodes, where they were asked for: only a page draws them
    seconds: float | None = None  # with its job; None: not known
    cluster_seconds: float | None = None  # that starting a cluster for it took; None: it was up, or unknown
    profiles: Mapping[str, str] = field(default_factory=dict)  # by name of file: stacks, as bench/stacks.py has them
    monitored: bool | None = None  # whether a Prometheus stood beside its cluster; None: not known

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", Columns.of(SAMPLES, self.samples))
        object.__setattr__(self, "usage", Columns.of(USAGE, self.usage))

    @cached_property
    def covered(self) -> Interval | None:
        """From the first thing that was timed to the last, on the driver's clock; None where nothing was."""
        columns = (Columns.of(SAMPLES, self.samples), Columns.of(USAGE, self.usage))
        begins, ends = ([time for rows in columns for time in rows.read(name)] for name in ("begin", "end"))
        return Interval(min(begins), max(ends)) if begins else None


@dataclass(frozen=True, kw_only=True)
class Session(RunRequest):
    """An ordered, seeded plan of runs: what was asked for, with the target that it runs on, and what was planned of it."""

    id: str
    created: str  # ISO 8601, UTC
    metrics: Mapping[str, tuple[Metric, ...]]  # experiment: its metrics, the headline first
    arms: Mapping[str, tuple[Arm, ...]]
    specs: tuple[Spec, ...]  # in the order in which they run
    scaling: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # experiment: its parameters that count workers
    amounts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # and those that are an amount of work
    changed_units: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # and those that change what a unit of work is, with its name: "job"
    unfit: tuple[str, ...] = ()  # cells of the profile that these nodes are too small for, each with the reason
    dropped: tuple[str, ...] = ()  # what was asked for and is not in the plan, since the budget has no room for it
    scaled: tuple[str, ...] = ()  # what `--scale` made of sizes, as "inference inputs 10,000 instead of 100,000"
    stand_ins: tuple[str, ...] = ()  # data sets used in place of those that the user has not added
    unchecked: tuple[str, ...] = ()  # checks that are not made, for arms that are not measured; one an experiment
    studies: Mapping[str, Study] = field(
        default_factory=dict
    )  # experiment: what was published, where a cell repeats it
    ended: str = ""  # why it is complete without the runs that it lacks
    revision: str = ""  # of the checkout that planned it: "3121e6e4f0ab with changes"; empty: it was none
    primary_cells: tuple[str, ...] = ()  # cells named beforehand as those it is about, as "inference c01"
    version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if len(self.primary_cells) > MOST_PRIMARY:
            raise ValueError(f"{len(self.primary_cells)} primary comparisons, and {MOST_PRIMARY} are the most")


def to_json(value: object) -> bytes:
    """A noun as JSON, one line. Bytes of a path that are not UTF-8, which JSON cannot hold, are written as escapes."""
    try:
        return msgspec.json.encode(value, enc_hook=_rows)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(as_builtins(value)))


def _rows(value: object) -> list[object]:
    """Columns as JSON has them: row by row."""
    if isinstance(value, Columns):
        return list(value)
    raise NotImplementedError(f"{type(value).__name__} has no form in JSON")


def _encodable(value: Any) -> Any:
    """A value of JSON whose texts are all UTF-8."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    return [_encodable(each) for each in value] if isinstance(value, list) else value


def from_json(text: bytes | str, kind: type[T]) -> T:
    """The noun that `text` holds. Raises msgspec.ValidationError or msgspec.DecodeError."""
    return msgspec.json.decode(text, type=kind)


def as_builtins(value: object) -> Any:
    """A noun as dicts, lists, numbers and strings."""
    return msgspec.to_builtins(value, enc_hook=_rows)
