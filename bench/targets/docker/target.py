"""Nodes as containers on a bridge network of their own, with Prometheus and Grafana beside them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from bench.errors import BadInput, BenchError, DoesNotFit, TargetFailed
from bench.identity import CALLERS_CODE, code_hash
from bench.machine.cores import Cpu
from bench.model import Topology, from_json
from bench.targets import RAYS_OWN, Cluster, TargetStatus, image, memory_kills, worker_starts
from bench.targets.bounds import check_sizes, mib
from bench.targets.docker import Options, engine, monitoring, plan
from bench.targets.docker.plan import LINK, Plan
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
    """The target that stands nodes up as containers."""
    return DockerTarget(options)


@dataclass(frozen=True, kw_only=True)
class State:
    """Notes that the engine has something of a deployment; labels of the engine's own objects say what."""

    created: float  # seconds since the epoch


@dataclass(frozen=True)
class DockerTarget:
    """N containers, whose labels say of which deployment and user. Its state on disk says that an engine must be asked for them."""

    options: Options
    name: str = "docker"

    def check(self, topology: Topology, steps: Steps = SILENT) -> None:  # noqa: ARG002, it is done at once
        """Refuse what cannot be meant, an image with other code, and what the engine has not got."""
        check_sizes(topology)
        client = engine.connect()
        self._image(client)
        _check_room(client, topology)

    def up(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN, steps: Steps = SILENT) -> Cluster:
        """Stand `topology` up, in place of whatever cluster this deployment had; Prometheus and Grafana stay."""
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
                return self._stand_up(client, planned, steps)
            except BaseException:
                self._end(client)
                raise

    def down(self) -> tuple[str, ...]:
        """End all that this deployment ever started; says what was ended."""
        client = self._engine_that_has_it()
        if client is None:
            return ()
        with self._state_folder.lock():
            return self._end(client)

    def status(self) -> TargetStatus:
        """Look, and change nothing."""
        try:
            client = self._engine_that_has_it()
        except BenchError as error:
            there = f"the containers of {self.options.name}: {error.what.rstrip('.')}"
            return TargetStatus(cluster=None, remains=(there,))
        if client is None:
            return TargetStatus(cluster=None)
        remains = tuple(name for name, _ in engine.remains(client, plan.labels(self.options.name)))
        return self._status(client, remains)

    def trouble(self) -> str:
        """What the engine and the control groups say befell the nodes."""
        with suppress(BenchError):
            there = self._nodes()
            ended = [f"{name} ended: {why}" for name, each in there.items() if (why := why_ended(each))]
            return "; ".join(ended) or memory_kills.describe(self.ask_nodes(memory_kills.COMMAND))
        return ""

    def ended(self) -> str:
        """Whether the head's container has ended."""
        with suppress(BenchError):
            head = self._nodes().get("head")
            if head is None:
                return "the container of head is gone"
            return f"head ended: {why}" if (why := why_ended(head)) else ""
        return ""

    def cpu_seconds(self) -> float | None:
        """Of all its containers: nodes, exporter and monitoring."""
        with suppress(BenchError):
            client = self._engine_that_has_it()
            return engine.cpu_seconds(engine.running(client, plan.labels(self.options.name))) if client else 0.0
        return None

    def idle_load(self) -> None:
        """Not measured: its containers are counted whenever that is asked for, and its monitoring only scrapes."""

    def failed_starts(self) -> str:
        """What the raylets' logs say of workers that did not start."""
        return worker_starts.ask(self.ask_nodes)

    def note(self) -> str:
        """Nothing: what is unusual about this machine, its containers do not see."""
        return ""

    def ask_nodes(self, words: Sequence[str]) -> Mapping[str, str]:
        """What a command prints in each node's container."""
        said: dict[str, str] = {}
        for name, container in self._nodes().items():
            with suppress(TargetFailed), engine.translate_errors(f"a look into {container.name}"):
                done = container.exec_run(list(words), stderr=False)
                if done.exit_code == 0:
                    said[name] = cast(bytes, done.output).decode(errors="replace")
        return said

    def _nodes(self) -> dict[str, Container]:
        client = self._engine_that_has_it()
        if client is None:
            return {}
        there = Watch(client, self.options.name, "").containers()
        return {name: each for name, each in there.items() if name != "exporter"}

    def _engine_that_has_it(self) -> DockerClient | None:
        """The engine, where it has anything of this deployment, whatever state folder that was started with.

        Raises TargetFailed where an engine that does not answer was used before.
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
        """Note, before anything is made, that this name is ours on this engine. Raises TargetFailed or CannotWrite."""
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
        """The image to run. Raises BadInput where there is none, or one of other code."""
        import docker

        reference = self.options.image or image.default_tag()
        with engine.translate_errors(f"the image {reference}"):
            try:
                found = client.images.get(reference)
            except docker.errors.ImageNotFound as error:
                raise BadInput(
                    f"The Docker engine has no image {reference}.", "Build it with `task image`, or pull it."
                ) from error
        image.check_code(reference, found.labels, is_dev=self.options.dev)
        return found

    def _plan(self, client: DockerClient, topology: Topology) -> Plan:
        found = self._image(client)
        user = str(found.attrs["Config"].get("User") or "0").partition(":")[0]
        return Plan(
            options=self.options,
            topology=topology,
            image=str(found.id),
            digest=image.digest_fact(str(found.id), is_dev=self.options.dev),
            user=int(user) if user.isdecimal() else 0,
            cpus=_check_room(client, topology),
        )

    def _stand_up(self, client: DockerClient, planned: Plan, steps: Steps) -> Cluster:
        token = secrets.token_hex(32)
        watch = Watch(client, planned.deployment, token)
        try:
            with steps.step("starting the containers", "containers started"):
                self._start(client, planned, token)
            there = watch.wait(planned.topology, DEADLINE_SECONDS, steps)
        except TargetFailed:
            raise_for_ended(watch.containers())  # it says more than that another one cannot join its network
            raise
        with steps.step("waiting for Prometheus and Grafana", "Prometheus and Grafana ready"):
            monitoring.wait(client, planned.deployment, planned.nodes)
        environment = {} if self.options.dev else {CALLERS_CODE: code_hash()}
        return replace(_cluster(client, there, planned.topology, token), environment=environment)

    def _start(self, client: DockerClient, planned: Plan, token: str) -> None:
        files = plan.files(planned, token)
        _have_network(client, planned.deployment)
        with engine.translate_errors("a volume"):
            client.volumes.create(
                name=plan.resource_name(planned.deployment, "records"),
                labels=plan.labels(planned.deployment, "cluster"),
            )
        for index, name in enumerate(planned.nodes):
            started = engine.start(client, plan.node_settings(planned, index), aliases=(name,), files=files)
            if index == 0:
                engine.start(client, plan.exporter_settings(planned, str(started.id)), files=files)
        monitoring.ensure(client, planned.deployment, planned.nodes)

    def _status(self, client: DockerClient, remains: tuple[str, ...]) -> TargetStatus:
        there = Watch(client, self.options.name, "").containers()
        head = there.get("head")
        if head is None or head.status != "running":
            return TargetStatus(
                cluster=None, remains=remains, not_ready=why_ended(head) if head else "there is no head"
            )
        try:
            token = engine.read_file(head, plan.TOKEN_PATH).decode().strip()
            topology = from_json(head.labels[plan.TOPOLOGY], Topology)
            not_ready = describe(Watch(client, self.options.name, token).missing(there, topology))
        except TargetFailed as error:
            not_ready = error.what.rstrip(".")
        if not_ready:
            return TargetStatus(cluster=None, remains=remains, not_ready=not_ready)
        cluster = _cluster(client, there, topology, token)
        options = from_json(head.labels[plan.OPTIONS], Options)
        return TargetStatus(cluster=cluster, remains=remains, options=options)

    def _end(self, client: DockerClient) -> tuple[str, ...]:
        ended = engine.remove(client, plan.labels(self.options.name))
        self._state_folder.remove()
        return ended


def _cluster(client: DockerClient, there: dict[str, Container], topology: Topology, token: str) -> Cluster:
    head = there["head"]
    where = monitoring.urls(monitoring.find(client, head.labels[engine.DEPLOYMENT]))
    return Cluster(
        topology=topology,
        dashboard_url=plan.published_url(head.attrs, plan.DASHBOARD_PORT),
        exporter_url=plan.published_url(head.attrs, plan.EXPORTER_PORT),
        token=token,
        nodes=tuple(name for name in there if name != "exporter"),
        link=LINK,
        prometheus_url=where["prometheus_url"],
        grafana_url=where["grafana_url"],
    )


def _have_network(client: DockerClient, deployment: str) -> None:
    """The deployment's own network: it stays while clusters come and go, as Prometheus is on it."""
    name = plan.resource_name(deployment)
    wanted = engine.by_label(plan.labels(deployment, "network"))
    with engine.translate_errors(f"the network {name}"):
        if not client.networks.list(filters=wanted):
            client.networks.create(name, driver="bridge", labels=plan.labels(deployment, "network"))


def _check_room(client: DockerClient, topology: Topology) -> tuple[Cpu, ...]:
    """The CPUs of the engine's machine. Raises DoesNotFit."""
    with engine.translate_errors("what its machine has"):
        has = client.info()
    wanted, cpus, memory_bytes = topology.totals, int(has["NCPU"]), int(has["MemTotal"])
    if wanted["CPUs"] > cpus:
        raise DoesNotFit(
            f"Topology {topology.name!r} needs {wanted['CPUs']} CPUs"
            f" ({topology.nodes} nodes of {topology.cpus_per_node}), and the Docker engine has {cpus}.",
            "Ask for fewer nodes or CPUs.",
        )
    if wanted["memory"] > memory_bytes:
        raise DoesNotFit(
            f"Topology {topology.name!r} needs {mib(wanted['memory'])} of memory,"
            f" and the Docker engine has {mib(memory_bytes)}.",
            "Ask for less memory per node, or give the engine more.",
        )
    return engine.cpus(has)
