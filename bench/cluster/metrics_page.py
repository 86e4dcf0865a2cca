"""Makes the metrics page that Prometheus scrapes. It is read from the record's files, so that no series expires or is invented.

The number of series depends on the runs shown, on what an experiment declares, on the points of a sweep and on the cells of the
session, but not on how often each was measured, nor on how many trials a search has.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bench.analysis.number_format import label
from bench.cluster import driver_lock
from bench.cluster.incoming import SESSION_GAUGES
from bench.cluster.recorder import DECLARED
from bench.model import Declared, Line, NodeUsage, RunResult, Sample, Spec, from_json
from bench.model import Metric as Declaration
from bench.prometheus import session_gauges
from bench.prometheus.reconcile import Key, key_of
from bench.prometheus.session_gauges import Gauge
from bench.record import line_format
from bench.record.store import SAMPLES

MOST_RUNS = 8  # newest runs on the page; Prometheus has stored the older ones
MOST_SESSIONS = 2  # newest sessions whose own values are on the page
RUN_LABELS = ("session", "run", "experiment", "topology", "cell", "parameters", "block")
STATUSES = ("running", "ok", "invalid", "failed", "stopped")
PHASES = ("start-up", "warm-up", "steady")
# The resources that dashboards and alert rules use; the record has the others.
USAGE_OF_SUBJECT = (
    *(
        "cpu_seconds",
        "peak_cpus",
        "peak_memory_bytes",
        "sent_bytes",
        "received_bytes",
        "sent_packets",
        "received_packets",
    ),
    *("retransmits", "periods", "throttled_periods", "work"),
)
USAGE_OF_OTHERS = ("periods", "throttled_periods")
FAMILIES = {
    "bench_sample_value": (
        "Last value of a metric that a run has measured, without warm-ups.",
        (*RUN_LABELS, "arm", "metric", "unit", "node", "point"),
    ),
    "bench_run_value": (
        "Value of a metric in a run: of all samples so far that count, work by time for a rate, or else the mean.",
        (*RUN_LABELS, "arm", "metric", "unit", "node", "point"),
    ),
    "bench_node_usage": (
        "What a node used in the last sample of the subject, by point of a sweep, and how far any arm was throttled.",
        (*RUN_LABELS, "arm", "node", "point", "resource"),
    ),
    "bench_node_memory_limit_bytes": ("Memory that a node may use, if it is limited.", (*RUN_LABELS, "node")),
    "bench_run_samples": ("Samples that a run has recorded, with warm-ups.", RUN_LABELS),
    "bench_run_turn": ("The turn that a run is in.", RUN_LABELS),
    "bench_run_turns_wanted": ("The turns that a run will have.", RUN_LABELS),
    "bench_run_work_done": ("How much of the current work is done, if the run reports it.", RUN_LABELS),
    "bench_run_work_wanted": ("How much work the current work is in total, if the run reports it.", RUN_LABELS),
    "bench_run_nodes_wanted": ("The nodes that a run asks for.", RUN_LABELS),
    "bench_run_status": ("1 for the present status of a run, 0 for the others.", (*RUN_LABELS, "status")),
    "bench_run_phase": (
        "1 for the present phase of a run, 0 for the others and after its end.",
        (*RUN_LABELS, "phase"),
    ),
    "bench_run_begun_timestamp_seconds": ("When a run's record was created.", RUN_LABELS),
    "bench_run_ended_timestamp_seconds": (
        "When a run's record was closed, or last written if its driver was killed.",
        RUN_LABELS,
    ),
    "bench_run_lines": ("Lines of a run's record that the exporter has read.", RUN_LABELS),
    "bench_run_lines_closed": ("Lines that a run wrote, as stated when its record was closed.", RUN_LABELS),
    "bench_metric_info": (
        "A metric that an experiment declares.",
        ("experiment", "metric", "unit", "better", "headline", "title", "choice"),
    ),
    "bench_arm_info": ("An arm that an experiment declares.", ("experiment", "arm", "role")),
    "bench_cell_param": (
        "A parameter of a cell.",
        ("session", "experiment", "cell", "parameters", "param", "value"),
    ),
    **session_gauges.FAMILIES,
}


@dataclass
class Total:
    """The weighted sum of the values of a series, and the sum of the weights."""

    amount: float = 0.0
    weight: float = 0.0

    def add(self, value: float, weight: float) -> None:
        self.amount += value * weight
        self.weight += weight


@dataclass
class Followed:
    """What has been read of one run so far: the last value of each series, and the number of lines."""

    spec: Spec
    folder: Path
    begun: float  # seconds since the epoch
    offset: int = 0
    lines: int = 0
    samples: int = 0
    last_turn: int = 0
    is_steady: bool = False
    progress: tuple[float, float] | None = None
    declared: Declared | None = None  # written by the driver; None until then
    values: dict[Key, Sample] = field(default_factory=dict)
    totals: dict[Key, Total] = field(default_factory=dict)
    usage: dict[tuple[str, str, str], NodeUsage] = field(default_factory=dict)  # by arm, node, point
    of_headline: set[tuple[str, str]] = field(
        default_factory=set
    )  # arms and nodes of which the headline's row is known
    memory_limits: Mapping[str, int] = field(default_factory=dict)  # by node, in bytes; of nodes that have one
    result: RunResult | None = None
    ended: float | None = None

    def read_on(self) -> None:
        """Read the lines that were appended since the last call."""
        if self.result is not None and self.lines >= self.result.lines:
            return
        # In this order: driver's end, run.json, lines. When one of them is seen, those after it were complete before.
        is_lost = driver_lock.has_ended(self.folder)
        ended = self.folder / "run.json"
        if self.result is None and ended.exists():
            self.result, self.ended = from_json(ended.read_bytes(), RunResult), ended.stat().st_mtime
        if self.declared is None and (self.folder / DECLARED).exists():
            self.declared = from_json((self.folder / DECLARED).read_bytes(), Declared)
        path = self.folder / SAMPLES
        if path.exists():
            with path.open("rb") as file:
                file.seek(self.offset)
                content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self.offset += len(whole)
            for text in whole.splitlines():
                self._take_in(line_format.decode(text))
        if is_lost and self.result is None:
            self.ended = max(file.stat().st_mtime for file in (path, self.folder) if file.exists())

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of RUN_LABELS."""
        spec = self.spec
        return (
            *(spec.session, spec.folder, spec.experiment, spec.topology.name),
            *(spec.cell, parameters_of(spec), f"{spec.block:02d}"),
        )

    @property
    def status(self) -> str:
        """The run's status. A driver that was killed wrote none: its run has failed."""
        if self.result:
            return self.result.status
        return "running" if self.ended is None else "failed"

    @property
    def phase(self) -> str | None:
        """The run's phase; None after its end."""
        if self.ended is not None:
            return None
        return "steady" if self.is_steady else "warm-up" if self.last_turn else "start-up"

    @property
    def counts(self) -> dict[str, float | None]:
        """The values of families with one series per run, by the family's name. None: no value yet."""
        return {
            "bench_run_samples": self.samples,
            "bench_run_turn": self.last_turn,
            "bench_run_turns_wanted": self.spec.warmups + self.spec.samples,
            "bench_run_nodes_wanted": self.spec.topology.nodes,
            "bench_run_work_done": self.progress[0] if self.progress else None,
            "bench_run_work_wanted": self.progress[1] if self.progress else None,
            "bench_run_begun_timestamp_seconds": self.begun,
            "bench_run_ended_timestamp_seconds": self.ended,
            "bench_run_lines": self.lines,
            "bench_run_lines_closed": self.result.lines if self.result else None,
        }

    def _take_in(self, line: Line) -> None:
        self.lines += 1
        if line.usage and not line.usage.warmup:
            self._take_usage(line.usage)
        self.progress = line.progress or self.progress
        if line.facts:
            nodes = line.facts.nodes
            self.memory_limits = {each.node: each.memory_limit_bytes for each in nodes if each.memory_limit_bytes}
        if line.sample:
            self.samples += 1
            self.last_turn = max(self.last_turn, line.sample.turn)
            self.is_steady = self.is_steady or (line.sample.turn > 0 and not line.sample.warmup)
            key = key_of(line.sample)
            if key is not None and not line.sample.warmup and line.sample.value is not None:
                self.values[key] = line.sample
                if line.sample.step is None:
                    self._add(key, line.sample.value, line.sample.interval.seconds)
                if self.declared and key == (self.declared.metrics[0].name, line.sample.arm, "", ""):
                    self._take_headline(line.sample)

    def _take_usage(self, usage: NodeUsage) -> None:
        """Keep the last row of a node at each point, and at the point "" the one of the headline, or the last while none is known."""
        self.usage[usage.arm, usage.node, usage.point] = usage
        if not usage.point and usage.turn:
            self.of_headline.add((usage.arm, usage.node))
        elif (usage.arm, usage.node) not in self.of_headline:
            self.usage[usage.arm, usage.node, ""] = usage

    def _take_headline(self, sample: Sample) -> None:
        """Find the rows that were counted while a sample of the headline was timed, at a point of a sweep too."""
        begin, end = sample.interval.begin, sample.interval.end
        for (arm, node, _), usage in list(self.usage.items()):
            if arm == sample.arm and usage.point and usage.interval.begin < end and usage.interval.end > begin:
                self.usage[arm, node, ""] = usage
                self.of_headline.add((arm, node))

    def _add(self, key: Key, value: float, seconds: float) -> None:
        """Add a value to the total of its series, as the report does: a rate weighs as much as its interval is long."""
        total = self.totals.setdefault(key, Total())
        total.add(value, seconds if key[0] in self._rates else 1.0)

    @cached_property
    def _rates(self) -> frozenset[str]:
        """The names of the metrics that are rates. The driver declares all metrics before the first sample."""
        metrics = self.declared.metrics if self.declared else ()
        return frozenset(metric.name for metric in metrics if metric.kind == "rate")


class Records(Collector):
    """Follows the runs in a folder of records."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._runs: dict[Path, Followed] = {}
        self._sessions: dict[Path, tuple[int, tuple[Gauge, ...]]] = {}  # when it was written, in ns, and what

    def follow(self) -> tuple[object, ...]:
        """Read what was appended to the runs shown; return a state that differs if there is anything new to show."""
        for path in sorted(self._root.glob("*/runs/*/spec.json")):
            if path.parent not in self._runs:
                spec = from_json(path.read_bytes(), Spec)
                self._runs[path.parent] = Followed(spec, path.parent, begun=path.stat().st_mtime)
        for run in self.shown:
            run.read_on()
        self._read_sessions()
        runs = ((run.folder, run.lines, run.ended, run.declared is None) for run in self.shown)
        return (*runs, *((path, written) for path, (written, _) in self._sessions.items()))

    def _read_sessions(self) -> None:
        for path in self._root.glob(f"*/{SESSION_GAUGES}"):
            written = path.stat().st_mtime_ns
            if path not in self._sessions or self._sessions[path][0] != written:
                self._sessions[path] = written, from_json(path.read_bytes(), tuple[Gauge, ...])

    @property
    def shown(self) -> list[Followed]:
        """The newest runs, the newest last."""
        return sorted(self._runs.values(), key=lambda run: run.begun)[-MOST_RUNS:]

    def collect(self) -> Iterator[Metric]:
        families = {name: GaugeMetricFamily(name, about, labels=labels) for name, (about, labels) in FAMILIES.items()}
        runs = self.shown
        for run in runs:
            _add_run(families, run)
        for labels in dict.fromkeys(_params(runs)):
            families["bench_cell_param"].add_metric(labels, 1)
        for gauge in self._gauges():
            families[gauge.name].add_metric(gauge.labels, gauge.value)
        for name, declared in {run.spec.experiment: run.declared for run in runs if run.declared}.items():
            _add_declared(families, name, declared)
        yield from families.values()

    def _gauges(self) -> Iterator[Gauge]:
        """The values of the newest sessions, as their clients sent them."""
        for _, gauges in sorted(self._sessions.values(), key=lambda sent: sent[0])[-MOST_SESSIONS:]:
            yield from gauges


class MetricsPage:
    """The metrics page: the records' part, renewed when they change, and the exporter's own resource use."""

    def __init__(self, root: Path) -> None:
        self._records = Records(root)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self._records)
        self._own = CollectorRegistry(auto_describe=False)
        self._own.register(ProcessCollector(namespace="bench_exporter", registry=None))
        self._shown: tuple[tuple[object, ...], bytes] = ((), b"")
        self._lock = threading.Lock()

    def text(self) -> bytes:
        """Return the page in Prometheus's text format."""
        with self._lock:
            state = self._records.follow()
            if state != self._shown[0]:
                self._shown = (state, generate_latest(self._registry))
            return self._shown[1] + generate_latest(self._own)


def _add_run(families: dict[str, GaugeMetricFamily], run: Followed) -> None:
    labels = run.labels
    _add_values(families, run)
    _add_usage(families, run)
    for name, count in run.counts.items():
        if count is not None:
            families[name].add_metric(labels, count)
    for node, limit in run.memory_limits.items():
        families["bench_node_memory_limit_bytes"].add_metric((*labels, node), limit)
    for status in STATUSES:
        families["bench_run_status"].add_metric((*labels, status), status == run.status)
    for phase in PHASES:
        families["bench_run_phase"].add_metric((*labels, phase), phase == run.phase)


def _add_values(families: dict[str, GaugeMetricFamily], run: Followed) -> None:
    for (metric, arm, node, point), sample in run.values.items():
        of_series = (*run.labels, arm, metric, sample.unit, node, point)
        families["bench_sample_value"].add_metric(of_series, cast(float, sample.value))
        total = run.totals.get((metric, arm, node, point))
        if total and total.weight:
            families["bench_run_value"].add_metric(of_series, total.amount / total.weight)


def _add_usage(families: dict[str, GaugeMetricFamily], run: Followed) -> None:
    # Empty until the driver has declared its arms.
    subjects = {arm.name for arm in run.declared.arms if arm.role == "subject"} if run.declared else set()
    for (arm, node, point), usage in run.usage.items():
        of_node = (*run.labels, arm, node, point)
        families["bench_node_usage"].add_metric((*of_node, "seconds"), usage.interval.seconds)
        families["bench_node_usage"].add_metric((*of_node, "cpus"), run.spec.topology.cpus_per_node)
        for name in USAGE_OF_SUBJECT if not subjects or arm in subjects else USAGE_OF_OTHERS:
            amount = getattr(usage, name)
            if amount is not None:
                families["bench_node_usage"].add_metric((*of_node, name), amount)


def parameters_of(spec: Spec) -> str:
    """The cell of a run by its parameters; by its name in plans that have no titles."""
    return spec.cell_title or spec.cell


def title_of(metric: Declaration) -> str:
    """A metric in words, with its unit and direction: throughput (inputs/s, higher is better)."""
    known = ", ".join(text for text in (metric.unit, metric.direction) if text not in ("", "1"))
    return f"{label(metric)} ({known})" if known else label(metric)


def _params(runs: list[Followed]) -> Iterator[tuple[str, ...]]:
    for run in runs:
        for name, value in run.spec.params.items():
            yield (
                *(run.spec.session, run.spec.experiment, run.spec.cell, parameters_of(run.spec)),
                *(name, str(value)),
            )


def _add_declared(families: dict[str, GaugeMetricFamily], name: str, declared: Declared) -> None:
    """Add the series of the metrics and arms that the experiment `name` declares."""
    for position, metric in enumerate(declared.metrics, start=1):
        title = title_of(metric)
        is_headline = "yes" if position == 1 else "no"
        labels = (name, metric.name, metric.unit, metric.better or "", is_headline, title, f"{position:02d} {title}")
        families["bench_metric_info"].add_metric(labels, 1)
    for arm in declared.arms:
        families["bench_arm_info"].add_metric((name, arm.name, arm.role), 1)
