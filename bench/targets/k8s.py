"""Nodes as pods of KubeRay, in kind, minikube or any cluster that the user names."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from bench import image as images
from bench.errors import BadInput, BenchError, TargetFailed
from bench.identity import SOURCE
from bench.model import Topology
from bench.targets import (
    Cluster,
    Options,
    Standing,
    Target,
    fitting,
    image_delivery,
    kind,
    kuberay,
    port_forward,
    processes,
    ray_readiness,
    rendering,
    sent_code,
)
from bench.targets.k8s_ledger import Home, Ledger, new_mark
from bench.targets.kubectl import Kubectl, Object, command, contexts, is_of_laptop, kustomize
from bench.targets.ray_pods import RayPods

MANIFESTS = Path(__file__).resolve().parents[2] / "k8s"
GONE_SECONDS = 60.0
LINK = "pod network"
PASSWORD = "grafana-admin"  # noqa: S105, the Secret's name
REMOTE = {"dashboard": 8265, "exporter": 8090}
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,30}[a-z0-9])?")


def create(options: Options) -> Target:
    """The target that stands nodes up as pods."""
    return K8sTarget(options)


class K8sTarget:
    """A RayCluster in a namespace of the appliance's own name."""

    name = "k8s"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._home = Home(options.name)

    def check(self, topology: Topology) -> None:
        """Refuse what cannot be meant, and what the nodes have no room for."""
        self._check_options()
        rendered = self.render(topology, digest=self._digest())
        context = self._context()
        if context is None:
            self._check_kind()
            fitting.check_machine(topology)
        else:
            self._check_namespace(Kubectl(context))
            self._assign(Kubectl(context), topology, rendered)

    def up(self, topology: Topology) -> Cluster:
        """Stand `topology` up on a fresh Ray cluster; whatever else is right already stays as it is."""
        self._check_options()
        with self._home.lock():
            kubectl = self._cluster_there()
            self._check_namespace(kubectl)
            rendered = self.render(topology, digest=self._digest())
            chosen = self._assign(kubectl, topology, rendered)
            self._end_ray(kubectl)
            # To every node that the scheduler may choose, and not to those alone that would do.
            nodes = [place.name for place in RayPods(kubectl, self._options.name).places() if not place.closed]
            image_delivery.deliver(kubectl, self._image(), nodes, load_with=self._options.load_with)
            self._settle(kubectl, rendered)
            try:
                return self._start_ray(kubectl, topology, rendered, nodes_wanted=len(set(chosen)))
            except BaseException:
                with suppress(BenchError):
                    self._end_ray(kubectl)
                raise

    def down(self) -> tuple[str, ...]:
        """End all that this appliance ever made; says what was ended."""
        if not _NAME.fullmatch(self._options.name):
            return ()  # no namespace can have it
        with self._home.lock():
            ledger = self._home.read() or self._found_by_label()
            if ledger is None:
                self._home.remove()
                return ()
            _use_kubeconfig(ledger)
            ended = self._there(ledger)
            for mark in filter(None, (ledger.pods, ledger.services)):
                processes.end_all(self._options.name, mark)
            if ledger.kind_cluster:
                kind.delete(ledger.kind_cluster)
            elif ledger.context in contexts()[0]:
                self._empty(Kubectl(ledger.context), ledger)
            elif not is_of_laptop(ledger.context):  # one of a laptop has gone with all that was in it
                raise TargetFailed(
                    f"kubectl does not know the context {ledger.context} now, where the namespace {self._options.name} is.",
                    "Bring its kubeconfig back, and try again.",
                )
            self._home.remove()
            return ended

    def status(self) -> Standing:
        """Look, and change nothing."""
        ledger = self._home.read() if _NAME.fullmatch(self._options.name) else None
        if ledger is None:
            return Standing(cluster=None)
        _use_kubeconfig(ledger)
        leftovers = self._there(ledger)
        with suppress(BenchError):
            kubectl = Kubectl(ledger.context)
            if ledger.topology is not None and ledger.ports and kubectl.answers():
                cluster = self._cluster(kubectl, ledger)
                if not self._lack(cluster):
                    return Standing(cluster=cluster, leftovers=leftovers, options=ledger.options)
        return Standing(cluster=None, leftovers=leftovers)

    def trouble(self) -> str:
        """What pods and events say is wrong with the nodes now; empty where nothing is."""
        ledger = self._home.read()
        if ledger is None:
            return ""
        found = RayPods(Kubectl(ledger.context), self._options.name).trouble()
        return found.what if found else ""

    # ---- what was asked for

    def _check_options(self) -> None:
        options = self._options
        if not _NAME.fullmatch(options.name) or options.name.startswith(("kube-", "kuberay-", "default")):
            raise BadInput(
                f"{options.name[:50]!r} cannot be the name of an appliance in Kubernetes.",
                "Use up to 32 lower-case letters, digits and hyphens, a letter first: it is the namespace's name, too.",
            )
        if options.isolation != "auto" or options.link_rate is not None:
            raise BadInput("--isolation and --link-rate are for the target local.", "Leave them out.")

    def _image(self) -> str:
        return self._options.image or images.default_tag()

    def _digest(self) -> str | None:
        """What the image is called by, its code checked: as far as this machine's engine knows it."""
        reference = self._image()
        if "@" in reference:
            return reference.partition("@")[2]
        found = image_delivery.of_engine(reference)
        if found is None:
            return None
        images.check_code(reference, found.labels, is_dev=self._options.dev)
        return images.digest_fact(found.id, is_dev=self._options.dev)

    def render(self, topology: Topology, *, digest: str | None = None) -> list[Object]:
        """The manifests for `topology`, as they are applied."""
        folder = MANIFESTS / ("single" if topology.nodes == 1 else "multi")
        if not folder.is_dir():
            raise TargetFailed(f"{folder} is not there: the manifests are used from a checkout.", "Get one.")
        shape = rendering.Shape(
            topology=topology, appliance=self._options.name, image=self._image(), image_digest=digest
        )
        rendered = rendering.render(kustomize(folder), shape)
        return sent_code.with_code(rendered, self._code) if self._options.dev else rendered

    @cached_property
    def _code(self) -> bytes:
        """Packed once: all clusters of a session run the same code, whatever is edited meanwhile."""
        return sent_code.pack(SOURCE)

    # ---- the cluster

    def _context(self) -> str | None:
        """The user's context to use, None where kind has to make a cluster first. Raises BadInput and TargetFailed."""
        known, current = contexts()
        ledger, asked = self._home.read(), self._options.context
        if ledger is not None and ledger.context in known and asked in (None, ledger.context):
            return ledger.context
        # The current context may be anybody's cluster: only one of a laptop is taken without being named.
        wanted = asked or next((each for each in (current, *known) if is_of_laptop(each)), None)
        own = kind.context(self._options.name)
        if wanted in known and Kubectl(str(wanted)).answers():
            return wanted
        if wanted not in (None, own) and (asked or not kind.is_here()):
            if wanted in known:
                raise TargetFailed(
                    f"The cluster of the context {wanted} does not answer.", "Start it, or name another."
                )
            raise BadInput(f"--context {wanted}: there is no such.", f"There are: {', '.join(known) or 'none'}.")
        return own if own in known and Kubectl(own).answers() else None

    def _check_kind(self) -> None:
        if not kind.is_here():
            raise TargetFailed(
                "There is no Kubernetes cluster to use, and kind and docker to make one with are not both on PATH.",
                "Install them, or use another target: --target local.",
            )

    def _cluster_there(self) -> Kubectl:
        context, name = self._context(), self._options.name
        if context is not None:
            ledger = self._home.read()
            if ledger is not None and ledger.context != context and ledger.context in contexts()[0]:
                raise TargetFailed(
                    f"The appliance {name!r} is in {ledger.context}, and not in {context}.",
                    "Take it down first, or use another --name.",
                )
            if ledger is None or ledger.context != context:
                self._check_namespace(Kubectl(context))  # before it counts as ours, and `down` may delete it
                self._home.write(Ledger(context=context, kubeconfig=os.environ.get("KUBECONFIG")))
            return Kubectl(context)
        self._check_kind()
        context, made = kind.context(name), self._home.read()
        if name in kind.clusters() and (made is None or made.kind_cluster != name):
            raise TargetFailed(
                f"kind has a cluster {name} that does not answer, and that raymeter did not make.",
                f"Start it, or end it with `kind delete cluster --name {name}`, or use another --name.",
            )
        self._home.write(Ledger(context=context, kubeconfig=os.environ.get("KUBECONFIG"), kind_cluster=name))
        if name in kind.clusters():
            kind.delete(name)
        _, previous = contexts()
        kind.create(name, MANIFESTS / "kind.yaml")
        if previous:
            command("kubectl", "config", "use-context", previous)  # kind makes its own the current one
        kubectl = Kubectl(context)
        # kind itself waits for the control plane alone.
        kubectl.run("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s", timeout_seconds=70)
        return kubectl

    def _check_namespace(self, kubectl: Kubectl) -> None:
        found = kubectl.get("namespace", self._options.name)
        if found and found[0]["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") != "raymeter":
            raise BadInput(
                f"The namespace {self._options.name} in {kubectl.context} is not raymeter's.", "Use another --name."
            )

    def _assign(self, kubectl: Kubectl, topology: Topology, rendered: Iterable[Object]) -> list[str]:
        """The Kubernetes nodes that have room for the pods. Raises DoesNotFit."""
        templates = rendering.pod_templates(rendering.ray_cluster(rendered))
        asked = [rendering.requests(template["spec"]) for template in templates.values()]
        return fitting.assign(topology.name, asked, RayPods(kubectl, self._options.name).places())

    # ---- what stays: operator, namespace, monitoring

    def _settle(self, kubectl: Kubectl, rendered: list[Object]) -> None:
        """Apply what is not Ray's own, unless that is what was applied last."""
        self._need_operator(kubectl)
        stays = [each for each in rendered if each["kind"] != "RayCluster"]
        settled = hashlib.sha256(json.dumps(stays, sort_keys=True).encode()).hexdigest()
        ledger = self._ledger()
        if ledger.settled == settled and kubectl.get("namespace", self._options.name):
            return
        # A namespace first: what goes into it is refused as long as it is not there.
        kubectl.apply(each for each in stays if each["kind"] == "Namespace")
        self._need_password(kubectl)
        kubectl.apply(each for each in stays if each["kind"] != "Namespace")
        self._forward_services(stays)
        self._home.write(replace(self._ledger(), settled=settled))

    def _need_password(self, kubectl: Kubectl) -> None:
        """Grafana's, made once: nobody need know it, as everybody may look."""
        where = ("--namespace", self._options.name)
        if not kubectl.get("secret", PASSWORD, *where):
            metadata = {"name": PASSWORD, "namespace": self._options.name}
            data = {"password": secrets.token_urlsafe(24)}
            kubectl.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}])

    def _need_operator(self, kubectl: Kubectl) -> None:
        if not kuberay.is_there(kubectl):
            instead = self._options.operator_manifests
            objects = kuberay.manifests(MANIFESTS / "operator", instead)
            self._home.write(replace(self._ledger(), operator=instead or "pinned"))
            kuberay.install(kubectl, objects)

    def _forward_services(self, objects: Iterable[Object]) -> None:
        """Lead local ports to Prometheus and Grafana, which outlive a Ray cluster."""
        ledger = self._ledger()
        services = {
            each["metadata"]["name"]: each["spec"]["ports"][0]["port"]
            for each in objects
            if each["kind"] == "Service" and each["metadata"]["name"] in ("prometheus", "grafana")
        }
        if ledger.services:
            if processes.find(self._options.name, ledger.services) and services.keys() <= ledger.ports.keys():
                return
            processes.end_all(self._options.name, ledger.services)
        ports = dict(zip(services, port_forward.free_ports(len(services)), strict=True))
        mark = new_mark()
        self._home.write(replace(ledger, services=mark, ports={**ledger.ports, **ports}))
        for name, remote in services.items():
            self._forward(f"service/{name}", {ports[name]: remote}, mark, log=name)

    def _forward(self, subject: str, ports: dict[int, int], mark: str, *, log: str) -> None:
        port_forward.start(
            context=self._ledger().context,
            namespace=self._options.name,
            subject=subject,
            ports=ports,
            mark=(self._options.name, mark),
            log=self._home.log(log),
        )

    # ---- what is new for every topology: Ray

    def _start_ray(
        self, kubectl: Kubectl, topology: Topology, rendered: Iterable[Object], *, nodes_wanted: int
    ) -> Cluster:
        self._home.write(replace(self._ledger(), topology=topology, options=self._options))
        pods = RayPods(kubectl, self._options.name)
        until = pods.start(rendering.ray_cluster(rendered))
        head = pods.wait_for_head(until)
        mark = new_mark()
        local = dict(zip(REMOTE, port_forward.free_ports(len(REMOTE)), strict=True))
        ledger = replace(self._ledger(), pods=mark)
        self._home.write(replace(ledger, ports={**ledger.ports, **local}))
        self._forward(f"pod/{head}", {local[name]: remote for name, remote in REMOTE.items()}, mark, log="head")
        cluster = self._cluster(kubectl, self._ledger())
        pods.wait_until_ready(topology, until, nodes_wanted=nodes_wanted, lack=lambda: self._lack(cluster))
        return cluster

    def _lack(self, cluster: Cluster) -> str:
        return ray_readiness.lack(
            cluster.topology,
            dashboard_url=cluster.dashboard_url,
            exporter_url=cluster.exporter_url,
            token=cluster.token,
        )

    def _cluster(self, kubectl: Kubectl, ledger: Ledger) -> Cluster:
        assert ledger.topology is not None  # noqa: S101, written before anything of Ray is made
        urls = {name: f"http://127.0.0.1:{port}" for name, port in ledger.ports.items()}
        return Cluster(
            topology=ledger.topology,
            dashboard_url=urls["dashboard"],
            exporter_url=urls["exporter"],
            token=RayPods(kubectl, self._options.name).token(),
            nodes=rendering.node_names(ledger.topology),
            link=LINK,
            prometheus_url=urls.get("prometheus"),
            grafana_url=urls.get("grafana"),
        )

    # ---- the end

    def _end_ray(self, kubectl: Kubectl) -> None:
        """Delete the Ray cluster that there is, and wait until its pods and its Secret have gone with it."""
        ledger = self._ledger()
        if ledger.pods:
            processes.end_all(self._options.name, ledger.pods)
        self._home.write(replace(ledger, topology=None, pods=""))
        RayPods(kubectl, self._options.name).end()

    def _empty(self, kubectl: Kubectl, ledger: Ledger) -> None:
        """Take namespace and operator out of a cluster that stays."""
        self._check_namespace(kubectl)
        until = time.monotonic() + GONE_SECONDS
        kubectl.run("delete", "namespace", self._options.name, "--ignore-not-found", "--wait=false")
        kuberay.wait_gone(kubectl, "namespace", self._options.name, until)
        if ledger.operator is None or kubectl.get("rayclusters.ray.io", "--all-namespaces"):
            return  # it was there before us, or is needed by others
        instead = None if ledger.operator == "pinned" else ledger.operator
        kuberay.remove(kubectl, kuberay.manifests(MANIFESTS / "operator", instead), GONE_SECONDS)

    def _found_by_label(self) -> Ledger | None:
        """What stands in the cluster by this name, where it was applied by hand or its ledger is lost."""
        context = self._options.context
        # Only where it is named: nobody's cluster is to be searched for leftovers.
        if context is None or context not in contexts()[0] or not Kubectl(context).answers():
            return None
        if not Kubectl(context).get("namespace", self._options.name):
            return None
        self._check_namespace(Kubectl(context))
        return Ledger(context=context, kubeconfig=os.environ.get("KUBECONFIG"))

    def _there(self, ledger: Ledger) -> tuple[str, ...]:
        name = self._options.name
        running = [
            f"process {process.pid} ({process.info['name']})"
            for mark in (ledger.pods, ledger.services)
            if mark
            for process in processes.find(name, mark)
        ]
        if ledger.kind_cluster:
            return (*running, f"kind cluster {ledger.kind_cluster}")
        operator = ["KubeRay's operator"] if ledger.operator else []
        return (*running, f"namespace {name} in {ledger.context}", *operator)

    def _ledger(self) -> Ledger:
        ledger = self._home.read()
        if ledger is None:
            raise TargetFailed("The appliance was taken down while it was being stood up.")
        return ledger


def _use_kubeconfig(ledger: Ledger) -> None:
    """Let kubectl and kind look where they looked when the appliance was stood up."""
    if ledger.kubeconfig is None:
        os.environ.pop("KUBECONFIG", None)
    else:
        os.environ["KUBECONFIG"] = ledger.kubeconfig
