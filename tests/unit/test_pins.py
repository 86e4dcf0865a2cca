"""Every version is written in images/versions.env and constraints.txt, and the two agree."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repository import ROOT

VERSIONS = dict(
    line.split("=", 1)
    for line in (ROOT / "images/versions.env").read_text().splitlines()
    if line and not line.startswith("#")
)
PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = {
    "RAY_VERSION": ("ray",),
    "TORCH_VERSION": ("torch",),
    "TENSORFLOW_VERSION": ("tensorflow-cpu", "tensorflow"),
    "NUMPY_VERSION": ("numpy",),
    "PROMETHEUS_CLIENT_VERSION": ("prometheus-client",),
    "TYPER_VERSION": ("typer",),
    "DOCKER_SDK_VERSION": ("docker",),
}
PLATFORMS = [
    {"sys_platform": system, "python_version": version, "python_full_version": f"{version}.0"}
    for system in ("linux", "darwin")
    for version in ("3.11", "3.12", "3.13")
]
REPEATING = sorted(
    file
    for pattern in ("images/**/Dockerfile", "k8s/**/*.y*ml", "grafana/**/*.y*ml", "bench/**/*.py")
    for file in ROOT.glob(pattern)
)


@pytest.mark.parametrize("key", PACKAGES)
def test_a_package_has_one_version_everywhere(key: str) -> None:
    for package in PACKAGES[key]:
        assert [str(pin.specifier) for pin in PINS if pin.name == package] == [f"=={VERSIONS[key]}"]


def test_images_and_the_versions_in_their_tags_agree() -> None:
    assert VERSIONS["BASE_IMAGE"].startswith(f"python:{VERSIONS['PYTHON_VERSION']}-")
    assert VERSIONS["KIND_NODE_IMAGE"].endswith(f":{VERSIONS['KUBERNETES_VERSION']}")
    assert VERSIONS["KUBERAY_IMAGE"].endswith(f":{VERSIONS['KUBERAY_VERSION']}")


def test_every_pin_is_exact_and_there_once() -> None:
    assert [str(pin) for pin in PINS if not re.fullmatch(r"==[^,*+]+", str(pin.specifier))] == []
    names = [canonicalize_name(pin.name) for pin in PINS]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: " ".join(list(platform.values())[:2]))
def test_what_the_project_asks_for_is_pinned(platform: dict[str, str]) -> None:
    environment = {**default_environment(), **platform}
    asked = [Requirement(text) for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"])]
    pinned = {canonicalize_name(pin.name) for pin in PINS if not pin.marker or pin.marker.evaluate(environment)}
    wanted = {canonicalize_name(each.name) for each in asked if not each.marker or each.marker.evaluate(environment)}
    assert wanted - pinned == set()


def test_the_project_itself_repeats_no_version() -> None:
    asked = [Requirement(text) for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"])]
    assert [str(each) for each in asked if each.specifier] == []


def test_the_oldest_python_is_the_pinned_one() -> None:
    assert PROJECT["requires-python"] == f">={VERSIONS['PYTHON_VERSION']}"


@pytest.mark.parametrize("key", [key for key in VERSIONS if key.endswith("_IMAGE")])
def test_a_file_that_names_an_image_names_the_pinned_one(key: str) -> None:
    name = VERSIONS[key].rsplit(":", 1)[0]
    found = {
        (str(file.relative_to(ROOT)), tag)
        for file in REPEATING
        for tag in re.findall(rf"(?<![\w/.-]){re.escape(name)}[:@]([\w.-]+)", file.read_text())
    }
    assert {(file, tag) for file, tag in found if f"{name}:{tag}" != VERSIONS[key]} == set()
