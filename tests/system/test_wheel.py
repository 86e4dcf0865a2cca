"""The built wheel works in an environment of its own, outside any checkout."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import wheels
from repository import ROOT

import bench

Run = Callable[..., subprocess.CompletedProcess[str]]

RESOURCES = """
import hashlib, json
from pathlib import Path
import bench
from bench import package_data
from bench.data import digits
from bench.prometheus import boards, scraping
from bench.reports import as_html
from bench.targets.docker import monitoring

folder = Path(bench.__file__).parent
services = monitoring.services("wheel", ("head", "worker-1"))
opened = {
    "boards": sorted(boards.load()),
    "containers": {each.name: sorted({**each.files, **each.other_files}) for each in services},
    "digits": digits.MNIST_FILE.is_file(),
    "look": as_html.look(),
    "rules": len(scraping.rules()),
}
files = {
    path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in package_data.FOLDER.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}
print(json.dumps({"folder": str(folder), "opened": opened, "files": files}))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and the locked packages that it needs, and none for development."""
    folder = tmp_path_factory.mktemp("wheel")
    variables = {**os.environ, "UV_NO_DEV": "1", "UV_NO_INSTALL_PROJECT": "1", "PYTHON": "python3.11"}
    wheel = wheels.build(folder / "dist")
    path = folder / "environment"
    for command in (
        [ROOT / ".ci/setup", path],
        [wheels.UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", path, wheel],
    ):
        subprocess.run(command, env=variables, check=True, capture_output=True, timeout=900)
    return path


@pytest.fixture
def run(environment: Path, tmp_path: Path) -> Run:
    """Run a program of the environment, in an empty folder and without variables of this environment."""
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "RAY_AUTH_MODE") if name in os.environ} | {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NO_COLOR": "1",
    }

    def run_it(program: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [environment / "bin" / program, *words]
        return subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300, check=False
        )

    return run_it


@pytest.mark.timeout(1200)
def test_the_command_answers_under_both_names(run: Run) -> None:
    for name in ("bench", "raymeter"):
        done = run(name, "--help")
        assert done.returncode == 0, done.stderr
        assert "Measure Ray on one node and on several" in done.stdout
    assert run("bench", "--version").stdout.startswith("raymeter ")


@pytest.mark.timeout(1200)
def test_a_session_is_planned(run: Run) -> None:
    done = run("bench", "plan", "inference", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "raymeter.plan"


@pytest.mark.timeout(1200)
def test_every_file_that_the_code_opens_is_found_in_the_environment(run: Run, environment: Path) -> None:
    done = run("python", "-c", RESOURCES)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert Path(found["folder"]).is_relative_to(environment)
    here = subprocess.run(
        [Path(wheels.UV).with_name("python"), "-c", RESOURCES], capture_output=True, text=True, timeout=120, check=True
    )
    expected = json.loads(here.stdout)
    assert Path(expected["folder"]) == Path(str(bench.__file__)).parent
    assert found["files"] == expected["files"]
    assert found["opened"] == expected["opened"]
    assert len(found["files"]) > 20
