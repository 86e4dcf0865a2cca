"""Declares the data frames of a session: each column with its type, unit and meaning.

`bench/analysis/frames.py` makes the tables, and docs/frames.md has the same declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Type = Literal["category", "text", "integer", "number", "boolean", "value"]
"""What a column holds. A category is a text that many rows share; a value has the type of the parameter it is of."""


@dataclass(frozen=True)
class Column:
    """One column. A name that ends in `.*` is of any number of columns, one for each name that the record has."""

    name: str
    type: Type
    help: str
    unit: str = ""


@dataclass(frozen=True)
class Frame:
    """One table: what a row of it is, and its columns in order."""

    row: str
    columns: tuple[Column, ...]


OF_RUN = (
    Column("session", "category", "Id of the session."),
    Column("run", "category", "Name of the run's folder."),
    Column("experiment", "category", "Name of the experiment."),
    Column("cell", "category", "Name of the cell, as c01: one combination of parameters."),
    Column("topology", "category", "single, multi, or as the session named it."),
    Column("block", "integer", "Number of the block, from 1. Values of one block are pairs."),
)
_OF_TURN = (
    Column("turn", "integer", "Number of the turn, from 1; 0: the value belongs to no turn, as start-up does."),
    Column("warmup", "boolean", "Whether it was recorded as a warm-up. The report may discard further first turns."),
    Column("begin", "number", "Begin of the interval, on the driver's monotonic clock.", "s"),
    Column("end", "number", "End of the interval.", "s"),
)

FRAMES: Mapping[str, Frame] = {
    "runs": Frame(
        "one attempt at a run",
        (
            *OF_RUN,
            Column("title", "text", "Parameters in which the cell differs from the others."),
            Column("attempt", "integer", "Number of the attempt, from 1."),
            Column("status", "category", "ok, invalid, failed, stopped or damaged."),
            Column("counts", "boolean", "Whether it is ok, and the attempt of its run that counts."),
            Column("reasons", "text", "Reasons for a status other than ok."),
            Column("nodes", "integer", "Nodes of the topology."),
            Column("cpus_per_node", "integer", "CPUs of each node."),
            Column("memory_bytes_per_node", "integer", "Memory of each node.", "B"),
            Column("object_store_bytes_per_node", "integer", "Object store of each node.", "B"),
            Column("threads_per_node", "integer", "Native threads of each node."),
            Column("seed", "integer", "Seed of the run."),
            Column("warmups", "integer", "Turns declared as warm-ups."),
            Column("turns", "integer", "Turns planned to count."),
            Column("sample_seconds", "number", "Least duration of a sample.", "s"),
            Column("faults", "text", "Injected faults, as worker:5."),
            Column("profiler", "text", "Profiler of driver and workers."),
            Column("seconds", "number", "Duration of the run with its job, on the client's clock.", "s"),
            Column("cluster_seconds", "number", "Time to start a cluster for it.", "s"),
            Column("quiet", "boolean", "Whether the machine was quiet before the block."),
            Column("waited_seconds", "number", "Time that the quiet check waited.", "s"),
            Column("reconciled", "boolean", "Whether Prometheus agreed with the record; missing: it was not asked."),
            Column("alerts", "text", "Alert rules that held during the run."),
            Column("param.*", "value", "One column for each parameter of the experiments.", "of the parameter"),
        ),
    ),
    "samples": Frame(
        "one value of one metric in one timed interval, or the reason that there is none",
        (
            *OF_RUN,
            Column("metric", "category", "Name of the metric."),
            Column("arm", "category", "Name of the arm that was timed."),
            Column("node", "category", "Node that the value is of; missing: it is of the whole cluster."),
            Column("point", "category", "Point of a sweep within the run, as 64 KiB; empty: none."),
            *_OF_TURN,
            Column("value", "number", "The value; missing: see reason.", "that of the column unit"),
            Column("unit", "category", "Unit of the value."),
            Column("reason", "category", "Reason that there is no value."),
            Column("step", "number", "Place on the axis of a curve, as the iteration; missing: it is no curve."),
            Column("passes", "integer", "How often the work was done in the interval."),
            Column("of_many", "boolean", "Whether its point is one of any number, as a trial is."),
            Column("since", "integer", "First turn of a value over several turns."),
        ),
    ),
    "usage": Frame(
        "what one node used in one interval; a missing value could not be counted, which is not zero",
        (
            *OF_RUN,
            Column("node", "category", "Name of the node."),
            Column("arm", "category", "Name of the arm that was timed, or idle."),
            Column("point", "category", "Point of a sweep within the run; empty: none."),
            *_OF_TURN,
            Column("cpu_seconds", "number", "CPU time of the node.", "s"),
            Column("peak_cpus", "number", "CPUs that were busy in the busiest tenth of a second.", "CPUs"),
            Column("peak_memory_bytes", "integer", "Peak memory.", "B"),
            Column("received_bytes", "integer", "Bytes received in the node's network namespace.", "B"),
            Column("sent_bytes", "integer", "Bytes sent from it.", "B"),
            Column("received_packets", "integer", "Packets received.", "packets"),
            Column("sent_packets", "integer", "Packets sent.", "packets"),
            Column("retransmits", "integer", "TCP segments sent again.", "segments"),
            Column("peak_bytes_per_second", "number", "Network in the busiest tenth of a second.", "B/s"),
            Column("periods", "integer", "Periods of the CPU quota.", "periods"),
            Column("throttled_periods", "integer", "Periods in which the quota was used up.", "periods"),
            Column("disk_read_bytes", "integer", "Bytes read from disks.", "B"),
            Column("disk_written_bytes", "integer", "Bytes written to disks.", "B"),
            Column("spilled_bytes", "integer", "Bytes that Ray spilled to disk.", "B"),
            Column("major_faults", "integer", "Page faults that read from a disk.", "faults"),
            Column("run_queue_wait_seconds", "number", "Wait of runnable threads for a CPU, all together.", "s"),
            Column("voluntary_switches", "integer", "Context switches to wait for something.", "switches"),
            Column("involuntary_switches", "integer", "Context switches since another thread got the CPU.", "switches"),
            Column("cpu_mhz", "number", "Mean clock of the node's CPUs at the end of the interval.", "MHz"),
            Column("celsius", "number", "Warmest sensor of the node's machine at the end.", "°C"),
            Column("watched_seconds", "number", "Duration that the counters of the whole machine below cover.", "s"),
            Column("host_busy_seconds", "number", "Busy time of all CPUs of the machine, of all processes.", "s"),
            Column("steal_seconds", "number", "CPU time that the hypervisor gave to others.", "s"),
            Column("pressure_cpu_seconds", "number", "Time in which a task of the machine waited for a CPU.", "s"),
            Column("pressure_io_seconds", "number", "Time in which a task waited for I/O.", "s"),
            Column("pressure_memory_seconds", "number", "Time in which a task waited for memory.", "s"),
            Column("swapped_bytes", "integer", "Bytes swapped in and out by the machine.", "B"),
            Column("work", "number", "Units of work done on the node.", "units of work"),
        ),
    ),
    "pairs": Frame(
        "the headline of one cell in one block, on both topologies",
        (
            Column("session", "category", "Id of the session."),
            Column("experiment", "category", "Name of the experiment."),
            Column("cell", "category", "Name of the cell."),
            Column("title", "text", "Parameters in which the cell differs from the others."),
            Column("metric", "category", "Name of the headline metric."),
            Column("unit", "category", "Unit of both values."),
            Column("better", "category", "Direction that is better: higher or lower; missing: neither."),
            Column("arm", "category", "Name of the arm: the subject."),
            Column("block", "integer", "Number of the block."),
            Column("baseline", "category", "Topology that the other is compared with."),
            Column("candidate", "category", "Topology that is compared."),
            Column("baseline_value", "number", "Value of the invocation on the baseline.", "that of the column unit"),
            Column("candidate_value", "number", "Value on the candidate.", "that of the column unit"),
            Column("ratio", "number", "candidate_value / baseline_value.", "1"),
            Column("missing", "text", "Reason that the block gives no pair, as interference."),
        ),
    ),
    "facts": Frame(
        "what was true of one node during one run",
        (
            *OF_RUN,
            Column("node", "category", "Name of the node."),
            Column("cluster", "category", "Id of the Ray cluster."),
            Column("link", "category", "Link between the nodes, as veth."),
            Column("same_host", "boolean", "Whether all nodes were on one machine."),
            Column("boot_id", "category", "Boot of the node's machine."),
            Column("machine", "category", "Architecture, as x86_64."),
            Column("kernel", "category", "Version of the kernel."),
            Column("cpu_model", "category", "Model of the CPU."),
            Column("cpus_granted", "integer", "CPUs that Ray was given.", "CPUs"),
            Column("cpus_allowed", "integer", "CPUs that affinity and cpuset allow.", "CPUs"),
            Column("cpus_effective", "number", "CPUs that can be busy at once.", "CPUs"),
            Column("cpu_quota", "number", "CPU quota of its control group and parents; missing: none.", "CPUs"),
            Column("physical_cores", "integer", "Physical cores that it may run on.", "cores"),
            Column("memory_limit_bytes", "integer", "Memory limit; missing: none.", "B"),
            Column("object_store_bytes", "integer", "Size of the object store.", "B"),
            Column("shared_memory_bytes", "integer", "Size of /dev/shm.", "B"),
            Column("code_hash", "category", "Checksum of raymeter's code."),
            Column("image_digest", "category", "Digest of the container image; missing: no container."),
            Column("profiler", "category", "Profiler that watched driver and workers."),
            Column("clock_step_seconds", "number", "Resolution of the driver's clock.", "s"),
            Column("empty_sample_seconds", "number", "Duration of a sample of work that does nothing.", "s"),
            Column("clock_offset_seconds", "number", "Offset of the node's clock from the driver's.", "s"),
            Column("copy_bytes_per_second", "number", "Memory copy by one core of the driver's node.", "B/s"),
            Column("threads.*", "value", "Variables that limit native threads, as threads.OMP_NUM_THREADS."),
            Column("versions.*", "value", "Versions of packages, as versions.ray."),
            Column("settings.*", "value", "Settings of the machine, as the clock source."),
            Column("ray_environment.*", "value", "Variables of Ray."),
            Column("ray_config.*", "value", "Settings of Ray in force."),
            Column("data.*", "value", "SHA-256 of each data set."),
        ),
    ),
}
