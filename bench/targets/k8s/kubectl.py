"""Runs kubectl for one Kubernetes cluster, and the other programs of the target k8s.

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
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from bench.errors import TargetFailed, error_in_output
from bench.targets.docker.engine import PermissionDenied

Object = dict[str, Any]
"""A Kubernetes object, as parsed JSON."""

ANSWER_SECONDS = 30.0
_DENIED = re.compile(r"permission denied.*docker|docker.*permission denied", re.IGNORECASE)
MINIKUBE = "minikube.sigs.k8s.io"  # the provider in minikube's entries of the user's configuration


@dataclass(frozen=True)
class Kubectl:
    """kubectl with one context of the user's configuration."""

    context: str

    def run(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = ANSWER_SECONDS) -> str:
        """The output of kubectl. Raises TargetFailed with its error."""
        return command("kubectl", "--context", self.context, *arguments, stdin=stdin, timeout_seconds=timeout_seconds)

    def get(self, *arguments: str) -> list[Object]:
        """The objects of `kubectl get`; it is no error if there are none."""
        text = self.run("get", *arguments, "--ignore-not-found", "--output=json")
        answer = json.loads(text) if text.strip() else {}
        return list(answer["items"]) if "items" in answer else [answer] if answer else []

    def apply(self, objects: Iterable[Object], timeout_seconds: float = 60.0) -> None:
        """Apply server-side, as some definitions are too large for client-side apply.

        As kubectl itself, so that users who apply the same files by hand own the same fields.
        """
        self.run(
            *("apply", "--server-side", "--force-conflicts", "--filename=-"),
            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}),
            timeout_seconds=timeout_seconds,
        )

    def answers(self) -> bool:
        """Whether the context's cluster answers."""
        try:
            self.run("get", "--raw", "/readyz", "--request-timeout=5s", timeout_seconds=15)
        except TargetFailed:
            return False
        return True


def contexts() -> tuple[list[str], str | None]:
    """The user's contexts, and the current one. A context's name may contain spaces."""
    configuration = _configuration()
    return [entry["name"] for entry in configuration.get("contexts") or ()], configuration.get(
        "current-context"
    ) or None


def minikube_profile(context: str) -> str | None:
    """The minikube profile of a context; None for other clusters.

    minikube marks what it writes into the user's configuration, and calls the cluster there by its profile. The
    context may have been renamed since.
    """
    configuration = _configuration()
    of_context = [entry["context"] for entry in configuration.get("contexts") or () if entry["name"] == context]
    cluster = of_context[0].get("cluster", "") if of_context else ""
    for entry in configuration.get("clusters") or ():
        if entry["name"] == cluster and any(
            extension.get("extension", {}).get("provider") == MINIKUBE
            for extension in entry["cluster"].get("extensions") or ()
        ):
            return cluster
    return context if context == "minikube" else None  # written by a minikube without marks


def _configuration() -> Object:
    """The user's configuration without secrets; empty if there is no kubectl."""
    if not shutil.which("kubectl"):
        return {}
    return dict(json.loads(command("kubectl", "config", "view", "--output=json")))


def is_of_laptop(context: str) -> bool:
    """Whether a context is one of kind or minikube."""
    return context.startswith("kind-") or minikube_profile(context) is not None


def laptop_context() -> str | None:
    """A context of kind or minikube that answers, the current one first. Other clusters must be named."""
    known, current = contexts()
    laptops = dict.fromkeys(name for name in (current, *known) if name is not None and is_of_laptop(name))
    return next((name for name in laptops if Kubectl(name).answers()), None)


def kustomize(folder: Path) -> list[Object]:
    """The objects in a folder of manifests."""
    # A remote repository takes time.
    text = command("kubectl", "kustomize", str(folder), timeout_seconds=120)
    # The C loader, as the other takes half a minute for KubeRay's 4 MB of definitions.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(text, Loader=loader) if document]


def command(program: str, *arguments: str, stdin: str | None = None, timeout_seconds: float = ANSWER_SECONDS) -> str:
    """The output of a program. Raises TargetFailed if it is missing, fails or does not end in time."""
    shown = " ".join((program, *_verb(arguments)))
    try:
        done = subprocess.run(
            [program, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout_seconds, check=False
        )
    except FileNotFoundError as error:
        raise TargetFailed(f"The command {program} is not on PATH.", "Install it, or use another target.") from error
    except subprocess.TimeoutExpired as error:
        raise TargetFailed(f"`{shown}` did not end within {timeout_seconds:.0f} s.") from error
    if done.returncode != 0:
        if _DENIED.search(done.stderr):
            raise PermissionDenied
        raise TargetFailed(f"`{shown}` failed: {error_in_output(done.stderr) or f'exit code {done.returncode}'}.")
    return done.stdout


def _verb(arguments: Sequence[str]) -> list[str]:
    """The first words of a command, without options and the context before them, for a message."""
    rest = arguments[2:] if arguments[:1] == ("--context",) else arguments
    return list(takewhile(lambda word: not word.startswith("-"), rest[:3]))
