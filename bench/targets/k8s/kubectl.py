"""One Kubernetes cluster, asked through the kubectl that applies the manifests and forwards the ports anyway.

A Python client would be a second way to find clusters and log in to them, and has neither kustomize nor a port-forward
that outlives the command.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.errors import TargetFailed, error_in_output
from bench.targets.docker.engine import PermissionDenied

Object = dict[str, Any]
"""A Kubernetes object as JSON has it."""

ANSWER_SECONDS = 30.0
_DENIED = re.compile(r"permission denied.*docker|docker.*permission denied", re.IGNORECASE)
MINIKUBE = "minikube.sigs.k8s.io"  # who wrote an entry of the user's configuration


@dataclass(frozen=True)
class Kubectl:
    """kubectl, pointed at one context of the user's own configuration."""

    context: str

    def run(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = ANSWER_SECONDS) -> str:
        """What kubectl prints. Raises TargetFailed with the last line of what it complains of."""
        return command("kubectl", "--context", self.context, *arguments, stdin=stdin, timeout_seconds=timeout_seconds)

    def get(self, *arguments: str) -> list[Object]:
        """The objects that `kubectl get` finds; none is no failure."""
        text = self.run("get", *arguments, "--ignore-not-found", "--output=json")
        found = json.loads(text) if text.strip() else {}
        return list(found["items"]) if "items" in found else [found] if found else []

    def apply(self, objects: Iterable[Object], timeout_seconds: float = 60.0) -> None:
        """Server-side, as some definitions are larger than what client-side apply can hold.

        As kubectl itself, so that who applies the same files by hand changes their fields and not another's.
        """
        self.run(
            *("apply", "--server-side", "--force-conflicts", "--filename=-"),
            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}),
            timeout_seconds=timeout_seconds,
        )

    def answers(self) -> bool:
        """Whether there is a cluster behind the context."""
        try:
            self.run("get", "--raw", "/readyz", "--request-timeout=5s", timeout_seconds=15)
        except TargetFailed:
            return False
        return True


def contexts() -> tuple[list[str], str | None]:
    """The contexts that the user has, and the current one. A context's name may have spaces in it."""
    found = _configuration()
    return [each["name"] for each in found.get("contexts") or ()], found.get("current-context") or None


def minikube_profile(context: str) -> str | None:
    """The profile of minikube that a context leads to; None where it leads to another cluster.

    minikube marks what it writes into the user's configuration, and calls the cluster there by its profile. The
    context may have been renamed since.
    """
    found = _configuration()
    of_context = [each["context"] for each in found.get("contexts") or () if each["name"] == context]
    cluster = of_context[0].get("cluster", "") if of_context else ""
    for each in found.get("clusters") or ():
        if each["name"] == cluster and any(
            extension.get("extension", {}).get("provider") == MINIKUBE
            for extension in each["cluster"].get("extensions") or ()
        ):
            return cluster
    return context if context == "minikube" else None  # as written before there were marks


def _configuration() -> Object:
    """The user's configuration, secrets left out; empty where there is no kubectl."""
    if not shutil.which("kubectl"):
        return {}
    return dict(json.loads(command("kubectl", "config", "view", "--output=json")))


def is_of_laptop(context: str) -> bool:
    """Whether a context is one of kind or minikube."""
    return context.startswith("kind-") or minikube_profile(context) is not None


def laptop_context() -> str | None:
    """A context of kind or minikube that answers, the current one first: any other cluster has to be named."""
    known, current = contexts()
    laptops = dict.fromkeys(name for name in (current, *known) if name is not None and is_of_laptop(name))
    return next((name for name in laptops if Kubectl(name).answers()), None)


def kustomize(folder: Path) -> list[Object]:
    """The objects that a folder of manifests stands for."""
    # What comes from a repository takes its time.
    text = command("kubectl", "kustomize", str(folder), timeout_seconds=120)
    # The C loader: KubeRay's definitions are 4 MB, and half a minute of the other one.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(text, Loader=loader) if each]


def command(program: str, *arguments: str, stdin: str | None = None, timeout_seconds: float = ANSWER_SECONDS) -> str:
    """What a program prints. Raises TargetFailed in one line where it is missing, fails or does not end."""
    said = " ".join((program, *_verb(arguments)))
    try:
        done = subprocess.run(
            [program, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout_seconds, check=False
        )
    except FileNotFoundError as error:
        raise TargetFailed(f"The command {program} is not on PATH.", "Install it, or use another target.") from error
    except subprocess.TimeoutExpired as error:
        raise TargetFailed(f"`{said}` did not end within {timeout_seconds:.0f} s.") from error
    if done.returncode != 0:
        if _DENIED.search(done.stderr):
            raise PermissionDenied
        raise TargetFailed(f"`{said}` failed: {error_in_output(done.stderr) or f'exit code {done.returncode}'}.")
    return done.stdout


def _verb(arguments: Sequence[str]) -> list[str]:
    """The first words of a command, without the context: enough to know it by."""
    rest = list(arguments)
    if rest[:1] == ["--context"]:
        rest = rest[2:]
    return rest[:3]
