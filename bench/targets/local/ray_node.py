"""Builds the commands and the environment of a node's processes from the state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.targets.local import interpreter, namespaces
from bench.targets.local.running import RUN_FOLDER
from bench.targets.local.state import LocalFolder, Node, State
from bench.targets.processes import DEPLOYMENT, DEPLOYMENT_ID

# Variables that configure Ray and its libraries, or send a node's requests to a proxy.
_CONFIGURING_PREFIXES = ("RAY_", "RAYMETER_", "GRPC_", "TUNE_")
_CONFIGURING = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy", "ftp_proxy", "netrc")  # in either case


def ray_command(state: State, node: Node) -> list[str]:
    """The command that starts Ray on `node`."""
    topology, ports = state.topology, node.ports
    gcs_address = f"{state.head.address}:{state.head.ports.gcs}"
    is_head = node is state.head
    return [
        *_inside(state, node),
        *(interpreter.path(Path(state.run_folder)), "-m", "bench.targets.ray_start"),
        *([] if is_head else ["--after", gcs_address]),
        *("start", "--block", "--disable-usage-stats"),
        *(_head_options(state) if is_head else [f"--address={gcs_address}"]),
        f"--node-ip-address={node.address}",
        f"--num-cpus={topology.cpus_per_node}",
        "--num-gpus=0",
        f"--memory={topology.memory_bytes_per_node}",
        f"--object-store-memory={topology.object_store_bytes_per_node}",
        f"--temp-dir={temp_dir(state, node)}",
        f"--metrics-export-port={ports.metrics}",
        f"--dashboard-agent-listen-port={ports.agent}",
        f"--min-worker-port={ports.workers[0]}",
        f"--max-worker-port={ports.workers[1]}",
        *(
            f"--{option}={port}"
            for option, port in {
                "dashboard-agent-grpc-port": ports.agent_grpc,
                "node-manager-port": ports.node_manager,
                "object-manager-port": ports.object_manager,
                "runtime-env-agent-port": ports.runtime_env_agent,
            }.items()
            if port
        ),
    ]


def exporter_command(state: State, state_folder: LocalFolder) -> list[str]:
    """The command that starts the exporter, beside the head."""
    return [
        *_inside(state, state.head),
        *(
            interpreter.path(Path(state.run_folder)),
            "-m",
            "bench.cluster.exporter",
            "--records",
            str(state_folder.records),
        ),
        *("--host", _listens_on(state), "--port", str(state.head.ports.exporter)),
    ]


def environment(state: State, node: Node, state_folder: LocalFolder, outer: Mapping[str, str]) -> dict[str, str]:
    """The environment of `node`'s processes: `outer` without variables that configure Ray, and raymeter's own."""
    threads = str(state.topology.threads_per_node)
    inherited = {
        name: value
        for name, value in outer.items()
        if not name.startswith(_CONFIGURING_PREFIXES) and name.lower() not in _CONFIGURING
    }
    return inherited | {
        "HOME": str(state_folder.ray_home),
        "TMPDIR": state.run_folder,  # experiments make sockets, too
        DEPLOYMENT: state.deployment,
        DEPLOYMENT_ID: state.id,
        "RAYMETER_NODE": node.name,
        "RAYMETER_RECORDS": str(state_folder.records),
        RUN_FOLDER: state.run_folder,
        "RAYMETER_LINK": state.link,
        "RAYMETER_NODE_CGROUP": node.cgroup,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(state_folder.token_path),
        "RAY_metrics_report_interval_ms": "2000",
        "REPORTER_UPDATE_INTERVAL_MS": "1000",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "RAY_GRAFANA_HOST": "DISABLED",
        "DASHBOARD_METRIC_PORT": str(state.head.ports.dashboard_metrics),
        **{f"RAY_{name}": value for name, value in state.ray_settings.items()},
    }


def temp_dir(state: State, node: Node) -> str:
    """Ray's own folder of `node`; two raylets would overwrite each other's files in one."""
    return str(Path(state.run_folder) / ("h" if node.index == 0 else f"w{node.index}"))


def _head_options(state: State) -> list[str]:
    ports = state.head.ports
    return [
        "--head",
        f"--port={ports.gcs}",
        "--include-dashboard=true",
        f"--dashboard-host={_listens_on(state)}",
        f"--dashboard-port={ports.dashboard}",
        "--no-monitor",  # no autoscaler: its port would be the same for every cluster
    ]


def _listens_on(state: State) -> str:
    # In a network namespace of its own, 0.0.0.0 reaches no further than the host's link.
    return "0.0.0.0" if state.isolation == "namespace" else state.head.address  # noqa: S104 - see above


def _inside(state: State, node: Node) -> tuple[str, ...]:
    if state.isolation == "loopback":
        return ()
    return namespaces.inside(namespaces.node_name(state.id, node.index))
