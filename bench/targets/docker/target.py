"""Makes nodes as containers on a bridge network of their own, with Prometheus and Grafana beside them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from bench.counts import plural
from bench.errors import BadInput, BenchError, DoesNotFit, TargetFailed, error_in_output
from bench.identity import CALLERS_CODE, code_hash
from bench.machine.cores import Cpu
from bench.model import Topology, from_json
from bench.targets import RAYS_OWN, Cluster, TargetStatus, image, link, memory_kills, worker_starts
from bench.targets.bounds import check_sizes, mib
from bench.targets.docker import Options, engine, monitoring, plan
from bench.targets.docker.plan import NETWORK, Plan
from bench.targets.docker.readiness import Watch, raise_for_ended, why_ended
from bench.targets.readiness import describe
from bench.targets.state import StateFolder
from bench.targets.steps import SILENT, Steps

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

DEADLINE_SECONDS = 120.0


def create(options: Options) -> DockerTarget:
    """The target whose nodes are containers."""
    return DockerTarget(options)


@dataclass(frozen=True, kw_only=True)
class State:
    """Records that the engine has something of a deployment; labels in the engine say what."""

    created: float  # seconds since the epoch


@dataclass(frozen=True)
class DockerTarget:
    """Containers with labels of their deployment and user. The state on disk says that an engine must be asked for them."""

    options: Options
    name: str = "docker"

    def check(self, topology: Topology, steps: Steps = SILENT) -> None:  # noqa: ARG002, it is done at once
        """Check sizes, the image and its code, and that the engine has enough CPUs and memory."""
        check_sizes(topology)
        client = engine.connect()
        self._image(client)
        _check_room(client, topology)

    def up(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN, steps: Steps = SILENT) -> Cluster:
        """Make a cluster of `topology`, in place of the one that this deployment has; Prometheus and Grafana stay."""
        check_sizes(topology)
        client = engine.connect()
        planned = replace(self._plan(client, topology), ray_settings=ray_settings)
        monitoring.pull_images(client, planned.deployment, planned.nodes, steps)
        with self._state_folder.lock():
            self._take_name(client)
            try:
                if engine.remains(client, labels := plan.labels(self.options.name, "cluster")):
                    with steps.step("ending the previous cluster", "previous cluster ended"):
                        engine.remove(client, labels)
                return self._start_cluster(client, planned, steps)
            except BaseException:
                self._end(client)
                raise

    def down(self) -> tuple[str, ...]:
        """Remove everything that this deployment ever started. Returns what was removed."""
        client = self._used_engine()
        if client is None:
            return ()
        with self._state_folder.lock():
            return self._end(client)

    def status(self) -> TargetStatus:
        """The present state; nothing is changed."""
        try:
            client = self._used_engine()
        except BenchError as error:
            unknown = f"the containers of {self.options.name}: {error.what.rstrip('.')}"
            return TargetStatus(cluster=None, remains=(unknown,))
        if client is None:
            return TargetStatus(cluster=None)
        remains = tuple(name for name, _ in engine.remains(client, plan.labels(self.options.name)))
        return self._status(client, remains)

    def trouble(self) -> str:
        """Faults of the nodes, from the engine and the control groups."""
        with suppress(BenchError):
            nodes = self._nodes()
            ended = [f"{name} ended: {why}" for name, container in nodes.items() if (why := why_ended(container))]
            return "; ".join(ended) or memory_kills.describe(self.ask_nodes(memory_kills.COMMAND))
        return ""

    def ended(self) -> str:
        """How the head's container ended."""
        with suppress(BenchError):
            head = self._nodes().get("head")
            if head is None:
                return "the container of head is gone"
            return f"head ended: {why}" if (why := why_ended(head)) else ""
        return ""

    def cpu_seconds(self) -> float | None:
        """CPU time of all its containers: nodes, exporter and monitoring."""
        with suppress(BenchError):
            client = self._used_engine()
            return engine.cpu_seconds(engine.running(client, plan.labels(self.options.name))) if client else 0.0
        return None

    def idle_load(self) -> None:
        """Not measured: the CPU time of its containers can be counted at any time."""

    def failed_starts(self) -> str:
        """Why workers did not start, from the raylets' logs."""
        return worker_starts.ask(self.ask_nodes)

    def note(self) -> str:
        """Nothing: containers run alike on every machine."""
        return ""

    def ask_nodes(self, command: Sequence[str]) -> Mapping[str, str]:
        """Output of a command in each node's container."""
        outputs: dict[str, str] = {}
        for name, container in self._nodes().items():
            with suppress(TargetFailed), engine.translate_errors(f"a command in {container.name}"):
                done = container.exec_run(list(command), stderr=False)
                if done.exit_code == 0:
                    outputs[name] = cast(bytes, done.output).decode(errors="replace")
        return outputs

    def _nodes(self) -> dict[str, Container]:
        client = self._used_engine()
        if client is None:
            return {}
        containers = Watch(client, self.options.name, "").containers()
        return {name: container for name, container in containers.items() if name != "exporter"}

    def _used_engine(self) -> DockerClient | None:
        """Return the engine if it has anything of this deployment, even if that was started with another state folder.

        Raises TargetFailed if an engine was used before and does not answer.
        """
        try:
            client = engine.connect()
        except BenchError:
            if self._state_folder.read():
                raise
            return None
        return client if self._state_folder.read() or engine.remains(client, plan.labels(self.options.name)) else None

    @property
    def _state_folder(self) -> StateFolder[State]:
        return StateFolder("docker", self.options.name, State, "Delete that folder, then try `bench down` again.")

    def _take_name(self, client: DockerClient) -> None:
        """Record, before anything is made, that this deployment uses the engine. Raises TargetFailed or CannotWrite."""
        if self._state_folder.read():
            return
        mine = {name for name, _ in engine.remains(client, plan.labels(self.options.name))}
        for name, _ in engine.remains(client, {engine.DEPLOYMENT: self.options.name}):
            if name not in mine:
                raise TargetFailed(
                    f"The Docker engine has {name}, of a deployment {self.options.name!r} of another user.",
                    "Use another --name.",
                )
        self._state_folder.write(State(created=time.time()))

    def _image(self, client: DockerClient) -> Image:
        """The image to run. Raises BadInput if it is missing or has other code."""
        import docker

        reference = self.options.image or image.default_tag()
        with engine.translate_errors(f"the image {reference}"):
            try:
                local_image = client.images.get(reference)
            except docker.errors.ImageNotFound as error:
                raise BadInput(
                    f"The Docker engine has no image {reference}.", "Build it with `task image`, or pull it."
                ) from error
        image.check_code(reference, local_image.labels, is_dev=self.options.dev)
        return local_image

    def _plan(self, client: DockerClient, topology: Topology) -> Plan:
        local_image = self._image(client)
        user = str(local_image.attrs["Config"].get("User") or "0").partition(":")[0]
        return Plan(
            options=self.options,
            topology=topology,
            image=str(local_image.id),
            digest=image.digest_fact(str(local_image.id), is_dev=self.options.dev),
            user=int(user) if user.isdecimal() else 0,
            cpus=_check_room(client, topology),
        )

    def _start_cluster(self, client: DockerClient, planned: Plan, steps: Steps) -> Cluster:
        token = secrets.token_hex(32)
        watch = Watch(client, planned.deployment, token)
        try:
            with steps.step("starting the containers", "containers started"):
                self._start(client, planned, token)
            containers = watch.wait(planned.topology, DEADLINE_SECONDS, steps)
        except TargetFailed:
            raise_for_ended(watch.containers())  # the container that ended first is the cause
            raise
        with steps.step("waiting for Prometheus and Grafana", "Prometheus and Grafana ready"):
            monitoring.wait(client, planned.deployment, planned.nodes)
        environment = {} if self.options.dev else {CALLERS_CODE: code_hash()}
        return replace(_cluster(client, containers, planned.topology, token), environment=environment)

    def _start(self, client: DockerClient, planned: Plan, token: str) -> None:
        files = plan.files(planned, token)
        _ensure_network(client, planned.deployment)
        with engine.translate_errors("a volume"):
            client.volumes.create(
                name=plan.resource_name(planned.deployment, "records"),
                labels=plan.labels(planned.deployment, "cluster"),
            )
        for index, name in enumerate(planned.nodes):
            started = engine.start(client, plan.node_settings(planned, index), aliases=(name,), files=files)
            if planned.options.link_rate:
                limit_link(started, name, planned.options.link_rate)
            if index == 0:
                engine.start(client, plan.exporter_settings(planned, str(started.id)), files=files)
        monitoring.ensure(client, planned.deployment, planned.nodes)

    def _status(self, client: DockerClient, remains: tuple[str, ...]) -> TargetStatus:
        containers = Watch(client, self.options.name, "").containers()
        head = containers.get("head")
        if head is None or head.status != "running":
            return TargetStatus(
                cluster=None, remains=remains, not_ready=why_ended(head) if head else "there is no head"
            )
        try:
            token = engine.read_file(head, plan.TOKEN_PATH).decode().strip()
            topology = from_json(head.labels[plan.TOPOLOGY], Topology)
            not_ready = describe(Watch(client, self.options.name, token).missing(containers, topology))
        except TargetFailed as error:
            not_ready = error.what.rstrip(".")
        if not_ready:
            return TargetStatus(cluster=None, remains=remains, not_ready=not_ready)
        cluster = _cluster(client, containers, topology, token)
        return TargetStatus(cluster=cluster, remains=remains, options=_options(head))

    def _end(self, client: DockerClient) -> tuple[str, ...]:
        ended = engine.remove(client, plan.labels(self.options.name))
        self._state_folder.remove()
        return ended


def _cluster(client: DockerClient, containers: dict[str, Container], topology: Topology, token: str) -> Cluster:
    head = containers["head"]
    urls = monitoring.urls(monitoring.find(client, head.labels[engine.DEPLOYMENT]))
    return Cluster(
        topology=topology,
        dashboard_url=plan.published_url(head.attrs, plan.DASHBOARD_PORT),
        exporter_url=plan.published_url(head.attrs, plan.EXPORTER_PORT),
        token=token,
        nodes=tuple(name for name in containers if name != "exporter"),
        link=link.describe(NETWORK, _options(head).link_rate),
        prometheus_url=urls["prometheus_url"],
        grafana_url=urls["grafana_url"],
    )


def _options(head: Container) -> Options:
    """The options with which the cluster was made."""
    return from_json(head.labels[plan.OPTIONS], Options)


def limit_link(node: Container, name: str, rate: str) -> None:
    """Limit what a node can send, by a command with the rights of root, which no other process in its container has."""
    with engine.translate_errors(f"a command as root in {node.name}"):
        done = node.exec_run(link.shaping_command(rate), user="0", privileged=True)
    if done.exit_code:
        reason = error_in_output(cast(bytes, done.output).decode(errors="replace")) or f"exit code {done.exit_code}"
        raise TargetFailed(f"The link of {name} cannot be limited: {reason}.", link.HINT)


def _ensure_network(client: DockerClient, deployment: str) -> None:
    """Create the deployment's network if it is missing. It outlives clusters, because Prometheus is on it."""
    name = plan.resource_name(deployment)
    wanted = engine.by_label(plan.labels(deployment, "network"))
    with engine.translate_errors(f"the network {name}"):
        if not client.networks.list(filters=wanted):
            client.networks.create(name, driver="bridge", labels=plan.labels(deployment, "network"))


def _check_room(client: DockerClient, topology: Topology) -> tuple[Cpu, ...]:
    """The CPUs of the engine's machine. Raises DoesNotFit if they or the memory are too few."""
    with engine.translate_errors("the resources of its machine"):
        info = client.info()
    wanted, cpus, memory_bytes = topology.totals, int(info["NCPU"]), int(info["MemTotal"])
    if wanted["CPUs"] > cpus:
        raise DoesNotFit(
            f"Topology {topology.name!r} needs {plural(wanted['CPUs'], 'CPU')}"
            f" ({topology.nodes} x {topology.cpus_per_node}), and the Docker engine has {cpus}.",
            "Use fewer nodes or CPUs.",
        )
    if wanted["memory"] > memory_bytes:
        raise DoesNotFit(
            f"Topology {topology.name!r} needs {mib(wanted['memory'])} of memory,"
            f" and the Docker engine has {mib(memory_bytes)}.",
            "Use less memory (--memory-mib), or give the engine more.",
        )
    return engine.cpus(info)
