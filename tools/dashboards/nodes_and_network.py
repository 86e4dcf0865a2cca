"""Builds the board Nodes and network: each node's resource use, as counted in samples and as Ray reports it continuously."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel as Curves

from tools.dashboards.panels import RUN, at_end, board, curves, number, over_time, variable

NODE = 'instance=~"$instance"'
RATE = "[$__rate_interval]"
ON_NODE = "{{topology}} {{node}}"


def build() -> Dashboard:
    """Build the board."""
    made = board(
        "nodes-and-network",
        "raymeter: Nodes and network",
        "CPU, memory, network, object store and CPU throttling of every node, and the resources that monitoring uses.",
        since="now-30m",
        refresh="5s",
    ).with_variable(variable("instance", "label_values(ray_node_cpu_count, instance)", multiple=True))
    for title, panels in (
        ("Counted by raymeter on each node, in every sample of the subject", counted()),
        ("Reported by Ray, continuously", seen_by_ray()),
        ("Resources used by monitoring", watching()),
    ):
        made = made.with_row(Row(title))
        for panel in panels:
            made = made.with_panel(panel)
    return made.with_panel(
        number(
            "Alert rules that fired",
            "Lost nodes, memory kills, throttling over 1 %, runs on which record and Prometheus disagree. Should be 0.",
            "short",
            at_end('count(count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[$__range]))) or vector(0)'),
        )
    ).with_panel(
        number(
            "Pages that cannot be scraped",
            "Metrics pages that do not answer Prometheus. The exporter is one of them while an arm is timed without monitoring.",
            "short",
            at_end("count(up == 0) or vector(0)"),
        )
    )


def counted() -> tuple[Curves, ...]:
    """Panels of the exact counters of the last sample, held until the next one."""
    return (
        curves(
            "CPU use by node, % of its CPUs",
            "Mean over each sample, and peak: the node's busiest tenth of a second.",
            "percent",
            over_time(f"100 * {_per_second('cpu_seconds')} / {_used('cpus')}", ON_NODE),
            over_time(f"100 * {_used('peak_cpus')} / {_used('cpus')}", f"{ON_NODE} peak"),
        ),
        curves(
            "Peak memory by node",
            "Largest memory use of the node's processes in each sample, including the object store.",
            "bytes",
            over_time(_used("peak_memory_bytes"), ON_NODE),
        ),
        curves(
            "Network traffic by node, bytes per second",
            "Sent and received in the node's network namespace, mean over each sample. Idle traffic is included.",
            "Bps",
            *_both_ways("bytes"),
        ),
        curves(
            "Network traffic by node, packets per second",
            "Sent and received in the node's network namespace. Each packet costs CPU time, however small it is.",
            "pps",
            *_both_ways("packets"),
        ),
        curves(
            "TCP retransmits by node, segments per sample",
            "Segments sent again in each sample. More than a few: the link is full, or loses packets.",
            "short",
            over_time(_used("retransmits"), ON_NODE),
        ),
        curves(
            "CPU throttling by node",
            "Share of the periods of its CPU quota in which the node was stopped. Over 1 % is a caveat. 0 without a quota.",
            "percentunit",
            over_time(f"{_used('throttled_periods')} / clamp_min({_used('periods')}, 1)", ON_NODE),
        ),
    )


def seen_by_ray() -> tuple[Curves, ...]:
    """Panels of Ray's own metrics, which continue between samples."""
    return (
        curves(
            "CPU use, reported by Ray",
            "In a pod: % of its CPU limit. In a container or network namespace: % of the whole machine.",
            "percent",
            over_time(f"max by (instance) (ray_node_cpu_utilization{{{NODE}}})", "{{instance}}"),
        ),
        curves(
            "Memory use, reported by Ray",
            "Memory of the node without page cache; without a limit of its own, memory of the whole machine.",
            "bytes",
            over_time(f"max by (instance) (ray_node_mem_used{{{NODE}}})", "{{instance}}"),
        ),
        curves(
            "Network traffic, reported by Ray",
            "All interfaces except loopback: results, heartbeats, logs and Prometheus' scrapes.",
            "Bps",
            over_time(f"sum by (instance) (rate(ray_node_network_sent{{{NODE}}}{RATE}))", "{{instance}} out"),
            over_time(f"sum by (instance) (rate(ray_node_network_received{{{NODE}}}{RATE}))", "{{instance}} in"),
        ),
        curves(
            "Object store in use",
            "Shared memory that holds objects. When it is full, Ray writes objects to disk.",
            "bytes",
            over_time(f"max by (instance) (ray_object_store_used_memory{{{NODE}}})", "{{instance}}"),
        ),
        curves(
            "Objects received from other nodes",
            "Bytes per second. Objects under 100 kB travel inside calls and are not counted.",
            "Bps",
            over_time(
                f'sum by (instance) (rate(ray_object_manager_bytes{{{NODE},Type="Received"}}{RATE}))', "{{instance}}"
            ),
        ),
        curves(
            "Ray tasks by state",
            "Number of tasks in each state. Many tasks that wait for a worker mean more work than CPUs.",
            "short",
            over_time(f"sum by (State) (ray_tasks{{{NODE}}})", "{{State}}"),
        ),
    )


def watching() -> tuple[Curves, ...]:
    """Panels of the resources that exporter and Prometheus use."""
    return (
        curves(
            "CPU use of exporter and Prometheus",
            "Share of one CPU. The exporter runs beside the head: over 1 % it would affect the measurement.",
            "percentunit",
            over_time(f"sum by (job) (rate(bench_exporter_process_cpu_seconds_total{RATE}))", "exporter"),
            over_time(f'sum by (job) (rate(process_cpu_seconds_total{{job="prometheus"}}{RATE}))', "Prometheus"),
        ),
        curves(
            "Memory of exporter and Prometheus",
            "Resident memory of both processes.",
            "bytes",
            over_time("sum by (job) (bench_exporter_process_resident_memory_bytes)", "exporter"),
            over_time('sum by (job) (process_resident_memory_bytes{job="prometheus"})', "Prometheus"),
        ),
    )


def _used(resource: str) -> str:
    usage = f'bench_node_usage{{{RUN},arm="$subject",resource="{resource}"}}'
    return f"max by (topology, node) ({usage})"


def _per_second(resource: str) -> str:
    return f"{_used(resource)} / {_used('seconds')}"


def _both_ways(unit: str) -> tuple[Dataquery, Dataquery]:
    return (
        over_time(_per_second(f"sent_{unit}"), f"{ON_NODE} out"),
        over_time(_per_second(f"received_{unit}"), f"{ON_NODE} in"),
    )
