"""uv.lock holds for every supported machine, and no version is written in two places that could differ."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from packaging import tags
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from repository import ROOT

VERSIONS = dict(
    line.split("=", 1)
    for line in (ROOT / "images/versions.env").read_text().splitlines()
    if line and not line.startswith("#")
)
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
PACKAGES: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = {
    "Linux x86-64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    "Linux arm64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "aarch64"},
    "macOS arm64": {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
}
COMPILED = {"Linux arm64": {"hdrhistogram"}}  # there is no wheel: docs/set-up.md asks for a compiler
REPEATING = sorted(
    file
    for pattern in ("images/**/Dockerfile", "bench/package_data/**/*.y*ml", "bench/**/*.py")
    for file in ROOT.glob(pattern)
)


def locked(name: str) -> list[dict[str, Any]]:
    return [package for package in PACKAGES if package["name"] == name]


def needed(python: str, machine: str) -> list[dict[str, Any]]:
    """The packages that uv installs on a machine, raymeter and its development tools included."""
    environment = {
        **default_environment(),
        **MACHINES[machine],
        "python_version": python,
        "python_full_version": f"{python}.1",
        "extra": "",
    }

    def applies(dependency: dict[str, Any]) -> bool:
        return "marker" not in dependency or Marker(dependency["marker"]).evaluate(environment)

    def chosen(dependency: dict[str, Any]) -> dict[str, Any]:
        (package,) = (
            package
            for package in locked(dependency["name"])
            if package["version"] == dependency.get("version", package["version"])
        )
        return package

    (project,) = locked("raymeter")
    todo = [(project, extra) for extra in ("", "dev")]
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    while todo:
        package, extra = todo.pop()
        if (package["name"], extra) in seen:
            continue
        seen[package["name"], extra] = package
        if package is project and extra:
            dependencies = package["dev-dependencies"][extra]
        else:
            dependencies = (
                package.get("optional-dependencies", {}).get(extra, []) if extra else package.get("dependencies", [])
            )
        for each in filter(applies, dependencies):
            todo += [(chosen(each), wanted) for wanted in ("", *each.get("extra", []))]
    return [package for (name, extra), package in seen.items() if not extra and name != "raymeter"]


def accepted(python: str, machine: str) -> set[tags.Tag]:
    """The wheels that a Python takes, on Linux of 2022 or macOS of 2023."""
    version = tuple(map(int, python.split(".")))
    architecture = MACHINES[machine]["platform_machine"]
    if machine.startswith("macOS"):
        platforms = list(tags.mac_platforms((14, 0), architecture))
    else:
        platforms = [f"manylinux_2_{minor}_{architecture}" for minor in range(35, 4, -1)]
        platforms += [f"{older}_{architecture}" for older in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    return {
        *tags.cpython_tags(version, platforms=platforms),
        *tags.compatible_tags(version, f"cp{python.replace('.', '')}", platforms),
    }


def files(package: dict[str, Any]) -> Iterator[dict[str, str]]:
    yield from package.get("wheels", [])
    if "sdist" in package:
        yield package["sdist"]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("python", PYTHONS)
def test_every_package_has_a_wheel_for_every_supported_python_and_machine(python: str, machine: str) -> None:
    packages = needed(python, machine)
    assert {"ray", "torch", "numpy", "pytest", "uv"} <= {package["name"] for package in packages}
    takes = accepted(python, machine)
    without = {
        package["name"]
        for package in packages
        if not any(
            parse_wheel_filename(wheel["url"].rpartition("/")[2].replace("%2B", "+"))[3] & takes
            for wheel in package["wheels"]
        )
    }
    assert without == COMPILED.get(machine, set())


def test_the_supported_pythons_are_those_of_the_project_and_the_oldest_is_that_of_the_image() -> None:
    supported = SpecifierSet(PROJECT["requires-python"])
    assert [f"3.{minor}" for minor in range(30) if f"3.{minor}" in supported] == list(PYTHONS)
    assert PYTHONS[0] == VERSIONS["PYTHON_VERSION"]
    classifiers = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: Python ::" in each]
    assert classifiers == list(PYTHONS)


def test_every_file_comes_from_a_public_index_and_has_a_hash() -> None:
    sources = {package["source"].get("registry") for package in PACKAGES if package["name"] != "raymeter"}
    assert sources == {"https://pypi.org/simple", PYPROJECT["tool"]["uv"]["index"][0]["url"]}
    for package in PACKAGES:
        for file in files(package):
            assert re.match(r"https://(files\.pythonhosted\.org|download\.pytorch\.org)/", file["url"])
            assert re.fullmatch("sha256:[0-9a-f]{64}", file["hash"])


def test_no_machine_gets_a_build_of_pytorch_for_cuda() -> None:
    assert [package["name"] for package in PACKAGES if re.match("nvidia|triton|cuda", package["name"])] == []
    for machine in MACHINES:
        (torch,) = (package for package in needed("3.11", machine) if package["name"] == "torch")
        assert torch["version"].endswith("+cpu") == machine.startswith("Linux")


def test_tensorflow_has_one_version_on_every_machine() -> None:
    assert {package["version"] for name in ("tensorflow", "tensorflow-cpu") for package in locked(name)} == {
        locked("tensorflow")[0]["version"]
    }


def test_the_locked_uv_builds_the_project() -> None:
    (uv,) = locked("uv")
    (backend,) = map(Requirement, PYPROJECT["build-system"]["requires"])
    assert uv["version"] in backend.specifier
    assert uv["version"] in SpecifierSet(PYPROJECT["tool"]["uv"]["required-version"])


def test_the_project_itself_repeats_no_version() -> None:
    asked = [Requirement(text) for text in (*PROJECT["dependencies"], *PYPROJECT["dependency-groups"]["dev"])]
    assert [str(each) for each in asked if each.specifier] == []


def test_images_and_the_versions_in_their_tags_agree() -> None:
    assert VERSIONS["BASE_IMAGE"].startswith(f"python:{VERSIONS['PYTHON_VERSION']}-")
    assert VERSIONS["KIND_NODE_IMAGE"].endswith(f":{VERSIONS['KUBERNETES_VERSION']}")
    assert VERSIONS["KUBERAY_IMAGE"].endswith(f":{VERSIONS['KUBERAY_VERSION']}")


@pytest.mark.parametrize("key", [key for key in VERSIONS if key.endswith("_IMAGE")])
def test_a_file_that_names_an_image_names_the_pinned_one(key: str) -> None:
    name = VERSIONS[key].rsplit(":", 1)[0]
    found = {
        (str(file.relative_to(ROOT)), tag)
        for file in REPEATING
        for tag in re.findall(rf"(?<![\w/.-]){re.escape(name)}[:@]([\w.-]+)", file.read_text())
    }
    assert {(file, tag) for file, tag in found if f"{name}:{tag}" != VERSIONS[key]} == set()


def test_what_a_citation_names_is_what_the_project_says() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
