"""minikube: its profiles, and which of them an image is loaded into.

There is no minikube here. The stand-in does what its documentation says of `minikube image load` and `image ls`: they
work on the profile that --profile names, and on the active one where it is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import TargetFailed
from bench.targets.docker.engine import PermissionDenied
from bench.targets.k8s import image_delivery, kind
from bench.targets.k8s.kubectl import Kubectl, contexts, is_of_laptop, kustomize, minikube_profile
from bench.targets.steps import SILENT

MARK = [{"name": "x", "extension": {"provider": "minikube.sigs.k8s.io", "version": "v1.37.0", "last-update": "x"}}]
IMAGE = "raymeter/ray:0.1.0"
MINIKUBE = """
from pathlib import Path
store = Path(__file__).parent
profile, words = "active", []
for word in sys.argv[1:]:
    if word.startswith("--profile="):
        profile = word.partition("=")[2]
    else:
        words.append(word)
images = store / f"images of {profile}"
if words[:2] == ["image", "load"]:
    if not (store / "is broken").exists():
        with images.open("a") as file:
            print(f"docker.io/{words[2]}", file=file)
elif words == ["image", "ls"]:
    print("registry.k8s.io/pause:3.10")
    print(images.read_text() if images.exists() else "", end="")
else:
    sys.exit(f"unknown {words}")
"""
Program = Callable[[str, str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a program in Python on a PATH that has nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(name: str, text: str) -> None:
        (folder / name).write_text(f"#!{sys.executable}\nimport sys\n{text}")
        (folder / name).chmod(0o755)

    return put


@pytest.fixture(autouse=True)
def _laptop(program: Program) -> None:
    """A user with two profiles of minikube, of which one's context was renamed, and a cluster of somebody else."""
    configuration: dict[str, Any] = {
        "clusters": [
            {"name": "minikube", "cluster": {"server": "a", "extensions": MARK}},
            {"name": "dev", "cluster": {"server": "b", "extensions": MARK}},
            {"name": "prod", "cluster": {"server": "c"}},
        ],
        "contexts": [
            {"name": "minikube", "context": {"cluster": "minikube", "user": "u", "extensions": MARK}},
            {"name": "my dev cluster", "context": {"cluster": "dev", "user": "u"}},
            {"name": "prod", "context": {"cluster": "prod", "user": "u"}},
        ],
        "current-context": "my dev cluster",
    }
    program("kubectl", f"assert sys.argv[1:3] == ['config', 'view']\nprint({json.dumps(json.dumps(configuration))})")
    program("minikube", MINIKUBE)


@pytest.fixture
def engine(program: Program) -> None:
    """A docker that has the image."""
    image = [{"Id": "sha256:1", "Config": {"Labels": {}}, "Architecture": "amd64", "Size": 1}]
    program("docker", f"print({json.dumps(json.dumps(image))})")


def test_a_context_may_have_spaces_in_its_name() -> None:
    assert contexts() == (["minikube", "my dev cluster", "prod"], "my dev cluster")


@pytest.mark.parametrize(
    ("context", "profile"), [("minikube", "minikube"), ("my dev cluster", "dev"), ("prod", None), ("nowhere", None)]
)
def test_a_profile_is_known_by_the_mark_that_minikube_leaves_whatever_its_name(
    context: str, profile: str | None
) -> None:
    assert minikube_profile(context) == profile
    assert is_of_laptop(context) is (profile is not None)


def images_of(tmp_path: Path, profile: str) -> list[str]:
    path = tmp_path / "bin" / f"images of {profile}"
    return path.read_text().split() if path.exists() else []


@pytest.mark.usefixtures("engine")
def test_the_image_goes_to_the_profile_in_use_and_not_to_the_active_one(tmp_path: Path) -> None:
    for _ in range(2):  # the second time it is there
        image_delivery.deliver(Kubectl("my dev cluster"), IMAGE, [], load_with=None, steps=SILENT)
    assert images_of(tmp_path, "dev") == [f"docker.io/{IMAGE}"]
    assert images_of(tmp_path, "active") == []


@pytest.mark.usefixtures("engine")
def test_a_load_that_fails_without_a_word_is_told_with_its_profile(tmp_path: Path) -> None:
    (tmp_path / "bin/is broken").touch()
    with pytest.raises(TargetFailed, match=r"profile dev does not have .*minikube docker-env -p dev"):
        image_delivery.deliver(Kubectl("my dev cluster"), IMAGE, [], load_with=None, steps=SILENT)


def test_an_image_that_is_nowhere_and_a_minikube_that_is_missing_are_told(tmp_path: Path) -> None:
    with pytest.raises(TargetFailed, match="Neither the Docker engine nor minikube's profile dev has"):
        image_delivery.deliver(Kubectl("my dev cluster"), IMAGE, [], load_with=None, steps=SILENT)
    (tmp_path / "bin/minikube").unlink()
    with pytest.raises(TargetFailed, match=r"profile dev, and the command minikube, .* is not on PATH"):
        image_delivery.deliver(Kubectl("my dev cluster"), IMAGE, [], load_with=None, steps=SILENT)
    image_delivery.deliver(
        Kubectl("my dev cluster"), "registry.example/ray:1", [], load_with=None, steps=SILENT
    )  # it is pulled


def test_a_docker_socket_that_refuses_this_user_is_told_as_such_by_every_program_that_needs_it(
    program: Program,
) -> None:
    said = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
    program("docker", f"sys.exit({said!r})")
    program("kind", f"sys.exit('ERROR: failed to list clusters: ... {said}')")
    for use in (kind.clusters, kind.check_engine, lambda: kind.cluster_of("kind-raymeter")):
        with pytest.raises(PermissionDenied, match="usermod"):
            use()


KUBECTL_SAYS = """E1129 10:47:22.691740   20150 run.go:72] "command failed" err=<
\taccumulating resources: accumulation err='accumulating resources from 'https://github.com/x': Get "https://github.com/x":\
 no such host': failed to run '/usr/bin/git fetch --depth=1 https://github.com/x v1.6.2': fatal: unable to access\
 'https://github.com/x/': Could not resolve host: github.com
\t: exit status 128
 >
"""


def test_manifests_that_cannot_be_fetched_are_told_with_the_reason(program: Program, tmp_path: Path) -> None:
    program("kubectl", f"sys.exit({KUBECTL_SAYS!r})")
    with pytest.raises(TargetFailed, match=r"failed: fatal: unable to access .* Could not resolve host"):
        kustomize(tmp_path)


def test_the_command_that_failed_is_named_without_context_and_options(program: Program) -> None:
    program("kubectl", "sys.exit('error: no')")
    with pytest.raises(TargetFailed, match=r"^`kubectl delete namespace a` failed: error: no\.$"):
        Kubectl("here").run("delete", "namespace", "a", "--wait=false")
    with pytest.raises(TargetFailed, match=r"^`kubectl get` failed: error: no\.$"):
        Kubectl("here").run("get", "--raw", "/readyz")
