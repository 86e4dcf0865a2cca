"""Makes the metrics page that Prometheus scrapes. It is read from the record's files, so that no series expires or is invented.

The number of series depends on the runs shown, on what an experiment declares and on the points of a sweep, but not on how
often each was measured, nor on how many trials a search has.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bench.cluster import driver_lock
from bench.cluster.recorder import DECLARED
from bench.model import Declared, Line, NodeUsage, RunResult, Sample, Spec, from_json
from bench.prometheus.reconcile import Key, key_of
from bench.record import line_format
from bench.record.store import SAMPLES

MOST_RUNS = 8  # newest runs on the page; Prometheus has stored the older ones
RUN_LABELS = ("session", "run", "experiment", "topology", "cell")
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
    "bench_node_usage": (
        "What a node used in the last sample of the subject, and how far any arm was throttled.",
        (*RUN_LABELS, "arm", "node", "resource"),
    ),
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
        ("experiment", "metric", "unit", "better", "headline"),
    ),
    "bench_arm_info": ("An arm that an experiment declares.", ("experiment", "arm", "role")),
    "bench_cell_param": ("A parameter of a cell.", ("session", "experiment", "cell", "param", "value")),
}


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
    usage: dict[tuple[str, str], NodeUsage] = field(default_factory=dict)  # by arm, node
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
        return (spec.session, spec.folder, spec.experiment, spec.topology.name, spec.cell)

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
            self.usage[line.usage.arm, line.usage.node] = line.usage  # in a sweep, the last point remains
        self.progress = line.progress or self.progress
        if line.sample:
            self.samples += 1
            self.last_turn = max(self.last_turn, line.sample.turn)
            self.is_steady = self.is_steady or (line.sample.turn > 0 and not line.sample.warmup)
            key = key_of(line.sample)
            if key is not None and not line.sample.warmup and line.sample.value is not None:
                self.values[key] = line.sample


class Records(Collector):
    """Follows the runs in a folder of records."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._runs: dict[Path, Followed] = {}

    def follow(self) -> tuple[object, ...]:
        """Read what was appended to the runs shown; return a state that differs if there is anything new to show."""
        for path in sorted(self._root.glob("*/runs/*/spec.json")):
            if path.parent not in self._runs:
                spec = from_json(path.read_bytes(), Spec)
                self._runs[path.parent] = Followed(spec, path.parent, begun=path.stat().st_mtime)
        for run in self.shown:
            run.read_on()
        return tuple((run.folder, run.lines, run.ended, run.declared is None) for run in self.shown)

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
        for name, declared in {run.spec.experiment: run.declared for run in runs if run.declared}.items():
            _add_declared(families, name, declared)
        yield from families.values()


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
    for (metric, arm, node, point), sample in run.values.items():
        families["bench_sample_value"].add_metric(
            (*labels, arm, metric, sample.unit, node, point), cast(float, sample.value)
        )
    # Empty until the driver has declared its arms.
    subjects = {arm.name for arm in run.declared.arms if arm.role == "subject"} if run.declared else set()
    for (arm, node), usage in run.usage.items():
        families["bench_node_usage"].add_metric((*labels, arm, node, "seconds"), usage.interval.seconds)
        families["bench_node_usage"].add_metric((*labels, arm, node, "cpus"), run.spec.topology.cpus_per_node)
        for name in USAGE_OF_SUBJECT if not subjects or arm in subjects else USAGE_OF_OTHERS:
            amount = getattr(usage, name)
            if amount is not None:
                families["bench_node_usage"].add_metric((*labels, arm, node, name), amount)
    for name, count in run.counts.items():
        if count is not None:
            families[name].add_metric(labels, count)
    for status in STATUSES:
        families["bench_run_status"].add_metric((*labels, status), status == run.status)
    for phase in PHASES:
        families["bench_run_phase"].add_metric((*labels, phase), phase == run.phase)


def _params(runs: list[Followed]) -> Iterator[tuple[str, ...]]:
    for run in runs:
        for name, value in run.spec.params.items():
            yield (run.spec.session, run.spec.experiment, run.spec.cell, name, str(value))


def _add_declared(families: dict[str, GaugeMetricFamily], name: str, declared: Declared) -> None:
    """Add the series of the metrics and arms that the experiment `name` declares."""
    for metric in declared.metrics:
        is_headline = "yes" if metric is declared.metrics[0] else "no"
        labels = (name, metric.name, metric.unit, metric.better or "", is_headline)
        families["bench_metric_info"].add_metric(labels, 1)
    for arm in declared.arms:
        families["bench_arm_info"].add_metric((name, arm.name, arm.role), 1)
