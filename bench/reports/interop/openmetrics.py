"""Writes the report as OpenMetrics with timestamps, as `promtool tsdb create-blocks-from openmetrics` reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import Estimate
from bench.model import Run
from bench.reports.interop.wall_clock import created_seconds, offsets

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily, Metric

LABELS = ("session", "stamps", "experiment", "cell", "arm", "metric", "unit", "point")
COST_LABELS = ("session", "stamps", "experiment", "cell", "metric", "unit", "topology", "price_per_cpu_hour")
FAMILIES = {
    "bench_invocation_value": ("Value of a metric in one invocation, at its end.", (*LABELS, "topology", "block")),
    "bench_median": ("Median of the invocations on a topology.", (*LABELS, "topology")),
    "bench_median_low": ("Lower end of the median's interval.", (*LABELS, "topology")),
    "bench_median_high": ("Upper end of the median's interval.", (*LABELS, "topology")),
    "bench_ratio": ("Topology over baseline, over the pairs.", (*LABELS, "topology", "baseline", "verdict")),
    "bench_ratio_low": ("Lower end of the ratio's interval.", (*LABELS, "topology", "baseline", "verdict")),
    "bench_ratio_high": ("Upper end of the ratio's interval.", (*LABELS, "topology", "baseline", "verdict")),
    "bench_cost": ("Cost of a million units of work on a topology, in `unit`.", COST_LABELS),
    "bench_cost_low": ("Lower end of the cost's interval.", COST_LABELS),
    "bench_cost_high": ("Upper end of the cost's interval.", COST_LABELS),
    "bench_session_runs": (
        "Runs of a session by how they ended.",
        ("session", "stamps", "target", "profile", "status"),
    ),
}


def render(report: Report, runs: Sequence[Run] = ()) -> str:
    """Write FAMILIES, and `# EOF`. Values of a whole session have the time at which its plan was made."""
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.openmetrics.exposition import generate_latest
    from prometheus_client.registry import Collector, CollectorRegistry

    families = {
        name: GaugeMetricFamily(name, help_text, labels=labels) for name, (help_text, labels) in FAMILIES.items()
    }
    created, ends = created_seconds(report.created), _ends(report, runs)
    stamps = ", ".join(report.stamps)
    for status, count in report.runs.items():
        labels = [report.session, stamps, report.target, report.profile, status]
        families["bench_session_runs"].add_metric(labels, count, timestamp=created)
    for cell in report.cells:
        for row in (*cell.rows, *cell.usage, *cell.sweeps):
            _add(families, (report.session, stamps), cell, row, created=created, ends=ends)

    for cost in report.costs:
        labels = [report.session, stamps, cost.experiment, cost.cell, cost.metric, cost.currency, cost.topology]
        _add_estimate(families, "bench_cost", cost.per_million, [*labels, report.price_per_cpu_hour], created=created)

    class Shown(Collector):
        def collect(self) -> Iterator[Metric]:
            return (family for family in families.values() if family.samples)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Shown())
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def _ends(report: Report, runs: Sequence[Run]) -> dict[tuple[str, str, str, int], float]:
    """Return when each run's last sample ended, in Unix seconds, by experiment, cell, topology and block."""
    offset_by_run = offsets(report.created, runs)
    return {
        (run.spec.experiment, run.spec.cell, run.spec.topology.name, run.spec.block): offset_by_run[run.spec.folder]
        + max(sample.interval.end for sample in run.samples)
        for run in runs
        if run.status == "ok" and run.samples
    }


def _add(
    families: dict[str, GaugeMetricFamily],
    session: tuple[str, str],  # its id and its stamps
    cell: CellReport,
    row: MetricRow,
    *,
    created: float,
    ends: dict[tuple[str, str, str, int], float],
) -> None:
    labels = [*session, cell.experiment, cell.cell, row.arm, row.metric.name, row.metric.unit, row.point]
    for topology, side in row.sides.items():
        for block, value in side.values.items():
            moment = ends.get((cell.experiment, cell.cell, topology, block), created)
            families["bench_invocation_value"].add_metric([*labels, topology, str(block)], value, timestamp=moment)
        _add_estimate(families, "bench_median", side.estimate, [*labels, topology], created=created)
    if row.comparison:
        comparison = row.comparison
        between = [comparison.candidate, comparison.baseline, comparison.verdict or "none"]
        _add_estimate(families, "bench_ratio", comparison.ratio, [*labels, *between], created=created)


def _add_estimate(
    families: dict[str, GaugeMetricFamily], name: str, estimate: Estimate | None, labels: list[str], *, created: float
) -> None:
    values = {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high} if estimate else {}
    for family, value in values.items():
        if value is not None:
            families[family].add_metric(labels, value, timestamp=created)
