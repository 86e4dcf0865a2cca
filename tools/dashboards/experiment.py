"""Builds the board Experiment: one cell in detail, its arms, nodes, response times, and all metrics."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Curves

from tools.dashboards.panels import (
    Built,
    board,
    columns,
    curves,
    in_per_cent,
    listing,
    matrix,
    over_time,
    rows,
    variable,
)
from tools.dashboards.results import HEADLINE, RUN, last, median, reported

ONE_CELL = 'parameters="$cell"'
OF_CELL = f"{RUN},{ONE_CELL}"
STARTUP = "startup_seconds"  # the name of the metric in each experiment that has it


def build() -> Dashboard:
    """Build the board."""
    made = (
        board(
            "experiment",
            "raymeter 4: Experiment",
            "One cell in detail: its arms, nodes, bytes and response times, and every metric over time.",
            since="now-1h",
            refresh="10s",
        )
        .with_variable(variable("cell", f"label_values(bench_run_status{{{RUN}}}, parameters)"))
        .with_variable(
            variable(
                "metric",
                'label_values(bench_metric_info{experiment="$experiment"}, choice)',
                label="metric of the curves",
            )
        )
    )
    for panel in (*_results(), *_loads()):
        made = made.with_panel(panel)
    made = made.with_row(Row("One metric over time: $metric"))
    for topology in ("single", "multi"):
        made = made.with_panel(_curves(topology))
    return made.with_row(Row("All metrics and parameters")).with_panel(_metrics()).with_panel(_parameters())


def _results() -> tuple[Built, ...]:
    payload = reported("bench_cell_used", "topology, resource", f'{OF_CELL},resource=~"payload|wire bytes"')
    work, use = (
        reported("bench_cell_node", "topology, node", f'{OF_CELL},quantity="{quantity}"')
        for quantity in ("share of work", "CPU use")
    )
    return (
        matrix(
            "$headline_title by arm",
            "Median of the runs that are ok, of blocks that are not excluded, for the subject and the arms that it is compared with.",
            "short",
            rows(median("arm, topology", f"{ONE_CELL},{HEADLINE}")),
            row="arm",
            empty="The cell has no run yet that is ok, in a block that is not excluded.",
        ),
        matrix(
            "Payload beside bytes sent, per unit of work",
            "What the work itself carries, and what all nodes sent for it, without idle traffic.",
            "decbytes",
            rows(payload),
            row="resource",
            empty="Not known: the experiment has no payload, or bytes are like idle traffic or not counted.",
        ),
        in_per_cent(
            matrix(
                "CPU use by node, % of its CPUs",
                "Median of the runs, while the subject's headline was timed.",
                "percent",
                rows(use),
                row="node",
                empty="Not counted here, or the first block has not ended.",
            )
        ),
        matrix(
            "Share of the work by node",
            "Median of the runs. With uneven shares a node waits.",
            "percentunit",
            rows(work),
            row="node",
            empty="The experiment does not say which node did what, or the first block has not ended.",
        )
        .min(0)
        .max(1),
    )


def _loads() -> tuple[Built, ...]:
    startup = f'{ONE_CELL},metric="{STARTUP}",arm="$subject",node="",point=""'
    titles = {"50": "Median response time by load", "99": "Response time by load, 99th percentile"}
    return (
        *(
            matrix(
                f"{title} (lower is better)",
                "Time from when a call was due until its answer, at shares of the topology's own closed loop. Median of the runs.",
                "s",
                rows(
                    reported(
                        "bench_cell_percentile",
                        "topology, point",
                        f'{OF_CELL},distribution="response time",percentile="{percentile}"',
                    )
                ),
                row="point",
                empty="This cell has no response times under open-loop load, or too few calls for this percentile.",
            )
            for percentile, title in titles.items()
        ),
        matrix(
            "Start-up of the subject (lower is better)",
            "Time until its actors or processes are ready for work, which is in no rate. Median of the runs.",
            "s",
            rows(median("metric, topology", startup)),
            row="metric",
            empty="The experiment does not time its start-up, or the cell has no run yet that is ok.",
        ),
    )


def _curves(topology: str) -> Curves:
    of_topology = f'{OF_CELL},topology="{topology}"'
    value = f'bench_sample_value{{{of_topology},node="",point=""}}'
    chosen = 'on (experiment, metric) bench_metric_info{experiment="$experiment",choice="$metric"}'
    newest = f"on (session, run) topk(1, bench_run_begun_timestamp_seconds{{{of_topology}}})"
    return curves(
        f"$metric on {topology}, by arm",
        "In the newest run of the cell, without warm-ups. Each value is held until the next sample.",
        "short",
        over_time(f"max by (arm) ({value} and {chosen} and {newest})", "{{arm}}"),
        empty=f"The metric has no sample on {topology} in this time, or by node or point of a sweep only: see the table below.",
    )


def _metrics() -> Table:
    return listing(
        "All metrics of the cell, medians of its runs",
        "Of runs that are ok, of blocks that are not excluded: of rates work by time, of others the mean of each run.",
        "short",
        rows(median("metric, unit, point, arm, topology", f'{ONE_CELL},node=""')),
        steps=columns("metric", "point", "arm", "topology", "unit", value="median"),
        empty="The cell has no run yet that is ok, in a block that is not excluded.",
    )


def _parameters() -> Table:
    return listing(
        "Parameters of the cell",
        "All parameters, also those that are the same in every cell.",
        "none",
        rows(f"max by (param, value) ({last('bench_cell_param', OF_CELL)})"),
        steps=columns("param", "value"),
        empty="No data: the cell has no run yet.",
    )
