"""Chooses the Kubernetes cluster of a deployment: its present one, the named one, one of kind or minikube, or a new one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BadInput, TargetFailed, did_you_mean
from bench.targets.k8s import Options, kind
from bench.targets.k8s.kubectl import Kubectl, command, contexts, laptop_context
from bench.targets.k8s.state import State
from bench.targets.state import StateFolder
from bench.targets.steps import Steps


@dataclass(frozen=True)
class Where:
    """Finds or makes the Kubernetes cluster of one deployment."""

    options: Options
    state_folder: StateFolder[State]
    kind_configuration: Path

    def context(self) -> str | None:
        """The context to use; None if kind has to make a cluster first. Raises BadInput and TargetFailed."""
        known, _ = contexts()
        state, asked = self.state_folder.read(), self.options.context
        if state is not None and state.context in known and asked in (None, state.context):
            return state.context
        if asked is None:
            # The current context may be a shared cluster: only kind and minikube are used without being named.
            return laptop_context()
        if asked in known and Kubectl(asked).answers():
            return asked
        if asked == kind.context(self.options.name):
            return None  # kind will make this cluster
        if asked in known:
            raise TargetFailed(
                f"The cluster of the context {asked} does not answer.", "Start it, or use another --context."
            )
        raise BadInput(
            f"kubectl has no context {asked}.",
            f"{did_you_mean(asked, known)}Choose from: {', '.join(known) or 'none'}.",
        )

    def cluster(self, steps: Steps) -> Kubectl:
        """A cluster that answers, made if necessary. The state names it before it is made."""
        context = self.context()
        return self._new_of_kind(steps) if context is None else self._of_user(context)

    def check_kind(self) -> None:
        """Raise TargetFailed or DoesNotFit if kind cannot make a cluster."""
        if not kind.is_here():
            raise TargetFailed(
                "There is no Kubernetes cluster to use, and kind and docker, which make one, are not both on PATH.",
                "Start a cluster, install them, or use another target: --target local.",
            )
        kind.check_engine()
        kind.check_versions()
        kind.check_inotify(len(kind.roles(self.kind_configuration)))
        name, made = self.options.name, self.state_folder.read()
        if name in kind.clusters() and (made is None or made.kind_cluster != name):
            raise TargetFailed(
                f"The kind cluster {name} does not answer, and raymeter did not make it.",
                f"Start it, delete it with `kind delete cluster --name {name}`, or use another --name.",
            )

    def check_namespace(self, kubectl: Kubectl) -> None:
        """Raise BadInput if raymeter did not make the namespace of the deployment's name."""
        namespaces = kubectl.get("namespace", self.options.name)
        if namespaces and namespaces[0]["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") != "raymeter":
            raise BadInput(
                f"The namespace {self.options.name} in {kubectl.context} was not made by raymeter.",
                "Use another --name.",
            )

    def _of_user(self, context: str) -> Kubectl:
        state = self.state_folder.read()
        if state is not None and state.context != context and state.context in contexts()[0]:
            raise TargetFailed(
                f"The deployment {self.options.name!r} is in {state.context}, and not in {context}.",
                "Run `bench down` first, or use another --name.",
            )
        if state is None or state.context != context:
            self.check_namespace(Kubectl(context))  # before the state has it, and `down` may delete it
            self.state_folder.write(State(context=context, kubeconfig=os.environ.get("KUBECONFIG")))
        return Kubectl(context)

    def _new_of_kind(self, steps: Steps) -> Kubectl:
        self.check_kind()
        name = self.options.name
        context = kind.context(name)
        self.state_folder.write(State(context=context, kubeconfig=os.environ.get("KUBECONFIG"), kind_cluster=name))
        if name in kind.clusters():
            with steps.step(f"deleting the kind cluster {name}, which does not answer", f"kind cluster {name} deleted"):
                kind.delete(name)
        _, previous = contexts()
        with steps.step(f"making the kind cluster {name}", f"kind cluster {name} made"):
            kind.create(name, self.kind_configuration)
            if previous:
                command("kubectl", "config", "use-context", previous)  # kind changes the current one
            wait_for_nodes(Kubectl(context))
        return Kubectl(context)


def wait_for_nodes(kubectl: Kubectl) -> None:
    """Return when every Kubernetes node is ready; kind itself waits for the control plane only. Raises TargetFailed."""
    kubectl.run("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s", timeout_seconds=70)
