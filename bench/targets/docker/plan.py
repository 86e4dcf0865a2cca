"""Plans the containers of the target docker: names, labels, commands, environment, limits and files, as plain values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bench.identity import SOURCE
from bench.machine.cores import Cpu, slices, spare
from bench.model import Topology, to_json
from bench.targets import link, node_names
from bench.targets.docker import Options
from bench.targets.docker.engine import DEPLOYMENT, USER, File, folder_files

PART = "io.raymeter.part"  # of the deployment: cluster or monitoring
NODE = "io.raymeter.node"
TOPOLOGY = "io.raymeter.topology"
OPTIONS = "io.raymeter.options"
NETWORK = "docker bridge"

DASHBOARD_PORT, EXPORTER_PORT, AGENT_PORT, METRICS_PORT, GCS_PORT = 8265, 8090, 52365, 8080, 6379
TOKEN_PATH = "/run/raymeter/token"  # noqa: S105, the path of a secret, not a secret
RECORDS = "/records"  # a folder of the image, which its user may write to
LOCAL_CODE = "/opt/raymeter-local"

_EXPORTER_BYTES = 512 * 2**20
_LOGS = {"type": "json-file", "config": {"max-size": "20m", "max-file": "2"}}
_LEAST_SHARES = 128  # of 1024: monitoring yields to what is measured


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of one cluster."""

    options: Options
    topology: Topology
    image: str  # its id
    digest: str  # as the record names it
    user: int
    cpus: tuple[Cpu, ...]  # of the engine's machine
    ray_settings: Mapping[str, str] = field(default_factory=dict)  # Ray's own, without the RAY_ before them

    @property
    def deployment(self) -> str:
        return self.options.name

    @property
    def nodes(self) -> tuple[str, ...]:
        return node_names(self.topology)

    @property
    def measured_cpus(self) -> tuple[tuple[int, ...], ...]:
        """CPUs of each node; no CPU belongs to two."""
        topology = self.topology
        return slices(self.cpus, nodes=topology.nodes, cpus_per_node=topology.cpus_per_node, shares=topology.shares)

    @property
    def spare_cpus(self) -> tuple[int, ...]:
        """CPUs for exporter and monitoring."""
        return spare(self.cpus, [cpu for of_node in self.measured_cpus for cpu in of_node])


def resource_name(deployment: str, part: str = "") -> str:
    """The engine's name for a part of a deployment."""
    return f"raymeter-{deployment}" + (f"-{part}" if part else "")


def labels(deployment: str, part: str = "") -> dict[str, str]:
    """The labels of a part of this user's deployment, or of all of it."""
    return {DEPLOYMENT: deployment, USER: str(os.getuid())} | ({PART: part} if part else {})


def node_settings(plan: Plan, index: int) -> dict[str, Any]:
    """The settings of one node's container."""
    topology, name = plan.topology, plan.nodes[index]
    cpus = plan.measured_cpus[index]
    return {
        **_base(plan, name),
        "command": ray_command(plan, index),
        "labels": {**labels(plan.deployment, "cluster"), NODE: name, **_made_for(plan)},
        "hostname": name,
        "network": resource_name(plan.deployment),
        "nano_cpus": topology.cpus_per_node * 10**9,
        "cpuset_cpus": _cpu_list(cpus),
        "mem_limit": topology.memory_bytes_per_node,
        "memswap_limit": topology.memory_bytes_per_node,  # no swap: a node that needs more is killed, and the run is invalid
        "shm_size": shared_memory_bytes(topology),
        **({"ports": published(DASHBOARD_PORT, EXPORTER_PORT)} if index == 0 else {}),
        **({"volumes": [f"{resource_name(plan.deployment, 'records')}:{RECORDS}"]} if index == 0 else {}),
        "environment": environment(plan, name),
    }


def exporter_settings(plan: Plan, head_id: str) -> dict[str, Any]:
    """The settings of the exporter's container: in the head's network, outside its limits."""
    return {
        **_base(plan, "exporter"),
        "command": [
            *("python", "-m", "bench.cluster.exporter", "--records", RECORDS),
            *("--host", "0.0.0.0", "--port", str(EXPORTER_PORT)),  # noqa: S104 - the container's own network
        ],
        "labels": {**labels(plan.deployment, "cluster"), NODE: "exporter"},
        "network_mode": f"container:{head_id}",
        "cpuset_cpus": _cpu_list(plan.spare_cpus),
        "cpu_shares": _LEAST_SHARES,
        "mem_limit": _EXPORTER_BYTES,
        "volumes": [f"{resource_name(plan.deployment, 'records')}:{RECORDS}"],  # it takes the data sets that are sent
        "environment": {**_code(plan), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": TOKEN_PATH},
    }


def service_settings(deployment: str, part: str) -> dict[str, Any]:
    """The settings that Prometheus and Grafana share."""
    return {
        "name": resource_name(deployment, part),
        "labels": {**labels(deployment, "monitoring"), NODE: part},
        "network": resource_name(deployment),
        "cpu_shares": _LEAST_SHARES,
        "mem_limit": 2 * _EXPORTER_BYTES,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "log_config": _LOGS,
    }


def files(plan: Plan, token: str) -> dict[str, File]:
    """The files of each container of the cluster: the token, and the local code with --dev."""
    secret = File(content=token.encode(), mode=0o400, owner=plan.user)
    return {TOKEN_PATH: secret, **(local_code() if plan.options.dev else {})}


@cache
def local_code() -> dict[str, File]:
    """The code of this checkout, read once: the same for every cluster of a session."""
    return folder_files(SOURCE, f"{LOCAL_CODE}/bench")


def ray_command(plan: Plan, index: int) -> list[str]:
    """The command that starts Ray in a node's container. Ray detects the container's address."""
    topology, gcs_address = plan.topology, f"head:{GCS_PORT}"
    head = [
        *("--head", f"--port={GCS_PORT}", "--include-dashboard=true"),
        *("--dashboard-host=0.0.0.0", f"--dashboard-port={DASHBOARD_PORT}"),
        "--no-monitor",  # no autoscaler
    ]
    return [
        *("python", "-m", "bench.targets.ray_start"),
        *([] if index == 0 else ["--after", gcs_address]),
        *("start", "--block", "--disable-usage-stats"),
        *(head if index == 0 else [f"--address={gcs_address}"]),
        f"--num-cpus={topology.cpus_per_node}",
        "--num-gpus=0",
        f"--memory={topology.memory_bytes_per_node}",
        f"--object-store-memory={topology.object_store_bytes_per_node}",
        f"--metrics-export-port={METRICS_PORT}",
        f"--dashboard-agent-listen-port={AGENT_PORT}",
    ]


def environment(plan: Plan, node: str) -> dict[str, str]:
    """The environment of a node's processes. It has no secret: `docker inspect` shows it."""
    threads = str(plan.topology.threads_per_node)
    return {
        **_code(plan),
        "RAYMETER_DEPLOYMENT": plan.deployment,
        "RAYMETER_NODE": node,
        "RAYMETER_RECORDS": RECORDS,
        "RAYMETER_LINK": link.describe(NETWORK, plan.options.link_rate),
        "RAYMETER_IMAGE_DIGEST": plan.digest,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": TOKEN_PATH,
        "RAY_metrics_report_interval_ms": "2000",
        "REPORTER_UPDATE_INTERVAL_MS": "1000",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "RAY_GRAFANA_HOST": "DISABLED",
        **{f"RAY_{name}": value for name, value in plan.ray_settings.items()},
    }


def shared_memory_bytes(topology: Topology) -> int:
    """The size of /dev/shm: a tenth more than the object store, in whole MiB; Ray uses a disk if it does not fit."""
    return math.ceil(topology.object_store_bytes_per_node * 1.1 / 2**20) * 2**20


def published(*ports: int) -> dict[str, tuple[str, None]]:
    """Ports published at 127.0.0.1 only, on free ports of the engine's choice."""
    return {f"{port}/tcp": ("127.0.0.1", None) for port in ports}


def published_url(attributes: Mapping[str, Any], port: int) -> str:
    """The address of a container's published port, from `docker inspect`; empty if it is not published."""
    bindings = (attributes["NetworkSettings"].get("Ports") or {}).get(f"{port}/tcp") or []
    return f"http://127.0.0.1:{bindings[0]['HostPort']}" if bindings else ""


def _made_for(plan: Plan) -> dict[str, str]:
    """The labels that `status` reads, of a cluster that another process made."""
    return {TOPOLOGY: to_json(plan.topology).decode(), OPTIONS: to_json(plan.options).decode()}


def _base(plan: Plan, part: str) -> dict[str, Any]:
    return {
        "image": plan.image,
        "name": resource_name(plan.deployment, part),
        "init": True,  # reaps the processes that Ray orphans
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "log_config": _LOGS,
    }


def _code(plan: Plan) -> dict[str, str]:
    return {"PYTHONPATH": LOCAL_CODE} if plan.options.dev else {}


def _cpu_list(cpus: tuple[int, ...]) -> str:
    return ",".join(str(cpu) for cpu in cpus)
