"""Makes and deletes clusters of containers on this machine by kind, and checks beforehand what kind needs."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import yaml

from bench.errors import DoesNotFit, TargetFailed
from bench.targets.docker.engine import PermissionDenied
from bench.targets.k8s.kubectl import command

CREATE_SECONDS = 300.0
DELETE_SECONDS = 300.0
OLDEST_KIND = (0, 27)  # older ones cannot load images onto nodes with containerd 2: kubernetes-sigs/kind#3853
OLDEST_KUBECTL = (1, 27)  # the first one with kustomize 5, for which the manifests are written
STORED_PER_BYTE = 2.2  # of an image: a node keeps its layers, and the files in them
INOTIFY_PER_NODE = 25  # instances of root: 17 were counted on each node of a deployment
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")


def is_here() -> bool:
    """Whether kind and docker are on PATH."""
    return bool(shutil.which("kind") and shutil.which("docker"))


def check_versions() -> None:
    """Raise TargetFailed for a kind or kubectl that is too old."""
    _check_version("kind", command("kind", "version"), OLDEST_KIND)
    _check_version("kubectl", command("kubectl", "version", "--client"), OLDEST_KUBECTL)


def _check_version(program: str, output: str, oldest: tuple[int, int]) -> None:
    version = re.search(r"v(\d+)\.(\d+)\.\d+\S*", output)
    if version and (int(version[1]), int(version[2])) < oldest:
        raise TargetFailed(
            f"{program} is {version[0]}, and raymeter needs v{oldest[0]}.{oldest[1]} or newer.",
            f"Install a newer {program}, or use another target: --target local.",
        )


def check_disk(image_bytes: int, nodes: int) -> None:
    """Raise DoesNotFit if the disk is too small for the image's file, and for the image on so many nodes.

    If the engine is in a virtual machine, its disk cannot be seen, and only the file is checked.
    """
    folder = Path(tempfile.gettempdir())
    needs = {folder: image_bytes}
    root = Path(command("docker", "info", "--format={{.DockerRootDir}}").strip())
    if root.is_dir():
        is_same_disk = root.stat().st_dev == folder.stat().st_dev
        where = folder if is_same_disk else root
        needs[where] = needs.get(where, 0) + int(image_bytes * STORED_PER_BYTE * nodes)
    for where, needed in needs.items():
        if needed > (free := shutil.disk_usage(where).free):
            raise DoesNotFit(
                f"The image on {nodes} kind nodes takes {needed / 2**30:.1f} GiB on the disk of {where},"
                f" and {free / 2**30:.1f} GiB are free.",
                "Free disk space (docker image prune), or set TMPDIR to another disk.",
            )


def check_inotify(nodes: int) -> None:
    """Raise DoesNotFit for too few inotify instances: nodes would fail with "too many open files"."""
    if not INOTIFY.is_file():
        return  # not Linux: the limits of the engine's virtual machine apply
    needed, limit, in_use = INOTIFY_PER_NODE * nodes, int(INOTIFY.read_text()), _inotify_in_use()
    if needed > limit - in_use:
        raise DoesNotFit(
            f"{nodes} kind nodes need {needed} inotify instances, and {in_use} of {limit} are in use.",
            "Raise the limit: sudo sysctl fs.inotify.max_user_instances=512.",
        )


def _inotify_in_use() -> int:
    """The instances of root, which runs kind's nodes, as far as this user may count them."""
    links = (
        link for process in Path("/proc").glob("[0-9]*") if _is_of_root(process) for link in _links(process / "fd")
    )
    return sum(link == "anon_inode:inotify" for link in links)


def _is_of_root(process: Path) -> bool:
    try:
        return process.stat().st_uid == 0
    except OSError:
        return False


def _links(folder: Path) -> Iterator[str]:
    with suppress(OSError):  # it has ended, or may not be read
        for entry in folder.iterdir():
            with suppress(OSError):
                yield str(entry.readlink())


def roles(configuration: Path) -> list[str]:
    """The role of each node that kind makes of a configuration: control-plane or worker."""
    parsed: Mapping[str, list[Mapping[str, str]]] = yaml.safe_load(configuration.read_text())
    return [node["role"] for node in parsed["nodes"]]


def check_engine() -> None:
    """Raise TargetFailed if the Docker engine that kind uses does not answer, or refuses this user."""
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
    """The clusters of kind; none if its engine does not answer. Raises PermissionDenied."""
    try:
        return command("kind", "get", "clusters").split()
    except PermissionDenied:
        raise
    except TargetFailed:
        return []


def context(cluster: str) -> str:
    """The context of a kind cluster."""
    return f"kind-{cluster}"


def cluster_of(context: str) -> str | None:
    """The kind cluster of a context; None for other clusters."""
    name = context.removeprefix("kind-")
    return name if name != context and is_here() and name in clusters() else None


def create(cluster: str, configuration: Path) -> None:
    """Make a cluster. Raises TargetFailed."""
    command(
        *("kind", "create", "cluster", "--name", cluster, "--config", str(configuration), "--wait", "120s"),
        timeout_seconds=CREATE_SECONDS,
    )


def delete(cluster: str) -> None:
    """Delete a cluster and its context."""
    command("kind", "delete", "cluster", "--name", cluster, timeout_seconds=DELETE_SECONDS)
