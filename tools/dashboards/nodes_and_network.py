"""Builds the board Nodes and network: each node's resource use, as counted in samples and as Ray reports it continuously."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.builders.timeseries import Panel as Curves

from tools.dashboards.panels import (
    CAPACITY,
    Built,
    at_end,
    board,
    curves,
    in_per_cent,
    matrix,
    number,
    over_time,
    rows,
    variable,
)
from tools.dashboards.results import RUN, RUNNING, reported

NODE = 'instance=~"$instance"'
RATE = "[$__rate_interval]"
TOPOLOGY = (
    f'on (cluster) group_left (topology) (max by (cluster, topology) (bench_run_status{{{RUN},status="running"}}) == 1)'
)
"""What a node's own series is multiplied by: 1 while a run of the session is in progress, with its topology."""
MEMORY_OF_RAY = f"max by (topology) (ray_node_mem_total{{{NODE}}} * {TOPOLOGY})"
"""The memory that a node has, as Ray reports it: its limit in a pod, or that of its machine."""
NO_RUN = "No data: no run of this session was in progress in this time."


def build() -> Dashboard:
    """Build the board."""
    made = board(
        "nodes-and-network",
        "raymeter 3: Nodes and network",
        "CPU, memory, network, object store and CPU throttling of every node while a run is in progress, and the cost of measuring.",
        since="now-30m",
        refresh="5s",
    ).with_variable(
        variable(
            "instance", "label_values(ray_node_cpu_count, instance)", label="node, as Ray reports it", multiple=True
        )
    )
    for title, panels in (
        ("Counted by raymeter on each node, in every sample of the subject", counted()),
        ("Reported by Ray, continuously", seen_by_ray()),
        ("Cost of measuring", watching()),
    ):
        made = made.with_row(Row(title))
        for panel in panels:
            made = made.with_panel(panel)
    return made


def counted() -> tuple[Curves, ...]:
    """Panels of the exact counters of the present run's last sample, held until its next one."""
    return (
        in_per_cent(
            _of_nodes(
                "CPU use by node, % of its CPUs",
                "Mean over each sample.",
                "percent",
                f"100 * {_per_second('cpu_seconds')} / ignoring (resource) {_used('cpus')}",
            )
        ),
        in_per_cent(
            _of_nodes(
                "Peak CPU use by node, % of its CPUs",
                "The busiest tenth of a second of each sample.",
                "percent",
                f"100 * {_used('peak_cpus')} / ignoring (resource) {_used('cpus')}",
                empty="Peaks are not counted here, or no run of this session was in progress in this time.",
            )
        ),
        _of_nodes(
            "Bytes sent by node, per second",
            "In the node's network namespace, mean over each sample. Idle traffic is included.",
            "Bps",
            _per_second("sent_bytes"),
        ),
        _of_nodes(
            "Bytes received by node, per second",
            "In the node's network namespace, mean over each sample. Idle traffic is included.",
            "Bps",
            _per_second("received_bytes"),
        ),
        _of_nodes(
            "Packets sent by node, per second",
            "In the node's network namespace. Each packet costs CPU time, however small it is.",
            "pps",
            _per_second("sent_packets"),
        ),
        _of_nodes(
            "TCP segments sent again by node, per sample",
            "More than a few: the link is full, or loses packets.",
            "short",
            _used("retransmits"),
        ),
        _with_capacity(
            _of_nodes(
                "Peak memory by node, bytes",
                "Largest memory use of the node's processes in each sample, including the object store. The dotted capacity is the node's"
                " limit; without one, the memory of its machine.",
                "bytes",
                _used("peak_memory_bytes"),
            ),
            f"max by (topology) (bench_node_memory_limit_bytes{{{RUN}}} and on (session, run) {RUNNING})"
            f" or {MEMORY_OF_RAY}",
        ),
        _of_nodes(
            "CPU throttling by node, % of the periods of its quota",
            "Share of the periods in which the node was stopped. Over 1 %, the line, is a caveat. 0 without a quota.",
            "percentunit",
            f"{_used('throttled_periods')} / ignoring (resource) clamp_min({_used('periods')}, 1)",
            limit=0.01,
        ),
    )


def seen_by_ray() -> tuple[Curves, ...]:
    """Panels of Ray's own metrics, which continue between samples, while a run of the session is in progress."""
    return (
        in_per_cent(
            _of_ray(
                "CPU use by node, % as reported by Ray",
                "In a pod: of its CPU limit. In a container or network namespace: of the whole machine.",
                "percent",
                f"ray_node_cpu_utilization{{{NODE}}}",
            )
        ),
        _with_capacity(
            _of_ray(
                "Memory use by node, bytes as reported by Ray",
                "Memory of the node without page cache; without a limit of its own, memory of the whole machine. The dotted capacity is the"
                " most that there is.",
                "bytes",
                f"ray_node_mem_used{{{NODE}}}",
            ),
            MEMORY_OF_RAY,
        ),
        _of_ray(
            "Bytes sent by node, per second as reported by Ray",
            "All interfaces except loopback: results, heartbeats, logs and Prometheus' scrapes.",
            "Bps",
            f"rate(ray_node_network_sent{{{NODE}}}{RATE})",
        ),
        _of_ray(
            "Bytes received by node, per second as reported by Ray",
            "All interfaces except loopback: results, heartbeats, logs and Prometheus' scrapes.",
            "Bps",
            f"rate(ray_node_network_received{{{NODE}}}{RATE})",
        ),
        _of_ray(
            "Object store in use by node, % of its size",
            "Shared memory that holds objects. When it is full, Ray writes objects to disk.",
            "percentunit",
            f"ray_object_store_used_memory{{{NODE}}}"
            f" / (ray_object_store_used_memory{{{NODE}}} + ray_object_store_available_memory{{{NODE}}})",
        )
        .min(0)
        .max(1),
        _of_ray(
            "Objects received from other nodes, bytes per second",
            "Objects under 100 kB travel inside calls and are not counted.",
            "Bps",
            f'rate(ray_object_manager_bytes{{{NODE},Type="Received"}}{RATE})',
        ),
        curves(
            "Ray tasks that are not finished, by state",
            "Many tasks that wait for a worker mean more work than CPUs.",
            "short",
            over_time(
                f'sum by (State) (ray_tasks{{{NODE},State!~"FINISHED|FAILED"}} * {TOPOLOGY})',
                "{{State}}",
            ),
            empty=NO_RUN,
        ),
    )


def watching() -> tuple[Built, ...]:
    """Panels of what measuring costs: throughput, and the resources of exporter and Prometheus."""
    share = reported("bench_cell_share", "parameters, topology", f'{RUN},role="control"')
    return (
        matrix(
            "Throughput that measuring costs, % of the subject's",
            "What the same work does more while raymeter does not watch: the control arm beside the subject. Near 0, and either sign.",
            "percentunit",
            rows(f"1 / {share} - 1"),
            row="parameters",
            empty="This session has no control arm, or its first block has not ended.",
        ),
        curves(
            "CPU use of the exporter, % of one CPU",
            "The exporter runs beside the head: over 1 %, the line, it would affect the measurement.",
            "percentunit",
            over_time(f"sum by (job) (rate(bench_exporter_process_cpu_seconds_total{RATE}))", "exporter"),
            empty="No data: the exporter was not scraped in this time.",
            limit=0.01,
        ),
        curves(
            "CPU use of Prometheus, % of one CPU",
            "Prometheus runs beside the cluster.",
            "percentunit",
            over_time(f'sum by (job) (rate(process_cpu_seconds_total{{job="prometheus"}}{RATE}))', "Prometheus"),
            empty="No data: Prometheus did not scrape itself in this time.",
        ),
        curves(
            "Memory of exporter and Prometheus, bytes",
            "Resident memory of both processes.",
            "bytes",
            over_time("sum by (job) (bench_exporter_process_resident_memory_bytes)", "exporter"),
            over_time('sum by (job) (process_resident_memory_bytes{job="prometheus"})', "Prometheus"),
            empty="No data: neither was scraped in this time.",
        ),
        number(
            "Pages that cannot be scraped",
            "Metrics pages that do not answer Prometheus. The exporter is one of them while an arm is timed without monitoring.",
            "short",
            at_end("count(up == 0) or vector(0)", "pages"),
            empty="0",
            width=12,
            alarm_from=1,
        ),
    )


def _of_nodes(
    title: str, description: str, unit: str, values: str, *, empty: str = NO_RUN, limit: float | None = None
) -> Curves:
    """A curve per node and topology, of the present run alone: its values are divided before they are grouped."""
    expr = f"max by (topology, node) ({values} and on (session, run) {RUNNING})"
    return curves(title, description, unit, over_time(expr, "{{topology}} {{node}}"), empty=empty, limit=limit)


def _with_capacity(panel: Curves, expr: str) -> Curves:
    """Give a panel a curve per topology of the most that a node can use: its nodes are equal."""
    return panel.with_target(over_time(expr, f"{{{{topology}}}} {CAPACITY}").ref_id(CAPACITY))


def _of_ray(title: str, description: str, unit: str, values: str) -> Curves:
    function = "sum" if values.startswith("rate(") else "max"  # traffic adds up over interfaces and types
    expr = f"{function} by (topology, instance) ({values} * {TOPOLOGY})"
    return curves(title, description, unit, over_time(expr, "{{topology}} {{instance}}"), empty=NO_RUN)


def _used(resource: str) -> str:
    return f'bench_node_usage{{{RUN},arm="$subject",point="",resource="{resource}"}}'


def _per_second(resource: str) -> str:
    return f"{_used(resource)} / ignoring (resource) {_used('seconds')}"
