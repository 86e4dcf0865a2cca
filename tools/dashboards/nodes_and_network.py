"""Nodes and network: what every node uses, as counted in the samples and as Ray sees it all the time."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel as Curves

from tools.dashboards.panels import RUN, at_end, board, curves, number, over_time, variable

NODE = 'instance=~"$instance"'
RATE = "[$__rate_interval]"
ON_NODE = "{{topology}} {{node}}"


def build() -> Dashboard:
    """The board."""
    made = board(
        "nodes-and-network",
        "raymeter: Nodes and network",
        "CPU, memory, network, object store and throttling of every node, and what the watching itself takes.",
        since="now-30m",
        refresh="5s",
    ).with_variable(variable("instance", "label_values(ray_node_cpu_count, instance)", multiple=True))
    for title, panels in (
        ("Counted in each sample of the subject, by the probe on the node", counted()),
        ("As Ray sees its nodes, all the time", seen_by_ray()),
        ("What the watching takes", watching()),
    ):
        made = made.with_row(Row(title))
        for panel in panels:
            made = made.with_panel(panel)
    return made.with_panel(
        number(
            "Alerts in the board's time",
            "Lost nodes, memory kills, throttling over 1 %, runs whose record and Prometheus disagree. 0 is good.",
            "short",
            at_end('count(count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[$__range]))) or vector(0)'),
        )
    ).with_panel(
        number(
            "Targets that do not answer",
            "Pages that Prometheus asks for and does not get. While an arm is timed unwatched, the exporter is one.",
            "short",
            at_end("count(up == 0) or vector(0)"),
        )
    )


def counted() -> tuple[Curves, ...]:
    """Exact counts, of the last sample: they hold until the next one comes."""
    return (
        curves(
            "CPU per cent by node",
            "Of the node's own CPUs: in the mean over a sample, and in its busiest tenth of a second.",
            "percent",
            over_time(f"100 * {_per_second('cpu_seconds')} / {_used('cpus')}", ON_NODE),
            over_time(f"100 * {_used('peak_cpus')} / {_used('cpus')}", f"{ON_NODE} peak"),
        ),
        curves(
            "Peak memory",
            "The most that the node's processes held in a sample, the object store with it.",
            "bytes",
            over_time(_used("peak_memory_bytes"), ON_NODE),
        ),
        curves(
            "Bytes on the network",
            "In and out of the node's own network namespace, by the sample's length. Idle traffic is not taken off.",
            "Bps",
            *_both_ways("bytes"),
        ),
        curves(
            "Packets on the network",
            "In and out of the node's own network namespace. Many small ones cost CPU, whatever they carry.",
            "pps",
            *_both_ways("packets"),
        ),
        curves(
            "TCP retransmits",
            "Segments sent again in a sample. More than a few: the link is full, or loses packets.",
            "short",
            over_time(_used("retransmits"), ON_NODE),
        ),
        curves(
            "Throttled",
            "Share of the periods of its CPU quota in which the node was stopped. Over 1 % is a caveat. 0 without a quota.",
            "percentunit",
            over_time(f"{_used('throttled_periods')} / clamp_min({_used('periods')}, 1)", ON_NODE),
        ),
    )


def seen_by_ray() -> tuple[Curves, ...]:
    """Ray's own metrics, between the samples too."""
    return (
        curves(
            "CPU in use",
            "In a pod: of its limit. In a container or network namespace: of the whole host.",
            "percent",
            over_time(f"max by (instance) (ray_node_cpu_utilization{{{NODE}}})", "{{instance}}"),
        ),
        curves(
            "Memory in use",
            "Of the node, page cache left out; without a limit of its own: of the host.",
            "bytes",
            over_time(f"max by (instance) (ray_node_mem_used{{{NODE}}})", "{{instance}}"),
        ),
        curves(
            "Bytes on the network",
            "Of all interfaces but lo: payload, heartbeats, logs and the scrapes themselves.",
            "Bps",
            over_time(f"sum by (instance) (rate(ray_node_network_sent{{{NODE}}}{RATE}))", "{{instance}} out"),
            over_time(f"sum by (instance) (rate(ray_node_network_received{{{NODE}}}{RATE}))", "{{instance}} in"),
        ),
        curves(
            "Object store in use",
            "Shared memory that holds objects. When it is full, Ray writes objects to the disk.",
            "bytes",
            over_time(f"max by (instance) (ray_object_store_used_memory{{{NODE}}})", "{{instance}}"),
        ),
        curves(
            "Objects from other nodes",
            "Bytes of objects that came from other nodes' stores. Objects under 100 kB travel in the calls: not counted.",
            "Bps",
            over_time(
                f'sum by (instance) (rate(ray_object_manager_bytes{{{NODE},Type="Received"}}{RATE}))', "{{instance}}"
            ),
        ),
        curves(
            "Tasks by state",
            "What Ray's tasks are doing. Many that wait for a worker: more work than CPUs.",
            "short",
            over_time(f"sum by (State) (ray_tasks{{{NODE}}})", "{{State}}"),
        ),
    )


def watching() -> tuple[Curves, ...]:
    """Exporter and Prometheus themselves."""
    return (
        curves(
            "CPU of the watching",
            "Of one CPU. The exporter runs beside the head: over 1 % it would be measured too.",
            "percentunit",
            over_time(f"sum by (job) (rate(bench_exporter_process_cpu_seconds_total{RATE}))", "exporter"),
            over_time(f'sum by (job) (rate(process_cpu_seconds_total{{job="prometheus"}}{RATE}))', "Prometheus"),
        ),
        curves(
            "Memory of the watching",
            "Resident memory of exporter and Prometheus.",
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


def _both_ways(what: str) -> tuple[Dataquery, Dataquery]:
    return (
        over_time(_per_second(f"sent_{what}"), f"{ON_NODE} out"),
        over_time(_per_second(f"received_{what}"), f"{ON_NODE} in"),
    )
