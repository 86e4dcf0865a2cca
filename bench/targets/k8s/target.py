"""Makes nodes as pods of KubeRay, in kind, minikube or any cluster that the user names."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from bench.errors import BenchError, TargetFailed
from bench.identity import CALLERS_CODE, IMAGES, SOURCE, code_hash
from bench.model import IdleLoad, Topology
from bench.package_data import K8S
from bench.targets import (
    RAYS_OWN,
    Cluster,
    Target,
    TargetStatus,
    free_ports,
    link,
    memory_kills,
    node_names,
    processes,
    readiness,
    worker_starts,
)
from bench.targets import image as images
from bench.targets.k8s import (
    Options,
    fitting,
    idle_load,
    image_delivery,
    kind,
    kuberay,
    monitoring,
    port_forward,
    rendering,
    sent_code,
)
from bench.targets.k8s.context import Where, wait_for_nodes
from bench.targets.k8s.kubectl import Kubectl, Object, contexts, is_of_laptop, kustomize
from bench.targets.k8s.ray_pods import RayPods
from bench.targets.k8s.state import State, folder_of, new_mark
from bench.targets.steps import SILENT, Steps

GONE_SECONDS = 60.0
NETWORK = "pod network"  # as the manifests name it
OPERATOR_MANIFESTS = "RAYMETER_OPERATOR_MANIFESTS"  # an option in the environment, which other targets do not take
REMOTE = {"dashboard": 8265, "exporter": 8090}


def create(options: Options) -> Target:
    """The target whose nodes are pods."""
    return K8sTarget(options)


class K8sTarget:
    """A RayCluster in a namespace of the deployment's name."""

    name = "k8s"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._state_folder = folder_of(options.name)
        self._where = Where(options, self._state_folder, K8S / "kind.yaml")
        self._operator: list[Object] = []

    def check(self, topology: Topology, steps: Steps = SILENT) -> None:
        """Check the image and its code, the namespace, the room on the nodes, the operator, and what a new cluster needs."""
        self._check_image()
        rendered = self.render(topology)
        context = self._where.context()
        if context is None:
            self._check_new_cluster(topology, steps)
        else:
            kubectl = Kubectl(context)
            self._where.check_namespace(kubectl)
            self._assign(kubectl, topology, rendered)
            self._missing_operator(kubectl, steps)

    def up(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN, steps: Steps = SILENT) -> Cluster:
        """Make a fresh Ray cluster of `topology`; everything else that is right is kept."""
        self._check_image()
        with self._state_folder.lock():
            # Checks come first, and steps of minutes last: the kind cluster, and the image onto its nodes.
            rendered = self.render(topology, ray_settings)
            if self._where.context() is None:
                self._check_new_cluster(topology)  # again: `check` may have been long ago
            kubectl = self._where.cluster(steps)
            self._where.check_namespace(kubectl)
            chosen = self._assign(kubectl, topology, rendered)
            if operator := self._missing_operator(kubectl, steps):
                with steps.step("installing the KubeRay operator", "KubeRay operator ready"):
                    kuberay.install(kubectl, operator)
                    kuberay.wait_until_ready(kubectl, operator)
            self._end_ray(kubectl, steps)
            self._settle(kubectl, rendered)  # before the image, so that Prometheus and Grafana are pulled meanwhile
            # Onto every node that the scheduler may choose.
            nodes = [place.name for place in RayPods(kubectl, self._options.name).places() if not place.closed]
            image_delivery.deliver(kubectl, self._image(), nodes, load_with=self._options.load_with, steps=steps)
            try:
                cluster = self._start_ray(kubectl, topology, rendered, nodes_wanted=len(set(chosen)), steps=steps)
                with steps.step("waiting for Prometheus and Grafana", "Prometheus and Grafana ready"):
                    monitoring.wait(
                        kubectl,
                        self._options.name,
                        prometheus_url=cluster.prometheus_url,
                        grafana_url=cluster.grafana_url,
                    )
            except BaseException:
                with suppress(BenchError):
                    self._end_ray(kubectl)
                raise
            if self._state().idle_load is None:
                with steps.step("measuring the CPU use at rest", "CPU use at rest measured"):
                    pods = RayPods(kubectl, self._options.name)
                    load = idle_load.measure([place.name for place in pods.places()], pods.ask)
                    self._state_folder.write(replace(self._state(), idle_load=load))
            return cluster

    def down(self) -> tuple[str, ...]:
        """Remove everything that this deployment ever made. Returns what was removed."""
        with self._state_folder.lock():
            state = self._state_folder.read() or self._state_by_namespace()
            if state is None:
                self._state_folder.remove()
                return ()
            _use_kubeconfig(state)
            ended = self._there(state)
            for mark in filter(None, (state.pods, state.services)):
                processes.end_all(self._options.name, mark)
            if state.kind_cluster:
                kind.delete(state.kind_cluster)
            elif state.context in contexts()[0]:
                ended += self._empty(Kubectl(state.context))
            elif not is_of_laptop(state.context):  # kind and minikube delete the context with the cluster
                raise TargetFailed(
                    f"kubectl does not know the context {state.context}, in which the namespace {self._options.name} is.",
                    "Restore its kubeconfig, and try again.",
                )
            self._state_folder.remove()
            return ended

    def status(self) -> TargetStatus:
        """The present state; nothing is changed."""
        state = self._state_folder.read()
        if state is None:
            return TargetStatus(cluster=None)
        _use_kubeconfig(state)
        remains = self._there(state)
        not_ready = "it is incomplete, or its context does not answer"
        with suppress(BenchError):
            kubectl = Kubectl(state.context)
            if state.topology is not None and state.ports and kubectl.answers():
                cluster = self._cluster(kubectl, state)
                not_ready = readiness.describe(self._late(cluster, RayPods(kubectl, self._options.name).addresses()))
                if not not_ready:
                    return TargetStatus(cluster=cluster, remains=remains, options=state.options)
        return TargetStatus(cluster=None, remains=remains, not_ready=not_ready)

    def trouble(self) -> str:
        """Faults of the nodes, from pods, events and control groups."""
        with suppress(BenchError):
            state = self._state_folder.read()
            if state is not None and state.topology is not None:
                trouble = RayPods(Kubectl(state.context), self._options.name).trouble()
                return trouble.what if trouble else memory_kills.describe(self.ask_nodes(memory_kills.COMMAND))
        return ""

    def ended(self) -> str:
        """Why a pod has ended, was restarted or cannot run."""
        with suppress(BenchError):
            state = self._state_folder.read()
            if state is None or state.topology is None:
                return "the cluster was taken down"
            trouble = RayPods(Kubectl(state.context), self._options.name).trouble()
            return trouble.what if trouble else ""
        return ""

    def cpu_seconds(self) -> None:
        """None: a Kubernetes node may have pods of others, too."""

    def idle_load(self) -> IdleLoad | None:
        """CPUs that the cluster's processes, the monitoring and Ray use at rest, if this machine can measure them."""
        with suppress(BenchError):
            state = self._state_folder.read()
            if state is not None and state.idle_load is not None:
                return state.idle_load if state.topology else replace(state.idle_load, ray_cpus=0.0)
        return None

    def failed_starts(self) -> str:
        """Why workers did not start, from the raylets' logs."""
        return worker_starts.ask(self.ask_nodes)

    def note(self) -> str:
        """Nothing: pods run alike on every machine."""
        return ""

    def ask_nodes(self, command: Sequence[str]) -> Mapping[str, str]:
        """Output of a command in each pod's container of Ray."""
        state = self._state_folder.read()
        return {} if state is None else RayPods(Kubectl(state.context), self._options.name).ask(command)

    # ---- checks and manifests

    def _image(self) -> str:
        return self._options.image or images.default_tag()

    def _check_image(self) -> None:
        """Raise BadInput for an image of other code, if this machine's engine has it; the driver checks it again."""
        local_image = image_delivery.of_engine(self._image())
        if local_image is not None:
            images.check_code(self._image(), local_image.labels, is_dev=self._options.dev)

    def _check_new_cluster(self, topology: Topology, steps: Steps = SILENT) -> None:
        """Check what would fail after kind has made a cluster: tools, resources, image, the operator's manifests."""
        with steps.step(
            "checking Docker, kind, kubectl, image and disk", "Docker, kind, kubectl, image and disk checked"
        ):
            self._where.check_kind()
            fitting.check_machine(topology)
            image_delivery.check_loadable(self._image(), load_with=self._options.load_with)
            if (image := image_delivery.of_engine(self._image())) and self._options.load_with is None:
                kind.check_disk(image.size_bytes, kind.roles(K8S / "kind.yaml").count("worker"))
        self._operator_manifests(steps)

    def _missing_operator(self, kubectl: Kubectl, steps: Steps = SILENT) -> list[Object]:
        """The operator's objects if the cluster has no operator, else none. Raises TargetFailed and BadInput."""
        return [] if kuberay.is_there(kubectl) else self._operator_manifests(steps)

    def _operator_manifests(self, steps: Steps) -> list[Object]:
        """The operator's objects, read once. Raises TargetFailed and BadInput."""
        if not self._operator:
            with steps.step("reading KubeRay's manifests", "KubeRay's manifests read"):
                instead = self._options.operator_manifests or os.environ.get(OPERATOR_MANIFESTS)
                self._operator = kuberay.manifests(K8S / "operator", instead)
        return self._operator

    def render(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN) -> list[Object]:
        """The rendered manifests for `topology`."""
        folder = K8S / ("single" if topology.nodes == 1 else "multi")
        shape = rendering.Shape(
            topology=topology,
            deployment=self._options.name,
            image=self._image(),
            link_rate=self._options.link_rate,
            ray_settings=ray_settings,
        )
        rendered = rendering.render(kustomize(folder), shape)
        return sent_code.with_code(rendered, self._code) if self._options.dev else rendered

    @cached_property
    def _code(self) -> bytes:
        """The code, packed once, so that all clusters of a session run the same."""
        return sent_code.pack(SOURCE)

    def _assign(self, kubectl: Kubectl, topology: Topology, rendered: Iterable[Object]) -> list[str]:
        """The Kubernetes nodes for the pods. Raises DoesNotFit."""
        templates = rendering.pod_templates(rendering.ray_cluster(rendered))
        asked = [rendering.requests(template["spec"]) for template in templates.values()]
        places = RayPods(kubectl, self._options.name).places()
        if is_of_laptop(kubectl.context) and any(place.closed == fitting.NOT_READY for place in places):
            # kind returns before its workers are ready.
            with suppress(TargetFailed):
                wait_for_nodes(kubectl)
            places = RayPods(kubectl, self._options.name).places()
        return fitting.assign(topology.name, asked, places)

    # ---- what is kept between clusters: namespace, monitoring

    def _settle(self, kubectl: Kubectl, rendered: list[Object]) -> None:
        """Apply everything but the RayCluster, unless it was applied already."""
        lasting = [resource for resource in rendered if resource["kind"] != "RayCluster"]
        settled = hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()
        state = self._state()
        if state.settled != settled or not kubectl.get("namespace", self._options.name):
            # The namespace first: its objects are refused without it.
            kubectl.apply(resource for resource in lasting if resource["kind"] == "Namespace")
            kubectl.apply(resource for resource in lasting if resource["kind"] != "Namespace")
            self._state_folder.write(replace(self._state(), settled=settled))
        self._forward_services(lasting)  # their processes may have ended, though nothing else has changed

    def _forward_services(self, objects: Iterable[Object]) -> None:
        """Forward local ports to Prometheus and Grafana, which outlive a Ray cluster."""
        state = self._state()
        services = {
            resource["metadata"]["name"]: resource["spec"]["ports"][0]["port"]
            for resource in objects
            if resource["kind"] == "Service" and resource["metadata"]["name"] in ("prometheus", "grafana")
        }
        if state.services:
            is_ours = processes.find(self._options.name, state.services) and services.keys() <= state.ports.keys()
            if is_ours and all(free_ports.listens(state.ports[name]) for name in services):
                return
            processes.end_all(self._options.name, state.services)
        ports = dict(zip(services, free_ports.find(len(services)), strict=True))
        mark = new_mark()
        self._state_folder.write(replace(state, services=mark, ports={**state.ports, **ports}))
        for name, remote in services.items():
            self._forward(f"service/{name}", {ports[name]: remote}, mark, log=name)

    def _forward(self, subject: str, ports: dict[int, int], mark: str, *, log: str) -> None:
        port_forward.start(
            context=self._state().context,
            namespace=self._options.name,
            subject=subject,
            ports=ports,
            mark=(self._options.name, mark),
            log=self._state_folder.log(log),
        )

    # ---- what is new for each cluster: Ray

    def _start_ray(
        self, kubectl: Kubectl, topology: Topology, rendered: Iterable[Object], *, nodes_wanted: int, steps: Steps
    ) -> Cluster:
        self._state_folder.write(replace(self._state(), topology=topology, options=self._options))
        pods = RayPods(kubectl, self._options.name)
        until = pods.start(rendering.ray_cluster(rendered))
        with steps.step("starting the head's pod", "head's pod started"):
            head = pods.wait_for_head(until)
        mark = new_mark()
        local = dict(zip(REMOTE, free_ports.find(len(REMOTE)), strict=True))
        state = replace(self._state(), pods=mark)
        self._state_folder.write(replace(state, ports={**state.ports, **local}))
        self._forward(f"pod/{head}", {local[name]: remote for name, remote in REMOTE.items()}, mark, log="head")
        cluster = self._cluster(kubectl, self._state())
        with readiness.registering(topology, steps) as report:

            def late(addresses: Mapping[str, str]) -> list[str]:
                return report(self._late(cluster, addresses))

            pods.wait_until_ready(topology, until, nodes_wanted=nodes_wanted, late=late)
        return replace(cluster, environment=self._environment(pods))

    def _environment(self, pods: RayPods) -> dict[str, str]:
        """Variables of a driver: the code that it must have, and the image that each node really runs."""
        is_dev = self._options.dev
        digests = {node: images.digest_fact(identity, is_dev=is_dev) for node, identity in pods.images().items()}
        return {IMAGES: json.dumps(digests), **({} if is_dev else {CALLERS_CODE: code_hash()})}

    def _late(self, cluster: Cluster, addresses: Mapping[str, str]) -> list[str]:
        """The nodes that do not answer, and the exporter, by name."""
        return readiness.missing_nodes(
            cluster.topology,
            {name: addresses.get(name, "") for name in cluster.nodes},
            dashboard_url=cluster.dashboard_url,
            exporter_url=cluster.exporter_url,
            token=cluster.token,
        )

    def _cluster(self, kubectl: Kubectl, state: State) -> Cluster:
        assert state.topology is not None  # noqa: S101, written before anything of Ray is made
        urls = {name: f"http://127.0.0.1:{port}" for name, port in state.ports.items()}
        return Cluster(
            topology=state.topology,
            dashboard_url=urls["dashboard"],
            exporter_url=urls["exporter"],
            token=RayPods(kubectl, self._options.name).token(),
            nodes=node_names(state.topology),
            link=link.describe(NETWORK, state.options.link_rate if state.options else None),
            prometheus_url=urls.get("prometheus"),
            grafana_url=urls.get("grafana"),
        )

    # ---- removal

    def _end_ray(self, kubectl: Kubectl, steps: Steps = SILENT) -> None:
        """Delete the present Ray cluster, and wait until its pods and its Secret are gone."""
        state = self._state()
        if state.topology is not None:
            with steps.step("ending the previous cluster", "previous cluster ended"):
                self._delete_ray(kubectl, state)
        else:
            self._delete_ray(kubectl, state)

    def _delete_ray(self, kubectl: Kubectl, state: State) -> None:
        if state.pods:
            processes.end_all(self._options.name, state.pods)
        self._state_folder.write(replace(state, topology=None, pods=""))
        RayPods(kubectl, self._options.name).end()

    def _empty(self, kubectl: Kubectl) -> tuple[str, ...]:
        """Delete the namespace, and the operator if raymeter installed it and nothing needs it now."""
        self._where.check_namespace(kubectl)
        until = time.monotonic() + GONE_SECONDS
        kubectl.run("delete", "namespace", self._options.name, "--ignore-not-found", "--wait=false")
        kuberay.wait_gone(kubectl, "namespace", self._options.name, until)
        return ("KubeRay's operator",) if kuberay.remove_if_ours_and_idle(kubectl, GONE_SECONDS) else ()

    def _state_by_namespace(self) -> State | None:
        """The state of a deployment that was applied by hand, or whose state is lost; found by its namespace."""
        context = self._options.context
        # Only in a named context: other clusters are not searched.
        if context is None or context not in contexts()[0] or not Kubectl(context).answers():
            return None
        if not Kubectl(context).get("namespace", self._options.name):
            return None
        self._where.check_namespace(Kubectl(context))
        return State(context=context, kubeconfig=os.environ.get("KUBECONFIG"))

    def _there(self, state: State) -> tuple[str, ...]:
        name = self._options.name
        running = [
            f"process {process.pid} ({process.info['name']})"
            for mark in (state.pods, state.services)
            if mark
            for process in processes.find(name, mark)
        ]
        if state.kind_cluster:
            return (*running, f"kind cluster {state.kind_cluster}")
        return (*running, f"namespace {name} in {state.context}")

    def _state(self) -> State:
        state = self._state_folder.read()
        if state is None:
            raise TargetFailed("Another `bench down` removed the deployment while it was being made.")
        return state


def _use_kubeconfig(state: State) -> None:
    """Let kubectl and kind use the KUBECONFIG of `up`."""
    if state.kubeconfig is None:
        os.environ.pop("KUBECONFIG", None)
    else:
        os.environ["KUBECONFIG"] = state.kubeconfig
