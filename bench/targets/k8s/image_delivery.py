"""How an image comes to the Kubernetes nodes: pulled by them, carried in by kind or minikube, or by the user's own command."""

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

from bench.errors import TargetFailed
from bench.targets.k8s import kind
from bench.targets.k8s.kubectl import Kubectl, Object, command, minikube_profile
from bench.targets.steps import Steps

LOAD_SECONDS = 1200.0  # 4 GB, twice, on a slow disk
BUILD = "Build it: task image"
BUILT_HERE = "raymeter/"  # no registry has these


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image as one store describes it."""

    id: str
    labels: Mapping[str, str]
    architecture: str = ""
    size_bytes: int = 0


def deliver(kubectl: Kubectl, reference: str, nodes: Sequence[str], *, load_with: str | None, steps: Steps) -> None:
    """Load the image onto the nodes that cannot pull it and do not have it."""
    if load_with is not None:
        if not _have(kubectl.get("nodes"), nodes, reference):
            words = [word.replace("{image}", reference) for word in shlex.split(load_with)]
            with steps.step(f"loading the image by {words[0]}", f"image loaded by {words[0]}"):
                command(*words, timeout_seconds=LOAD_SECONDS)
    elif (cluster := kind.cluster_of(kubectl.context)) is not None:
        _into_kind(cluster, nodes, reference, steps)
    elif (profile := minikube_profile(kubectl.context)) is not None:
        _into_minikube(profile, reference, steps)


def check_loadable(reference: str, *, load_with: str | None) -> None:
    """Raise TargetFailed where kind could not load an image into new nodes that they cannot pull either."""
    if load_with is None and reference.startswith(BUILT_HERE) and of_engine(reference) is None:
        raise TargetFailed(f"The Docker engine has no image {reference}.", BUILD)


def of_engine(reference: str) -> Image | None:
    """The image as this machine's Docker engine has it; None where it has none, or there is no engine."""
    if not shutil.which("docker"):
        return None
    try:
        found = json.loads(command("docker", "image", "inspect", reference))[0]
    except TargetFailed:
        return None
    return Image(
        id=found["Id"],
        labels=found["Config"].get("Labels") or {},
        architecture=found["Architecture"],
        size_bytes=found["Size"],
    )


def of_kind_node(node: str, reference: str) -> Image | None:
    """The image as a node of kind has it; None where it has none. Raises TargetFailed where it cannot be asked."""
    try:
        text = command("docker", "exec", node, "crictl", "inspecti", "--output=json", reference)
    except TargetFailed as error:
        if "no such image" in error.what.lower():
            return None
        raise
    found = json.loads(text)
    config = found.get("info", {}).get("imageSpec", {}).get("config", {})
    return Image(id=found["status"]["id"], labels=config.get("Labels") or {})


def is_same(here: Image, there: Image | None) -> bool:
    """Whether two stores describe one image.

    An engine with containerd's store calls an image by its manifest's digest, and a node by its configuration's. Then
    the labels must do: one of them is the hash of the code, and another that of the locked packages.
    """
    if there is None:
        return False
    return here.id == there.id or (bool(here.labels) and here.labels == there.labels)


def _into_kind(cluster: str, nodes: Sequence[str], reference: str, steps: Steps) -> None:
    here = of_engine(reference)
    if here is None:
        if reference.startswith(BUILT_HERE) and not all(of_kind_node(node, reference) for node in nodes):
            raise TargetFailed(f"Neither the Docker engine nor every node of kind has the image {reference}.", BUILD)
        return  # the nodes have it, or pull it
    if lacking := [node for node in nodes if not is_same(here, of_kind_node(node, reference))]:
        _load(cluster, lacking, reference, here, steps)
        if missing := [node for node in lacking if not is_same(here, of_kind_node(node, reference))]:
            raise TargetFailed(f"kind has loaded {reference}, and {', '.join(missing)} has not got it.", "Try again.")


def _load(cluster: str, nodes: Sequence[str], reference: str, here: Image, steps: Steps) -> None:
    """Save the image to a file once, and load that onto all nodes at a time."""
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
            # An image of several platforms, of which the engine has one: only its archive for that one can be loaded.
            _save(reference, archive, "--platform", f"linux/{here.architecture}")
            _load_archive(cluster, nodes, archive, steps)


def _save(reference: str, archive: str, *options: str) -> None:
    command("docker", "image", "save", *options, "--output", archive, reference, timeout_seconds=LOAD_SECONDS)


def _load_archive(cluster: str, nodes: Sequence[str], archive: str, steps: Steps) -> None:
    def load(node: str) -> float:
        start = time.monotonic()
        # A forgotten --name is what is behind most images that "cannot be pulled".
        target = ("--name", cluster, "--nodes", node)
        command("kind", "load", "image-archive", archive, *target, timeout_seconds=LOAD_SECONDS)
        return time.monotonic() - start

    with ThreadPoolExecutor(max_workers=len(nodes)) as threads:
        steps.started(f"loading the image onto {len(nodes)} nodes")
        for number, loaded in enumerate(as_completed([threads.submit(load, node) for node in nodes]), start=1):
            steps.finished(f"image loaded onto node {number} of {len(nodes)}", loaded.result())
            if number < len(nodes):
                steps.started(f"loading the image onto {len(nodes)} nodes, {number} done")


def _into_minikube(profile: str, reference: str, steps: Steps) -> None:
    """Load the image into the nodes of this profile: without its name minikube takes whichever is active."""
    if not shutil.which("minikube"):
        if reference.startswith(BUILT_HERE):
            raise TargetFailed(
                f"The cluster is minikube's profile {profile}, and the command minikube is not on PATH to load"
                f" {reference} with.",
                "Install it, or name a command that loads the image: --load-with.",
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
    if not _is_listed(profile, reference):  # it is known to fail without a word
        raise TargetFailed(
            f"`minikube image load` ended well, and minikube's profile {profile} has no {reference}.",
            f'Build it there: eval "$(minikube docker-env -p {shlex.quote(profile)})" && task image',
        )


def _is_listed(profile: str, reference: str) -> bool:
    listed = command("minikube", "image", "ls", f"--profile={profile}", timeout_seconds=60).split()
    return any(line in (reference, f"docker.io/{reference}") for line in listed)


def _have(nodes: Iterable[Object], names: Sequence[str], reference: str) -> bool:
    """Whether kubelet has told of the image on each of these nodes. It may not have yet: carrying it again does no harm."""
    wanted = {reference, f"docker.io/{reference}"}
    return all(
        any(wanted & set(image.get("names") or ()) for image in node["status"].get("images", []))
        for node in nodes
        if node["metadata"]["name"] in names
    )
