"""Builds the board Side by side: the results of one node and of several in a session, cell by cell."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from tools.dashboards.panels import HEADLINE, RUN, bars, board, curves, listing, matrix, over_time, rows

ESTIMATE = "Median over the blocks of each run's last sample. The report uses all samples: trust it, not this estimate."


def build() -> Dashboard:
    """Build the board."""
    return (
        board(
            "side-by-side",
            "raymeter: Side by side",
            "One node compared with several, for each cell of a session. Estimates from Prometheus: the report decides.",
            since="now-3h",
            refresh="10s",
        )
        .with_panel(
            matrix(
                "$headline, median by cell",
                f"Headline metric on each topology. {ESTIMATE}",
                "short",
                rows(headline()),
                row="cell",
            )
        )
        .with_panel(
            bars(
                "$headline, multi / single",
                "100 %: several nodes do as much as one with the same CPUs. The difference to 100 % is the effect of the network.",
                "percentunit",
                rows(ratio()),
                row="cell",
            )
        )
        .with_panel(
            matrix(
                "Bytes sent per unit of work",
                "Bytes that left the nodes' network interfaces in the last sample, idle traffic included, per unit of the headline.",
                "bytes",
                rows(per_unit("sent_bytes")),
                row="cell",
            )
        )
        .with_panel(
            matrix(
                "CPU time per unit of work",
                "CPU seconds of all nodes in the last sample, per unit of the headline.",
                "s",
                rows(per_unit("cpu_seconds")),
                row="cell",
            )
        )
        .with_panel(_numbers())
        .with_panel(
            curves(
                "$headline during the session",
                "Each sample of the subject. A drift on both topologies is the machine's.",
                "short",
                over_time(
                    f'max by (topology, cell) (bench_sample_value{{{RUN},{HEADLINE},arm="$subject"}})',
                    "{{topology}} {{cell}}",
                ),
            )
        )
        .with_panel(
            listing(
                "Parameters of the cells",
                "The names c01, c02, ... of cells stand for these parameters.",
                "none",
                rows(f"max by (cell, param, value) (last_over_time(bench_cell_param{{{RUN}}}[$__range]))"),
                steps=[
                    ("groupingToMatrix", {"columnField": "param", "rowField": "cell", "valueField": "value"}),
                    ("organize", {"renameByName": {"cell\\param": "cell"}}),
                ],
                width=12,
            )
        )
    )


def headline(topology: str = "") -> str:
    """Return the subject's headline by topology and cell, or by cell for one topology."""
    where = f',topology="{topology}"' if topology else ""
    value = f'bench_sample_value{{{RUN},{HEADLINE},arm="$subject"{where}}}'
    return _median(f"max by (run, topology, cell) (last_over_time({value}[$__range]))", topology)


def per_unit(resource: str, topology: str = "") -> str:
    """Return what all nodes used of `resource` per unit of the subject's work."""
    return _median(f"{_used(resource, topology)} / {_used('work', topology)}", topology)


def ratio() -> str:
    """Return the headline of multi divided by that of single, by cell."""
    return f"{headline('multi')} / {headline('single')}"


def _used(resource: str, topology: str) -> str:
    where = f',topology="{topology}"' if topology else ""
    usage = f'bench_node_usage{{{RUN},arm="$subject",resource="{resource}"{where}}}'
    by_node = f"max by (run, topology, cell, node) (last_over_time({usage}[$__range]))"
    return f"sum by (run, topology, cell) ({by_node})"


def _median(values: str, topology: str) -> str:
    return f"quantile by ({'cell' if topology else 'topology, cell'}) (0.5, {values})"


def _numbers() -> Table:
    columns = {
        "single": (headline("single"), "short"),
        "multi": (headline("multi"), "short"),
        "multi / single": (ratio(), "percentunit"),
        "bytes per unit, single": (per_unit("sent_bytes", "single"), "bytes"),
        "bytes per unit, multi": (per_unit("sent_bytes", "multi"), "bytes"),
        "CPU per unit, single": (per_unit("cpu_seconds", "single"), "s"),
        "CPU per unit, multi": (per_unit("cpu_seconds", "multi"), "s"),
    }
    letters = [chr(ord("A") + number) for number in range(len(columns))]
    panel = listing(
        "$headline and resource use in numbers",
        f"{ESTIMATE} Click a cell to see its curves.",
        "short",
        *(rows(query) for query, _ in columns.values()),
        steps=[
            ("filterFieldsByName", {"include": {"pattern": "^(cell|Value.*)$"}}),
            ("joinByField", {"byField": "cell", "mode": "outer"}),
            (
                "organize",
                {"renameByName": {f"Value #{letter}": name for letter, name in zip(letters, columns, strict=True)}},
            ),
        ],
    )
    for name, (_, unit) in columns.items():
        panel = panel.override_by_name(name, [DynamicConfigValue("unit", unit)])
    to_cell = "/d/raymeter-experiment?${session:queryparam}&${experiment:queryparam}&var-cell=${__value.raw}"
    link = {"title": "Curves of this cell", "url": f"{to_cell}&${{__url_time_range}}"}
    return panel.override_by_name("cell", [DynamicConfigValue("links", [link])])
