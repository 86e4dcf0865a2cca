"""Builds the board Experiment: all metrics of one experiment, arm by arm."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.builders.timeseries import Panel as Curves
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from tools.dashboards.panels import (
    HEADLINE,
    RUN,
    board,
    curves,
    in_units_of_names,
    listing,
    matrix,
    over_time,
    rows,
    variable,
)

CELLS = f'{RUN},cell=~"$cell"'


def build() -> Dashboard:
    """Build the board."""
    return (
        board(
            "experiment",
            "raymeter: Experiment",
            "All metrics of one experiment and arm, over time and as last values. Choose one cell to compare its arms.",
            since="now-1h",
            refresh="10s",
        )
        .with_variable(variable("cell", f"label_values(bench_run_status{{{RUN}}}, cell)", multiple=True))
        .with_variable(variable("metric", f"label_values(bench_sample_value{{{RUN}}}, metric)", multiple=True))
        .with_panel(
            matrix(
                "$headline, median by arm",
                "Headline metric of the subject and of the arms that it is compared with, on the same nodes and CPUs.",
                "short",
                rows(_last_values("arm, topology", where=f"{CELLS},{HEADLINE}")),
                row="arm",
            )
        )
        .with_panel(
            matrix(
                "Share of the work by node, last sample",
                "Work of each node in the subject's last sample, as a share of all nodes' work. With uneven shares a node waits.",
                "percentunit",
                rows(f"{_work('topology, node')} / on (topology) group_left {_work('topology')}"),
                row="node",
            )
        )
        .with_panel(_metric())
        .with_panel(
            listing(
                "Last value of every metric",
                "Median over the runs' last samples, by metric, point of a sweep, arm, cell and topology.",
                "short",
                rows(_last_values("metric, unit, point, arm, cell, topology", where=f'{CELLS},node=""')),
                steps=[
                    (
                        "organize",
                        {
                            "excludeByName": {"Time": True},
                            "indexByName": {
                                name: position
                                for position, name in enumerate(
                                    ("metric", "point", "arm", "cell", "topology", "Value", "unit"), start=1
                                )
                            },
                            "renameByName": {"Value": "value"},
                        },
                    ),
                    ("sortBy", {"sort": [{"field": "metric"}]}),
                ],
            )
        )
    )


def _metric() -> Curves:
    by = "experiment, arm, topology, cell, unit, point"
    value = f'max by ({by}) (bench_sample_value{{{CELLS},metric=~"$metric",node=""}})'
    role = "on (experiment, arm) group_left (role) max by (experiment, arm, role) (bench_arm_info)"
    panel = curves(
        "$metric",
        "Each value is held until the next sample. Solid line: the subject. Dashed lines: arms that it is compared with.",
        "short",
        over_time(f"{value} * {role}", "{{role}} {{arm}} {{topology}} {{cell}} {{point}} ({{unit}})"),
        width=24,
    )
    dashed = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [6, 6]})
    thin = DynamicConfigValue("custom.lineWidth", 1)
    panel = in_units_of_names(panel).override_by_regexp("/^(?!subject)/", [dashed, thin])
    return panel.repeat("metric").repeat_direction("h").max_per_row(2)


def _last_values(by: str, *, where: str) -> str:
    labels = ", ".join(dict.fromkeys(("run", *by.split(", "))))
    last = f"max by ({labels}) (last_over_time(bench_sample_value{{{where}}}[$__range]))"
    return f"quantile by ({by}) (0.5, {last})"


def _work(by: str) -> str:
    usage = f'bench_node_usage{{{CELLS},arm="$subject",resource="work"}}'
    return f"sum by ({by}) (max by (run, topology, cell, node) (last_over_time({usage}[$__range])))"
