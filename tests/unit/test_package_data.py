"""What raymeter opens beside its code is a file of the package, and every file of the package is in the wheel."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import wheels
from repository import ROOT

from bench import package_data
from bench.prometheus import boards, scraping

PACKAGE = ROOT / "bench"
WITHOUT_A_CHECKOUT = {  # these ask for the folder around the package, and can do without it
    "capsules/packing.py": "a capsule made elsewhere has no lock files",
    "identity.py": "elsewhere there is no revision",
    "targets/image.py": "an image is built from a checkout",
}


def files() -> set[str]:
    """Every file of the package, by its path."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_every_file_of_the_package_and_both_names_of_the_command(tmp_path: Path) -> None:
    with zipfile.ZipFile(wheels.build(tmp_path)) as wheel:
        packed = {name for name in wheel.namelist() if not name.endswith("/")}
        (entry_points,) = (name for name in packed if name.endswith("/entry_points.txt"))
        commands = wheel.read(entry_points).decode()
        for name in files():
            assert wheel.read(name) == (ROOT / name).read_bytes(), name
    assert {name for name in packed if not name.split("/")[0].endswith(".dist-info")} == files()
    assert re.findall(r"^(\w+) = bench\.cli:main$", commands, re.MULTILINE) == ["bench", "raymeter"]


def test_manifests_dashboards_and_configuration_are_files_of_the_package() -> None:
    for folder in (package_data.K8S, package_data.GRAFANA, boards.FOLDER, scraping.MONITORING):
        assert folder.is_dir()
        assert folder.is_relative_to(PACKAGE)


def test_they_are_in_the_top_folder_of_a_checkout_too() -> None:
    assert (ROOT / "k8s").resolve() == package_data.K8S
    assert (ROOT / "grafana").resolve() == package_data.GRAFANA


def test_no_module_looks_for_files_around_the_package() -> None:
    leads_out = re.compile(r"__file__\)(?:\.resolve\(\))?\.(?:parents\[|parent\.parent)|SOURCE\.parent")
    found = {
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if leads_out.search(path.read_text())
    }
    assert found == set(WITHOUT_A_CHECKOUT)
