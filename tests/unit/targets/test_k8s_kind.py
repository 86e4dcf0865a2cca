"""What kind needs is checked before it makes a cluster, and the image goes onto each of its nodes."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.errors import DoesNotFit, TargetFailed
from bench.package_data import K8S
from bench.targets.k8s import image_delivery, kind
from bench.targets.k8s.image_delivery import Image
from bench.targets.k8s.kubectl import Kubectl
from bench.targets.steps import Steps

GIB = 2**30


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | Exception]:
    """What each command prints, by its first two words; all else prints nothing."""
    printed: dict[str, str | Exception] = {}

    def command(*words: str, **_: Any) -> str:
        answer = printed.get(" ".join(words[:2]), "")
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(kind, "command", command)
    return printed


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"kind version": "kind v0.30.0 go1.24 linux/amd64", "kubectl version": "Client Version: v1.34.4"}, ""),
        ({"kind version": "kind v0.26.0 go1.24 linux/amd64"}, "kind is v0.26.0, and raymeter needs v0.27 or newer"),
        ({"kubectl version": "Client Version: v1.24.0-gke"}, "kubectl is v1.24.0-gke, and raymeter needs v1.27"),
        ({"kind version": "a build without a version"}, ""),
    ],
)
def test_a_tool_that_is_too_old_is_refused_with_both_versions(
    versions: dict[str, str], message: str, outputs: dict[str, str | Exception]
) -> None:
    outputs.update(versions)
    if message:
        with pytest.raises(TargetFailed, match=message):
            kind.check_versions()
    else:
        kind.check_versions()


@pytest.mark.parametrize(("in_use", "fits"), [(50, True), (70, False)])
def test_too_few_inotify_instances_are_refused_with_the_command_that_helps(
    in_use: int, *, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "INOTIFY", tmp_path / "limit")
    monkeypatch.setattr(kind, "_inotify_in_use", lambda: in_use)
    kind.check_inotify(3)  # no such file: this is no Linux
    (tmp_path / "limit").write_text("128\n")
    if fits:
        kind.check_inotify(3)
    else:
        with pytest.raises(DoesNotFit, match=r"70 of 128 are in use\. Raise the limit: sudo sysctl"):
            kind.check_inotify(3)


@pytest.mark.parametrize(("free_gib", "fits"), [(19, True), (16, False)])
def test_the_image_must_find_room_on_the_disk_once_as_a_file_and_on_each_node(
    free_gib: int, *, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outputs: dict[str, str | Exception]
) -> None:
    outputs["docker info"] = f"{tmp_path}\n"  # on the disk of the temporary folder
    monkeypatch.setattr(kind.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free_gib * GIB))
    need = 3.4 * GIB  # once, and 2.2 times on each of 2 nodes: 18.4 GiB
    if fits:
        kind.check_disk(int(need), 2)
    else:
        with pytest.raises(DoesNotFit, match=r"2 kind nodes takes 18\.4 GiB .* and 16\.0 GiB are free"):
            kind.check_disk(int(need), 2)


def test_the_roles_are_those_of_the_configuration() -> None:
    assert kind.roles(K8S / "kind.yaml") == ["control-plane", "worker", "worker"]


HERE = Image(id="sha256:1", labels={}, architecture="arm64", size_bytes=1)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[tuple[str, ...]]]:
    """Two nodes of kind, which have an image once it was loaded onto them; gives the commands so far."""
    ran: list[tuple[str, ...]] = []

    def command(*words: str, **_: Any) -> str:
        ran.append(words)
        if words[:3] == ("docker", "image", "save"):
            Path(words[words.index("--output") + 1]).touch()
        return ""

    def of_kind_node(node: str, _: str) -> Image | None:
        is_loaded = any(words[:2] == ("kind", "load") and words[-1] == node for words in ran)
        return HERE if is_loaded else None

    monkeypatch.setattr(image_delivery, "command", command)
    monkeypatch.setattr(image_delivery, "of_engine", lambda _: HERE)
    monkeypatch.setattr(image_delivery, "of_kind_node", of_kind_node)
    monkeypatch.setattr(kind, "cluster_of", lambda _: "a")
    monkeypatch.setattr(kind, "check_disk", lambda *_: None)
    return lambda: ran


def test_the_image_is_saved_once_and_its_load_is_reported_node_by_node(
    nodes: Callable[[], list[tuple[str, ...]]],
) -> None:
    finished: list[str] = []
    steps = Steps(finished=lambda done, _: finished.append(done))
    for _ in range(2):  # the second time the nodes have it
        image_delivery.deliver(Kubectl("kind-a"), "raymeter/ray:1", ["w1", "w2"], load_with=None, steps=steps)
    assert finished == [
        "image saved to a file of 0.0 GB",
        "image loaded onto node 1 of 2",
        "image loaded onto node 2 of 2",
    ]
    assert sorted(words[-1] for words in nodes() if words[0] == "kind") == ["w1", "w2"]
    assert sum(words[0] == "docker" for words in nodes()) == 1


def test_of_an_image_of_several_platforms_the_engines_own_is_saved(
    nodes: Callable[[], list[tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = image_delivery.command

    def refusing(*words: str, **settings: Any) -> str:
        is_of_one_platform = any("--platform" in other for other in nodes())
        if words[0] == "kind" and not is_of_one_platform:
            raise TargetFailed("`kind load image-archive` failed: ctr: content digest sha256:2: not found.")
        return usual(*words, **settings)

    monkeypatch.setattr(image_delivery, "command", refusing)
    image_delivery.deliver(Kubectl("kind-a"), "raymeter/ray:1", ["w1", "w2"], load_with=None, steps=Steps())
    (_, save) = (words for words in nodes() if words[0] == "docker")
    assert "linux/arm64" in save


def test_the_inotify_instances_of_this_machine_are_counted() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: those of root are counted")
    libc = ctypes.CDLL(None)
    before = kind._inotify_in_use()
    opened = [libc.inotify_init() for _ in range(40)]
    try:
        assert kind._inotify_in_use() >= before + 20  # others may end some of theirs meanwhile
    finally:
        for descriptor in opened:
            os.close(descriptor)
