"""The target k8s, as far as it goes without a cluster: options, images, forwarded ports."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import pytest
from builders import a_topology
from kubernetes_objects import a_node
from manifests import deployment

from bench.data import digits
from bench.errors import BadInput, DoesNotFit, TargetFailed
from bench.identity import SOURCE
from bench.model import Topology
from bench.package_data import K8S
from bench.targets import create, readiness
from bench.targets.k8s import Options, kubectl
from bench.targets.k8s import context as k8s_context
from bench.targets.k8s import target as k8s
from bench.targets.k8s.image_delivery import Image, is_same
from bench.targets.k8s.sent_code import pack
from bench.targets.k8s.state import State, folder_of
from bench.targets.steps import SILENT


@pytest.fixture(autouse=True)
def no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees a cluster of whoever runs it."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


@pytest.mark.parametrize("said", [{}, {"isolation": "loopback"}, {"name": "1st"}, {"context": "nowhere"}])
def test_where_nothing_was_made_there_is_nothing_to_see_and_nothing_to_end(said: dict[str, Any]) -> None:
    target = create("k8s", said)
    assert target.status().cluster is None
    assert target.status().remains == ()
    assert target.down() == ()


def test_a_ledger_is_read_as_it_was_written() -> None:
    state_folder, state = (
        folder_of("written"),
        State(context="kind-x", kubeconfig=None, topology=a_topology(), ports={"head": 1}),
    )
    state_folder.write(state)
    assert state_folder.read() == state
    state_folder.remove()
    assert state_folder.read() is None


HERE = Image(id="sha256:config", labels={"code": "1", "lock": "2"})


@pytest.mark.parametrize(
    ("there", "same"),
    [
        (None, False),
        (Image(id="sha256:config", labels={}), True),
        (Image(id="sha256:other", labels={"code": "1", "lock": "2"}), True),  # another kind of store
        (Image(id="sha256:other", labels={"code": "0", "lock": "2"}), False),  # of older code
    ],
)
def test_an_image_is_known_by_its_id_or_by_its_labels(there: Image | None, *, same: bool) -> None:
    assert is_same(HERE, there) is same


def test_two_images_without_labels_are_not_the_same_for_that() -> None:
    assert not is_same(Image(id="a", labels={}), Image(id="b", labels={}))


def test_a_forward_that_breaks_is_begun_again_and_ends_with_its_keeper(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    command = f"echo x >>{tries}; test $(wc -l <{tries}) -lt 3 || exec sleep 60"
    text = f"from bench.targets.k8s.port_forward import keep; keep(['sh', '-c', {command!r}])"
    keeper = subprocess.Popen([sys.executable, "-c", text])
    try:
        until = time.monotonic() + 30
        while not tries.exists() or len(tries.read_text().split()) < 3:
            assert time.monotonic() < until
            time.sleep(0.05)
        (child,) = Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()
        keeper.terminate()
        assert keeper.wait(timeout=10) == 0
        while Path(f"/proc/{child}").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        keeper.kill()


TOPOLOGY: Topology = a_topology(cpus=2)
RIGHT = {"CPU": 2.0, "memory": 4.0 * 2**30, "object_store_memory": 1.0 * 2**30}


@pytest.mark.parametrize(
    ("has", "word"),
    [
        (RIGHT, ""),
        ({**RIGHT, "object_store_memory": RIGHT["object_store_memory"] * 0.995}, ""),
        ({**RIGHT, "CPU": 1.0}, "CPUs 1 instead of 2"),
        ({**RIGHT, "memory": 2.0 * 2**30}, "memory"),
        ({}, "CPUs 0 instead of 2"),
    ],
)
def test_a_node_with_other_resources_than_its_topology_says_is_not_ready(has: dict[str, float], word: str) -> None:
    with pytest.raises(TargetFailed, match=word) if word else nullcontext():
        readiness._check_size(TOPOLOGY, "head", has)


def test_the_same_code_is_the_same_archive(tmp_path: Path) -> None:
    source = tmp_path / "bench"
    (source / "__pycache__").mkdir(parents=True)
    (source / "model.py").write_text("x = 1\n")
    first = pack(source)
    (source / "__pycache__/model.pyc").write_bytes(b"made by running it")
    assert pack(source) == first
    (source / "model.py").write_text("x = 2\n")
    assert pack(source) != first


def test_all_code_of_raymeter_fits_into_a_config_map_and_its_data_stays_in_the_image(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(pack(SOURCE))) as archive:
        archive.extractall(tmp_path, filter="data")
    sent = {path.relative_to(tmp_path / "bench") for path in tmp_path.rglob("*") if path.is_file()}
    here = {
        path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    assert here - sent == {digits.MNIST_FILE.relative_to(SOURCE)}


class ForeignCluster:
    """kubectl, for a cluster whose namespaces are somebody else's; it remembers what it was asked to do."""

    asked: ClassVar[list[tuple[str, ...]]] = []

    def __init__(self, context: str) -> None:
        self.context = context

    def answers(self) -> bool:
        return True

    def get(self, *arguments: str) -> list[dict[str, Any]]:
        return [{"metadata": {"name": "monitoring", "labels": {}}}] if arguments[0] == "namespace" else []

    def run(self, *arguments: str, **_: Any) -> str:
        self.asked.append(arguments)
        return ""


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[ForeignCluster]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for module in (k8s, k8s_context, kubectl):
        monkeypatch.setattr(module, "Kubectl", ForeignCluster)
        monkeypatch.setattr(module, "contexts", lambda: (["prod", "kind-x"], "prod"))
    monkeypatch.setattr(ForeignCluster, "asked", [])
    return ForeignCluster


def test_a_namespace_of_somebody_else_is_neither_taken_nor_ever_deleted(foreign: type[ForeignCluster]) -> None:
    target = create("k8s", {"name": "monitoring", "context": "prod", "image": "a/b:1"})
    with pytest.raises(BadInput, match="The namespace monitoring in prod was not made by raymeter"):
        target.up(a_topology())
    assert folder_of("monitoring").read() is None
    folder_of("monitoring").write(State(context="prod", kubeconfig=None))
    with pytest.raises(BadInput, match="was not made by raymeter"):
        target.down()
    assert not [words for words in foreign.asked if "delete" in words]


def test_the_current_context_is_not_taken_unless_it_is_a_laptops_or_named(foreign: type[ForeignCluster]) -> None:
    assert where(Options()).context() == "kind-x"
    assert where(Options(context="prod")).context() == "prod"


def test_a_laptops_cluster_that_is_stopped_is_passed_over_for_one_that_answers(
    foreign: type[ForeignCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubectl, "contexts", lambda: (["kind-x", "kind-y"], "kind-x"))
    monkeypatch.setattr(foreign, "answers", lambda self: self.context != "kind-x")
    assert where(Options()).context() == "kind-y"
    monkeypatch.setattr(foreign, "answers", lambda self: False)
    assert where(Options()).context() is None
    with pytest.raises(TargetFailed, match="prod does not answer"):
        where(Options(context="prod")).context()
    with pytest.raises(BadInput, match="kubectl has no context nowhere"):
        where(Options(context="nowhere")).context()


def where(options: Options) -> k8s_context.Where:
    return k8s_context.Where(options, folder_of(options.name), K8S / "kind.yaml")


def test_down_does_not_forget_a_namespace_that_it_cannot_reach(foreign: type[ForeignCluster]) -> None:
    folder_of("far").write(State(context="gone", kubeconfig=None))
    with pytest.raises(TargetFailed, match="does not know the context gone"):
        create("k8s", {"name": "far"}).down()
    assert folder_of("far").read() is not None


def _has_what_kind_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tools, disk and limits this machine has: `test_k8s_kind.py` tests their checks."""
    for check in ("check_versions", "check_disk", "check_inotify"):
        monkeypatch.setattr(k8s.kind, check, lambda *_: None)


def test_a_kind_cluster_that_raymeter_did_not_make_is_not_deleted(
    foreign: type[ForeignCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    _has_what_kind_needs(monkeypatch)
    for module in (k8s, k8s_context, kubectl):
        monkeypatch.setattr(module, "contexts", lambda: ([], None))
    monkeypatch.setattr(k8s.kind, "clusters", lambda: ["mine"])
    monkeypatch.setattr(k8s.kind, "check_engine", lambda: None)
    monkeypatch.setattr(k8s.kind, "is_here", lambda: True)
    monkeypatch.setattr(k8s.kind, "delete", lambda name: pytest.fail(f"{name} was deleted"))
    monkeypatch.setattr(k8s.image_delivery, "of_engine", lambda _: None)  # whatever image this machine has
    with pytest.raises(TargetFailed, match="raymeter did not make it"):
        create("k8s", {"name": "mine"}).up(a_topology())


@pytest.mark.parametrize(
    ("fails", "why"), [("manifests", "cannot be fetched"), ("image", "has no image"), ("engine", "does not answer")]
)
def test_what_may_fail_is_tried_before_kind_makes_a_cluster(
    fails: str, why: str, foreign: type[ForeignCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    _has_what_kind_needs(monkeypatch)

    def fail(*_: object) -> None:
        raise TargetFailed(f"It {why}.")

    def fetched(*_: object) -> list[dict[str, Any]]:
        return fail() or [] if fails == "manifests" else []

    for module in (k8s, k8s_context, kubectl):
        monkeypatch.setattr(module, "contexts", lambda: ([], None))
    monkeypatch.setattr(k8s, "kustomize", lambda folder: deployment(folder.name))
    monkeypatch.setattr(k8s.kind, "is_here", lambda: True)
    monkeypatch.setattr(k8s.kind, "check_engine", fail if fails == "engine" else lambda: None)
    monkeypatch.setattr(k8s.kind, "create", lambda *_: pytest.fail("a cluster was made"))
    monkeypatch.setattr(k8s.kuberay, "manifests", fetched)
    monkeypatch.setattr(
        k8s.image_delivery, "of_engine", lambda _: None if fails == "image" else Image(id="a", labels={}, size_bytes=1)
    )
    monkeypatch.setattr(k8s.images, "check_code", lambda *_, **__: None)
    target = create("k8s", {"name": "first"})
    for use in (target.check, target.up):
        with pytest.raises(TargetFailed, match=why):
            use(a_topology(cpus=1))
    assert target.status().remains == ()


def test_a_forward_that_has_ended_is_begun_again_though_nothing_else_has_changed(
    foreign: type[ForeignCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(k8s.port_forward, "start", lambda *, subject, **_: started.append(subject))
    monkeypatch.setattr(k8s.kuberay, "is_there", lambda _: True)
    monkeypatch.setattr(ForeignCluster, "apply", lambda *_: None, raising=False)
    services = [{"kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}} for name in WINDOWS]
    folder_of("forwards").write(State(context="prod", kubeconfig=None))
    target = k8s.K8sTarget(Options(name="forwards"))
    for _ in range(2):  # what was started has never lived
        target._settle(ForeignCluster("prod"), services)  # type: ignore[arg-type]
    assert started == [f"service/{name}" for name in WINDOWS] * 2
    state = folder_of("forwards").read()
    assert state is not None
    assert set(state.ports) == set(WINDOWS)


WINDOWS = ("prometheus", "grafana")


def test_the_workers_of_a_cluster_that_was_made_just_now_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    late, ready = a_node("w1", ready="False"), a_node("w1")
    seen = [late, late]

    class Young(ForeignCluster):
        def get(self, *_: str) -> list[dict[str, Any]]:
            return [seen[-1]]

        def run(self, *arguments: str, **_: Any) -> str:
            assert arguments[:3] == ("wait", "--for=condition=Ready", "nodes")
            seen.append(ready)
            return ""

    def assigned(context: str) -> list[str]:
        target = k8s.K8sTarget(Options(image="a/b:1"))
        return target._assign(Young(context), a_topology(), deployment("single"))  # type: ignore[arg-type]

    with pytest.raises(DoesNotFit, match="w1 is not ready"):
        assigned("prod")  # may have been so for days
    assert assigned("kind-x") == ["w1"]


def test_the_folder_of_the_operators_manifests_may_be_named_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    def manifests(_: Path, instead: str | None) -> list[dict[str, Any]]:
        asked.append(instead)
        return [{"kind": "Deployment"}]

    monkeypatch.setattr(k8s.kuberay, "manifests", manifests)
    monkeypatch.setenv("RAYMETER_OPERATOR_MANIFESTS", "/there")
    for options in (Options(), Options(operator_manifests="/given")):
        k8s.K8sTarget(options)._operator_manifests(SILENT)
    assert asked == ["/there", "/given"]
