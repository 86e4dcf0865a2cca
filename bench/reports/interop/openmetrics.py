"""Writes the report as OpenMetrics, each number with its moment: `promtool tsdb create-blocks-from openmetrics` takes it in."""

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
    "bench_invocation_value": ("What one invocation says of a metric, when it ended.", (*LABELS, "topology", "block")),
    "bench_median": ("Median of the invocations on a topology.", (*LABELS, "topology")),
    "bench_median_low": ("Lower end of the median's interval.", (*LABELS, "topology")),
    "bench_median_high": ("Upper end of the median's interval.", (*LABELS, "topology")),
    "bench_ratio": ("Topology over baseline, over the pairs.", (*LABELS, "topology", "baseline", "verdict")),
    "bench_ratio_low": ("Lower end of the ratio's interval.", (*LABELS, "topology", "baseline", "verdict")),
    "bench_ratio_high": ("Upper end of the ratio's interval.", (*LABELS, "topology", "baseline", "verdict")),
    "bench_cost": ("What a million units of work cost on a topology, in `unit`.", COST_LABELS),
    "bench_cost_low": ("Lower end of the cost's interval.", COST_LABELS),
    "bench_cost_high": ("Upper end of the cost's interval.", COST_LABELS),
    "bench_session_runs": (
        "Runs of a session by how they ended.",
        ("session", "stamps", "target", "profile", "status"),
    ),
}


def render(report: Report, runs: Sequence[Run] = ()) -> str:
    """FAMILIES, with `# EOF`. What a whole session says has the moment at which its plan was made."""
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.openmetrics.exposition import generate_latest
    from prometheus_client.registry import Collector, CollectorRegistry

    families = {name: GaugeMetricFamily(name, words, labels=labels) for name, (words, labels) in FAMILIES.items()}
    made, ends = created_seconds(report.created), _ends(report, runs)
    stamps = ", ".join(report.stamps)
    for status, count in report.runs.items():
        words = [report.session, stamps, report.target, report.profile, status]
        families["bench_session_runs"].add_metric(words, count, timestamp=made)
    for cell in report.cells:
        for row in (*cell.rows, *cell.usage, *cell.sweeps):
            _add(families, (report.session, stamps), cell, row, made=made, ends=ends)

    for cost in report.costs:
        words = [report.session, stamps, cost.experiment, cost.cell, cost.metric, cost.currency, cost.topology]
        _add_estimate(families, "bench_cost", cost.per_million, [*words, report.price_per_cpu_hour], made=made)

    class Shown(Collector):
        def collect(self) -> Iterator[Metric]:
            return (family for family in families.values() if family.samples)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Shown())
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def _ends(report: Report, runs: Sequence[Run]) -> dict[tuple[str, str, str, int], float]:
    """When each run's last sample ended, Unix seconds, by experiment, cell, topology and block."""
    places = offsets(report.created, runs)
    return {
        (run.spec.experiment, run.spec.cell, run.spec.topology.name, run.spec.block): places[run.spec.folder]
        + max(sample.interval.end for sample in run.samples)
        for run in runs
        if run.status == "ok" and run.samples
    }


def _add(
    families: dict[str, GaugeMetricFamily],
    session: tuple[str, str],  # and its stamps
    cell: CellReport,
    row: MetricRow,
    *,
    made: float,
    ends: dict[tuple[str, str, str, int], float],
) -> None:
    labels = [*session, cell.experiment, cell.cell, row.arm, row.metric.name, row.metric.unit, row.point]
    for topology, side in row.sides.items():
        for block, value in side.values.items():
            moment = ends.get((cell.experiment, cell.cell, topology, block), made)
            families["bench_invocation_value"].add_metric([*labels, topology, str(block)], value, timestamp=moment)
        _add_estimate(families, "bench_median", side.estimate, [*labels, topology], made=made)
    if row.comparison:
        found = row.comparison
        between = [found.candidate, found.baseline, found.verdict or "none"]
        _add_estimate(families, "bench_ratio", found.ratio, [*labels, *between], made=made)


def _add_estimate(
    families: dict[str, GaugeMetricFamily], name: str, found: Estimate | None, labels: list[str], *, made: float
) -> None:
    values = {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high} if found else {}
    for family, value in values.items():
        if value is not None:
            families[family].add_metric(labels, value, timestamp=made)
