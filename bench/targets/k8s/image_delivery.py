"""Loads an image onto the Kubernetes nodes by kind, minikube or the user's own command, unless they pull it."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from bench.counts import plural
from bench.errors import TargetFailed
from bench.targets.k8s import kind
from bench.targets.k8s.kubectl import Kubectl, Object, command, minikube_profile
from bench.targets.steps import Steps

LOAD_SECONDS = 1200.0  # 4 GB, twice, on a slow disk
BUILD = "Build it: task image"
BUILT_HERE = "raymeter/"  # prefix of images that no registry has


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image, as an engine or a node describes it."""

    id: str
    labels: Mapping[str, str]
    architecture: str = ""
    size_bytes: int = 0


def deliver(kubectl: Kubectl, reference: str, nodes: Sequence[str], *, load_with: str | None, steps: Steps) -> None:
    """Load the image onto the nodes that cannot pull it and do not have it."""
    if load_with is not None:
        if not _have(kubectl.get("nodes"), nodes, reference):
            arguments = [word.replace("{image}", reference) for word in shlex.split(load_with)]
            with steps.step(f"loading the image by {arguments[0]}", f"image loaded by {arguments[0]}"):
                command(*arguments, timeout_seconds=LOAD_SECONDS)
    elif (cluster := kind.cluster_of(kubectl.context)) is not None:
        _into_kind(cluster, nodes, reference, steps)
    elif (profile := minikube_profile(kubectl.context)) is not None:
        _into_minikube(profile, reference, steps)


def check_loadable(reference: str, *, load_with: str | None) -> None:
    """Raise TargetFailed for an image that kind cannot load onto new nodes, and that they cannot pull."""
    if load_with is None and reference.startswith(BUILT_HERE) and of_engine(reference) is None:
        raise TargetFailed(f"The Docker engine has no image {reference}.", BUILD)


def of_engine(reference: str) -> Image | None:
    """The image in this machine's Docker engine; None without the image or the engine."""
    if not shutil.which("docker"):
        return None
    try:
        description = json.loads(command("docker", "image", "inspect", reference))[0]
    except TargetFailed:
        return None
    return Image(
        id=description["Id"],
        labels=description["Config"].get("Labels") or {},
        architecture=description["Architecture"],
        size_bytes=description["Size"],
    )


def of_kind_node(node: str, reference: str) -> Image | None:
    """The image on a kind node; None if it has none. Raises TargetFailed if the node cannot be asked."""
    try:
        text = command("docker", "exec", node, "crictl", "inspecti", "--output=json", reference)
    except TargetFailed as error:
        if "no such image" in error.what.lower():
            return None
        raise
    description = json.loads(text)
    config = description.get("info", {}).get("imageSpec", {}).get("config", {})
    return Image(id=description["status"]["id"], labels=config.get("Labels") or {})


def is_same(here: Image, other: Image | None) -> bool:
    """Whether two stores describe one image.

    An engine with containerd's store calls an image by its manifest's digest, and a node by its configuration's. Then
    the labels must do: one of them is the hash of the code, and another that of the locked packages.
    """
    if other is None:
        return False
    return here.id == other.id or (bool(here.labels) and here.labels == other.labels)


def _into_kind(cluster: str, nodes: Sequence[str], reference: str, steps: Steps) -> None:
    here = of_engine(reference)
    if here is None:
        if reference.startswith(BUILT_HERE) and not all(of_kind_node(node, reference) for node in nodes):
            raise TargetFailed(f"Neither the Docker engine nor every node of kind has the image {reference}.", BUILD)
        return  # the nodes have it, or pull it
    if lacking := [node for node in nodes if not is_same(here, of_kind_node(node, reference))]:
        _load(cluster, lacking, reference, here, steps)
        if missing := [node for node in lacking if not is_same(here, of_kind_node(node, reference))]:
            raise TargetFailed(f"kind has loaded {reference}, and {', '.join(missing)} does not have it.", "Try again.")


def _load(cluster: str, nodes: Sequence[str], reference: str, here: Image, steps: Steps) -> None:
    """Save the image to a file once, and load that onto all nodes in parallel."""
    kind.check_disk(here.size_bytes, len(nodes))
    with tempfile.TemporaryDirectory() as temporary:
        archive = str(Path(temporary) / "image.tar")
        with steps.step("saving the image to a file", f"image saved to a file of {here.size_bytes / 1e9:.1f} GB"):
            _save(reference, archive)
        try:
            _load_archive(cluster, nodes, archive, steps)
        except TargetFailed as error:
            if "digest" not in error.what:
                raise
            # An image of several platforms, of which the engine has one: only that one can be loaded.
            _save(reference, archive, "--platform", f"linux/{here.architecture}")
            _load_archive(cluster, nodes, archive, steps)


def _save(reference: str, archive: str, *options: str) -> None:
    command("docker", "image", "save", *options, "--output", archive, reference, timeout_seconds=LOAD_SECONDS)


def _load_archive(cluster: str, nodes: Sequence[str], archive: str, steps: Steps) -> None:
    def load(node: str) -> float:
        start = time.monotonic()
        # Without --name the image would go to another cluster.
        target = ("--name", cluster, "--nodes", node)
        command("kind", "load", "image-archive", archive, *target, timeout_seconds=LOAD_SECONDS)
        return time.monotonic() - start

    with ThreadPoolExecutor(max_workers=len(nodes)) as threads:
        onto = plural(len(nodes), "node")
        steps.started(f"loading the image onto {onto}")
        for number, loaded in enumerate(as_completed([threads.submit(load, node) for node in nodes]), start=1):
            steps.finished(f"image loaded onto node {number} of {len(nodes)}", loaded.result())
            if number < len(nodes):
                steps.started(f"loading the image onto {onto}, {number} done")


def _into_minikube(profile: str, reference: str, steps: Steps) -> None:
    """Load the image onto the nodes of this profile; without its name minikube would use the active one."""
    if not shutil.which("minikube"):
        if reference.startswith(BUILT_HERE):
            raise TargetFailed(
                f"The cluster is minikube's profile {profile}, and the command minikube, which loads"
                f" {reference}, is not on PATH.",
                "Install it, or use --load-with to name a command that loads the image.",
            )
        return  # its nodes pull it
    if _is_listed(profile, reference):
        return
    if of_engine(reference) is None:
        if reference.startswith(BUILT_HERE):
            raise TargetFailed(f"Neither the Docker engine nor minikube's profile {profile} has {reference}.", BUILD)
        return  # its nodes pull it
    with steps.step(f"loading the image into minikube's profile {profile}", f"image loaded into {profile}"):
        command("minikube", "image", "load", reference, f"--profile={profile}", timeout_seconds=LOAD_SECONDS)
    if not _is_listed(profile, reference):  # it may fail without an error
        raise TargetFailed(
            f"`minikube image load` reported no error, and minikube's profile {profile} does not have {reference}.",
            f'Build it there: eval "$(minikube docker-env -p {shlex.quote(profile)})" && task image',
        )


def _is_listed(profile: str, reference: str) -> bool:
    listed = command("minikube", "image", "ls", f"--profile={profile}", timeout_seconds=60).split()
    return any(line in (reference, f"docker.io/{reference}") for line in listed)


def _have(nodes: Iterable[Object], names: Sequence[str], reference: str) -> bool:
    """Whether kubelet reports the image on each of these nodes. It may be late; loading twice is harmless."""
    wanted = {reference, f"docker.io/{reference}"}
    return all(
        any(wanted & set(image.get("names") or ()) for image in node["status"].get("images", []))
        for node in nodes
        if node["metadata"]["name"] in names
    )
