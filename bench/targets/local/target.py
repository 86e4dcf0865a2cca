"""Makes nodes as processes of this machine, each in a network namespace if that is allowed, else on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import psutil

from bench.counts import plural
from bench.errors import BadInput, BenchError, DoesNotFit, TargetFailed
from bench.machine import cores
from bench.machine.effective_cpus import effective_cpus
from bench.model import Topology
from bench.record.files import error_in_log
from bench.targets import (
    RAYS_OWN,
    Cluster,
    Target,
    TargetStatus,
    link,
    memory_kills,
    node_names,
    processes,
    readiness,
    worker_starts,
)
from bench.targets.bounds import check_sizes, mib
from bench.targets.local import (
    Options,
    cgroups,
    interpreter,
    monitoring,
    namespaces,
    ports,
    ray_node,
    run_folders,
    running,
)
from bench.targets.local.state import (
    PROMETHEUS,
    Monitoring,
    Node,
    Ports,
    State,
    boot_id,
    folder_of,
    new_id,
    now,
    run_folder,
)
from bench.targets.steps import SILENT, Steps

DEADLINE_SECONDS = 120.0
POLL_SECONDS = 0.1
HEAD_PROCESS = "gcs_server"
LEAST_FREE_BYTES = 2**30  # on the disk of Ray's own files: logs and spilled objects


def create(options: Options) -> Target:
    """The target whose nodes are processes of this machine."""
    return LocalTarget(options)


class LocalTarget:
    """Nodes on this machine."""

    name = "local"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._state_folder = folder_of(options.name)
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def check(self, topology: Topology, steps: Steps = SILENT) -> None:  # noqa: ARG002, it is done at once
        """Check sizes, options, and that this machine has enough CPUs, memory and disk."""
        check_sizes(topology)
        self._isolation()
        if self._options.monitoring:
            monitoring.check()
        _check_room(topology)

    def up(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN, steps: Steps = SILENT) -> Cluster:
        """Make a cluster of `topology`, in place of the one that this deployment has."""
        check_sizes(topology)
        isolation = self._isolation()
        if self._options.monitoring:
            monitoring.check()
        with self._state_folder.lock():
            kept = self._end_previous(steps)
            try:
                _check_room(topology)
                return self._start_cluster(topology, isolation, ray_settings, steps, kept)
            except BaseException:
                self._end()
                raise

    def down(self) -> tuple[str, ...]:
        """Remove everything that this deployment ever started. Returns what was removed."""
        with self._state_folder.lock():
            ended = self._end()
        if not ended and (other := running.elsewhere(self._options.name)):
            raise other
        return ended

    def status(self) -> TargetStatus:
        """The present state; nothing is changed."""
        state = self._state_folder.read()
        if state is None:
            folders = (str(self._state_folder.path),) if self._state_folder.path.exists() else ()
            deployments = running.deployments(self._options.name)
            remains = (item for orphan in deployments if not orphan.is_kept for item in orphan.remains())
            other = running.elsewhere(self._options.name)
            return TargetStatus(cluster=None, remains=(*folders, *remains), not_ready=str(other or ""))
        not_ready = self._why_not_ready(state)
        if not not_ready:
            options = replace(
                self._options,
                isolation=state.isolation,
                link_rate=state.link_rate,
                monitoring=state.monitoring is not None,
            )
            return TargetStatus(cluster=self._cluster(state), remains=self._remains(state), options=options)
        return TargetStatus(cluster=None, remains=self._remains(state), not_ready=not_ready)

    def _why_not_ready(self, state: State) -> str:
        if state.boot_id != boot_id():
            return "this machine was restarted"
        try:
            return readiness.describe(self._missing(state))
        except BenchError as error:
            return error.what.rstrip(".")

    def trouble(self) -> str:
        """Processes killed for memory, from the nodes' control groups; a run notices by itself that Ray has ended."""
        with suppress(BenchError):
            state, mounts = self._state_folder.read(), cgroups.mounts()
            nodes = state.nodes if state else ()
            return memory_kills.describe({n.name: cgroups.memory_events(mounts, n.cgroup) for n in nodes if n.cgroup})
        return ""

    def ended(self) -> str:
        """Whether Ray on the head has ended: `ray start --block` ends with any of its processes."""
        with suppress(BenchError):
            state = self._state_folder.read()
            if state is None:
                return "the cluster was taken down"
            if not any(process.info["name"] == HEAD_PROCESS for process in processes.find(state.deployment, state.id)):
                return "Ray on head has ended"
        return ""

    def cpu_seconds(self) -> float | None:
        """CPU time of Ray's processes, the exporter and Prometheus."""
        with suppress(BenchError):
            state = self._state_folder.read()
            return sum(processes.cpu_seconds(state.deployment, each) for each in state.process_ids) if state else 0.0
        return None

    def idle_load(self) -> None:
        """Not measured: the CPU time of its processes can be counted at any time."""

    def failed_starts(self) -> str:
        """Why workers did not start, from the raylets' logs."""
        with suppress(BenchError):
            state = self._state_folder.read()
            folders = {node.name: Path(ray_node.temp_dir(state, node)) for node in state.nodes} if state else {}
            logs = {name: folder / "session_latest" / "logs" for name, folder in folders.items()}
            return worker_starts.describe({name: worker_starts.failed(folder) for name, folder in logs.items()})
        return ""

    def note(self) -> str:
        """The folder of Ray's files, if it is not the temporary folder."""
        return run_folders.choose().note

    def ask_nodes(self, command: Sequence[str]) -> Mapping[str, str]:  # noqa: ARG002, the contract has it
        """Nothing: nodes are processes of this machine, which `bench doctor` checks directly."""
        return {}

    def _isolation(self) -> Literal["namespace", "loopback"]:
        if self._options.isolation == "loopback":
            reason = "--isolation loopback was asked for"
        elif not (reason := namespaces.why_unavailable()):
            return "namespace"
        elif self._options.isolation == "namespace":
            raise BadInput(
                f"Nodes cannot have network namespaces here: {reason}.", "Run as root, or use --isolation auto."
            )
        if self._options.link_rate is not None:
            raise BadInput(f"--link-rate needs network namespaces: {reason}.", "Run as root, or leave --link-rate out.")
        return "loopback"

    def _start_cluster(
        self,
        topology: Topology,
        isolation: Literal["namespace", "loopback"],
        ray_settings: Mapping[str, str],
        steps: Steps,
        kept: Monitoring | None,
    ) -> Cluster:
        beside = kept or (monitoring.plan(self._options.name) if self._options.monitoring else None)
        if isolation == "namespace":
            with steps.step("making the network namespaces", "network namespaces made"):
                state = self._plan_namespaces(topology, ray_settings, beside)
                for node in state.nodes:
                    namespaces.create_node(state.id, str(state.subnet), node.index, state.link_rate)
            self._start(state, steps)
        else:
            claim = ports.Claim(topology.nodes)
            try:
                planned = self._plan(topology, "loopback", new_id(), None, claim.ports)
                state = replace(planned, ray_settings=ray_settings, monitoring=beside)
                self._state_folder.write(state)
                self._start(state, steps)
            finally:
                claim.release()
        return self._cluster(state)

    def _plan_namespaces(self, topology: Topology, ray_settings: Mapping[str, str], beside: Monitoring | None) -> State:
        deployment_id = new_id()
        with namespaces.subnet_lock():
            subnet = namespaces.free_subnet(namespaces.taken())
            planned = self._plan(topology, "namespace", deployment_id, subnet, [Ports()] * topology.nodes)
            state = replace(planned, ray_settings=ray_settings, monitoring=beside)
            self._state_folder.write(state)
            namespaces.create_lan(state.id, subnet)
        return state

    def _plan(
        self,
        topology: Topology,
        isolation: Literal["namespace", "loopback"],
        deployment_id: str,
        subnet: str | None,
        node_ports: Sequence[Ports],
    ) -> State:
        rate = self._options.link_rate
        slices = cores.slices(
            cores.read_cpus(effective_cpus().allowed),
            nodes=topology.nodes,
            cpus_per_node=topology.cpus_per_node,
            shares=topology.shares,
        )
        names = node_names(topology)
        nodes = tuple(
            Node(
                name=name,
                index=index,
                # Ray would replace 127.0.0.1 by the machine's own address.
                address=namespaces.address(subnet, index) if subnet else f"127.0.0.{index + 2}",
                cpus=slices[index],
                ports=node_ports[index],
                cgroup=f"raymeter/{self._options.name}-{deployment_id}/{name}",
            )
            for index, name in enumerate(names)
        )
        return State(
            id=deployment_id,
            deployment=self._options.name,
            boot_id=boot_id(),
            created=now(),
            isolation=isolation,
            link=link.describe("veth", rate) if subnet else "loopback, no bytes counted",
            link_rate=rate,
            subnet=subnet,
            run_folder=run_folder(deployment_id, run_folders.choose().path),
            topology=topology,
            nodes=nodes,
        )

    def _start(self, state: State, steps: Steps) -> None:
        state = _with_cgroups(state)
        run_folders.make(Path(state.run_folder))
        interpreter.link(Path(state.run_folder))
        if state.monitoring and (started := monitoring.ensure(state, state.monitoring, self._state_folder)):
            self._started[PROMETHEUS] = started
        for node in state.nodes:
            self._start_one(state, node, node.name, ray_node.ray_command(state, node))
        command = ray_node.exporter_command(state, self._state_folder)
        self._start_one(state, state.head, readiness.EXPORTER, command)
        with readiness.registering(state.topology, steps) as report:
            readiness.wait_until_ready(
                lambda: report(self._missing(state)),
                missing=lambda late: late,
                raise_for_failure=lambda _late, _: self._raise_for_ended(),
                timeout_error=lambda late, _: self._timeout_error(state, late),
                until=time.monotonic() + DEADLINE_SECONDS,
                poll_seconds=POLL_SECONDS,
            )
        if state.monitoring:
            monitoring.wait(state.monitoring, self._state_folder, self._raise_for_ended, steps)

    def _missing(self, state: State) -> list[str]:
        agents = {node.name: f"http://{node.address}:{node.ports.agent}/api/healthz" for node in state.nodes}
        return readiness.missing_nodes(
            state.topology,
            {node.name: node.address for node in state.nodes},
            dashboard_url=state.dashboard_url,
            exporter_url=state.exporter_url,
            token=self._state_folder.token(),
            agent_answers=lambda name: readiness.get(agents[name])[0] == 200,
        )

    def _raise_for_ended(self) -> None:
        for name, process in self._started.items():
            if process.poll() is not None:
                raise TargetFailed(
                    f"{name} ended while it was starting, exit code {process.returncode}: {self._reason(name)}.",
                    "Try again when the machine is less busy; `bench resume latest` continues a session.",
                )

    def _timeout_error(self, state: State, late: Sequence[str]) -> TargetFailed:
        last = "; ".join(f"{name}: {self._reason(name)}" for name in late)
        registered = readiness.describe_registered(state.topology, late)
        return TargetFailed(f"Nodes registered in {DEADLINE_SECONDS:.0f} s: {registered}. {last}.")

    def _reason(self, process: str) -> str:
        return error_in_log(self._state_folder.log(process)) or "its log is empty"

    def _start_one(self, state: State, node: Node, name: str, command: Sequence[str]) -> None:
        self._started[name] = processes.start(
            command,
            environment=ray_node.environment(state, node, self._state_folder, os.environ),
            cpus=node.cpus,
            log=self._state_folder.log(name),
            folder=Path(state.run_folder),
        )
        if node.cgroup:
            cgroups.enter(cgroups.mounts(), node.cgroup, self._started[name].pid)

    def _end_previous(self, steps: Steps) -> Monitoring | None:
        """End the previous cluster, and everything else but a Prometheus that is still wanted, which is returned."""
        previous = self._state_folder.read()
        if previous is None:
            self._end()
            return None
        with steps.step("ending the previous cluster", "previous cluster ended"):
            if not (self._options.monitoring and monitoring.is_running(previous)):
                self._end()
                return None
            self._end_cluster(previous)
            self._state_folder.clear(keep=PROMETHEUS)
            return previous.monitoring

    def _end(self) -> tuple[str, ...]:
        state = self._state_folder.read()
        if state is None:
            ended = running.end_orphans(self._options.name)
            self._state_folder.remove()
            return ended
        ended = self._remains(state)
        self._end_cluster(state)
        monitoring.end(state)
        self._state_folder.remove()
        return ended

    def _end_cluster(self, state: State) -> None:
        processes.end_all(state.deployment, state.id)
        for process in self._started.values():
            process.poll()  # reaps them: they were children of this process
        self._started.clear()
        if state.isolation == "namespace":
            namespaces.remove(state.id, len(state.nodes))
        mounts = cgroups.mounts()
        for group in _groups(state):
            cgroups.remove(mounts, group)
        shutil.rmtree(state.run_folder, ignore_errors=True)

    def _remains(self, state: State) -> tuple[str, ...]:
        running_processes = [
            f"process {process.pid} ({process.info['name']})"
            for each in state.process_ids
            for process in processes.find(state.deployment, each)
        ]
        links = namespaces.existing(state.id, len(state.nodes)) if state.isolation == "namespace" else []
        mounts = cgroups.mounts()
        groups_wanted = (*_groups(state), *([state.monitoring.cgroup] if state.monitoring else []))
        groups = [f"control group {group}" for group in groups_wanted if cgroups.exists(mounts, group)]
        folders = [str(folder) for folder in (state.run_folder, self._state_folder.path) if Path(folder).exists()]
        return (*running_processes, *links, *groups, *folders)

    def _cluster(self, state: State) -> Cluster:
        return Cluster(
            topology=state.topology,
            dashboard_url=state.dashboard_url,
            exporter_url=state.exporter_url,
            token=self._state_folder.token(),
            nodes=tuple(node.name for node in state.nodes),
            link=state.link,
            python=interpreter.path(Path(state.run_folder)),
            prometheus_url=state.monitoring.url if state.monitoring else None,
        )


def _groups(state: State) -> Iterator[str]:
    """The control groups of the nodes; none where they could not be made."""
    return (node.cgroup for node in state.nodes if node.cgroup)


def _with_cgroups(state: State) -> State:
    # All nodes or none: limits on some would make them unequal.
    mounts, topology = cgroups.mounts(), state.topology
    made = all(
        cgroups.create(mounts, node.cgroup, cpus=topology.cpus_per_node, memory_bytes=topology.memory_bytes_per_node)
        for node in state.nodes
    )
    if made:
        return state
    for node in state.nodes:
        cgroups.remove(mounts, node.cgroup)
    return replace(state, nodes=tuple(replace(node, cgroup="") for node in state.nodes))


def _check_room(topology: Topology) -> None:
    wanted, usable = topology.totals, effective_cpus()
    if not usable.has(wanted["CPUs"]):
        raise DoesNotFit(
            f"Topology {topology.name!r} needs {plural(wanted['CPUs'], 'CPU')}"
            f" ({topology.nodes} x {topology.cpus_per_node}), and this process may use {usable}.",
            "Use fewer nodes or CPUs.",
        )
    available = psutil.virtual_memory().available
    if (limit := cgroups.available_memory_bytes()) is not None:
        available = min(available, limit)
    if wanted["memory"] > available:
        raise DoesNotFit(
            f"Topology {topology.name!r} needs {mib(wanted['memory'])} of memory, and {mib(available)} are available.",
            "Use less memory: --memory-mib.",
        )
    shared_memory = Path("/dev/shm")
    if shared_memory.is_dir() and wanted["object store"] > (free := shutil.disk_usage(shared_memory).free):
        raise DoesNotFit(
            f"The object stores need {mib(wanted['object store'])} of shared memory,"
            f" and {mib(free)} are free in /dev/shm; Ray would put the rest on a disk.",
            "Use smaller object stores, or enlarge /dev/shm (docker run --shm-size).",
        )
    folder = run_folders.choose().path
    if (free := shutil.disk_usage(folder).free) < LEAST_FREE_BYTES:
        raise DoesNotFit(
            f"Ray writes logs and spilled objects to {folder}, and {mib(free)} are free there.",
            f"Free {mib(LEAST_FREE_BYTES)}, or set TMPDIR to a short path on another disk.",
        )
