"""A cluster of containers on this machine, made by kind."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.errors import TargetFailed
from bench.targets.docker.engine import PermissionDenied
from bench.targets.k8s.kubectl import command

CREATE_SECONDS = 300.0
DELETE_SECONDS = 180.0


def is_here() -> bool:
    """Whether kind can be used: it, and the docker that it works with."""
    return bool(shutil.which("kind") and shutil.which("docker"))


def check_engine() -> None:
    """Raise TargetFailed where the Docker engine that kind works with does not answer, or refuses this user."""
    try:
        command("docker", "version", "--format={{.Server.Version}}")
    except PermissionDenied:
        raise
    except TargetFailed as error:
        raise TargetFailed(
            f"The Docker engine that kind needs does not answer: {error.what}",
            "Start it, or use another target: --target local.",
        ) from error


def clusters() -> list[str]:
    """The clusters that kind has made here; none where its engine does not answer. Raises PermissionDenied."""
    try:
        return command("kind", "get", "clusters").split()
    except PermissionDenied:
        raise
    except TargetFailed:
        return []


def context(cluster: str) -> str:
    """What kind calls a cluster's context."""
    return f"kind-{cluster}"


def cluster_of(context: str) -> str | None:
    """The cluster of kind that a context leads to; None where it is none of kind's."""
    name = context.removeprefix("kind-")
    return name if name != context and is_here() and name in clusters() else None


def create(cluster: str, configuration: Path) -> None:
    """Make a cluster. Raises TargetFailed."""
    command(
        *("kind", "create", "cluster", "--name", cluster, "--config", str(configuration), "--wait", "120s"),
        timeout_seconds=CREATE_SECONDS,
    )


def delete(cluster: str) -> None:
    """Delete a cluster, and its context with it."""
    command("kind", "delete", "cluster", "--name", cluster, timeout_seconds=DELETE_SECONDS)
