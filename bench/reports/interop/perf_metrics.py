"""Writes the medians as `perf_metrics`, the format of Ray's release tests, whose tools compare releases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.model import Kind, Run

TYPES: dict[Kind, str] = {"rate": "THROUGHPUT", "time": "LATENCY", "size": "MEMORY"}
"""Types of values. Ray has none for ratios, counts and money: they are left out."""


def render(report: Report, _: Sequence[Run] = ()) -> str:
    """Write one JSON object: `perf_metrics`, `success` (1 if every planned run is ok), and the session."""
    is_whole = report.runs.get("ok", 0) == report.planned
    content = {
        "perf_metrics": list(_metrics(report)),
        "session": report.session,
        "stamps": list(report.stamps),
        "success": "1" if is_whole else "0",
    }
    return json.dumps(content, indent=4, sort_keys=True) + "\n"


def _metrics(report: Report) -> Iterator[dict[str, object]]:
    for cell in report.cells:
        for row in (*cell.rows, *cell.sweeps):
            for topology, side in row.sides.items():
                if side.estimate and row.metric.kind in TYPES:
                    names = (cell.experiment, cell.cell, topology, row.arm, row.point, row.metric.name)
                    yield {
                        "perf_metric_name": "_".join(name for name in names if name),
                        "perf_metric_type": TYPES[row.metric.kind],
                        "perf_metric_value": side.estimate.value,
                    }
