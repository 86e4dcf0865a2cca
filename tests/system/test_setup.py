"""Set-up: when .venv is made anew, from what, and what is left where it cannot be made."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from repository import ROOT

UV = Path(sys.prefix) / "bin/uv"
PROJECT = """
[build-system]
requires = ["uv_build>=0.9,<0.14"]
build-backend = "uv_build"
[project]
name = "raymeter"
version = "1"
requires-python = ">=3.11,<3.14"
dependencies = [{dependencies}]
[project.scripts]
bench = "bench:main"
[tool.uv.build-backend]
module-name = "bench"
module-root = ""
"""
LOCK = """
version = 1
requires-python = ">=3.11, <3.14"

[[package]]
name = "raymeter"
version = "1"
source = {{ editable = "." }}
dependencies = [{names}]

[package.metadata]
requires-dist = [{names}]
"""
LOCKED = """
[[package]]
name = "{name}"
version = "{version}"
source = {{ registry = "https://example.invalid/simple" }}
wheels = [{{ url = "https://example.invalid/{file}", hash = "sha256:{digest}" }}]
"""

Setup = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the real set-up and no dependencies, in a folder with a space in its name."""
    folder = tmp_path / "a project"
    (folder / "bench").mkdir(parents=True)
    (folder / "bench/__init__.py").write_text("def main(): print('it runs')\n")
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/setup", folder / ".ci")
    shutil.copy(ROOT / "Taskfile.yml", folder)
    depend(folder, {})
    return folder


def depend(project: Path, wheels: dict[str, tuple[str, str]]) -> None:
    """Let the project depend on packages: version, and hash in the lock, by name."""
    names = ", ".join(f'{{ name = "{name}" }}' for name in wheels)
    (project / "pyproject.toml").write_text(PROJECT.format(dependencies=", ".join(f'"{name}"' for name in wheels)))
    (project / "uv.lock").write_text(
        LOCK.format(names=names)
        + "".join(
            LOCKED.format(name=name, version=version, digest=digest, file=wheel_name(name, version).replace("+", "%2B"))
            for name, (version, digest) in wheels.items()
        )
    )


def wheel_name(name: str, version: str) -> str:
    return f"{name}-{version}-py3-none-any.whl"


def make_wheel(folder: Path, name: str, version: str) -> str:
    """Write a package with one module into `folder`; its SHA-256."""
    information = f"{name}-{version}.dist-info"
    path = folder / wheel_name(name, version)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", f"version = '{version}'\n")
        wheel.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has uv, and nothing set for it or for pip."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON", "COLUMNS"))
    }
    path = os.pathsep.join([str(UV.parent), kept["PATH"]])
    return {
        **kept,
        "PATH": path,
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "UV_OFFLINE": "1",
        "UV_PYTHON": sys.executable,
    }


@pytest.fixture
def setup(project: Path, variables: dict[str, str]) -> Setup:
    """Runs `.ci/setup`, or another command, in the project."""

    def run(*command: str, cwd: Path = project, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command or (".ci/setup",),
            cwd=cwd,
            env={**variables, **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def bench(project: Path) -> str:
    return subprocess.check_output([project / ".venv/bin/bench"], text=True).strip()


def version_of(project: Path, name: str) -> str:
    python = project / ".venv/bin/python"
    return subprocess.check_output([python, "-c", f"import {name}; print({name}.version)"], text=True).strip()


def everything_in(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in path.parts}


def remains(project: Path) -> list[str]:
    return [path.name for path in project.iterdir() if path.name.startswith((".venv.", ".uv"))]


# When


@pytest.fixture
def made(project: Path, setup: Setup) -> int:
    """The environment that `task setup` has made, as the number of its folder."""
    if not shutil.which("task"):
        pytest.skip("needs the command task, of the package go-task-bin")
    done = setup("task", "setup")
    assert (done.returncode, bench(project)) == (0, "it runs"), done.stderr
    return (project / ".venv").stat().st_ino


def test_with_nothing_to_do_task_setup_says_and_does_nothing(project: Path, setup: Setup, made: int) -> None:
    before = everything_in(project / ".venv")
    (project / "bench/more.py").write_text("")
    for python in ("", sys.executable):
        done = setup("task", "setup", PYTHON=python)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert everything_in(project / ".venv") == before


@pytest.mark.parametrize("file", ["uv.lock", "pyproject.toml", ".ci/setup"])
def test_what_the_environment_is_made_from_puts_it_out_of_date(
    project: Path, setup: Setup, made: int, file: str
) -> None:
    with (project / file).open("a") as content:
        content.write("\n# changed\n")
    assert setup("task", "setup").returncode == 0
    assert (project / ".venv").stat().st_ino != made


def test_an_environment_without_its_python_is_made_anew(project: Path, setup: Setup, made: int) -> None:
    shutil.rmtree(project / ".venv/bin")
    assert setup("task", "setup").returncode == 0
    assert bench(project) == "it runs"


def test_a_project_that_was_moved_runs_its_own_code(project: Path, setup: Setup, made: int) -> None:
    moved = project.rename(project.with_name("moved"))
    (moved / "bench/__init__.py").write_text("def main(): print('moved')\n")
    assert setup("task", "setup", cwd=moved).returncode == 0
    assert bench(moved) == "moved"


def test_another_python_puts_it_out_of_date(project: Path, setup: Setup, made: int, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f"#!/bin/sh\ncase $2 in *version_info*) echo 3.99;; *) exec '{sys.executable}' \"$@\";; esac\n")
    other.chmod(0o755)
    assert setup("task", f"PYTHON={other}", "setup").returncode == 0
    assert (project / ".venv").stat().st_ino != made


# What is left where it cannot be made


def test_a_python_out_of_range_is_refused_in_one_line_and_the_old_environment_stays(
    project: Path, setup: Setup
) -> None:
    assert setup().returncode == 0
    before = everything_in(project / ".venv")
    for file in ("pyproject.toml", "uv.lock"):
        path = project / file
        path.write_text(path.read_text().replace("3.11", "3.8").replace("3.14", "3.9"))
    done = setup()
    assert done.returncode != 0
    refusal, state = done.stderr.splitlines()
    assert "incompatible with the project's Python requirement: `==3.8.*`" in refusal
    assert state == "setup: failed; .venv is as it was"
    assert everything_in(project / ".venv") == before
    assert remains(project) == []


def test_a_failed_setup_leaves_the_old_environment(project: Path, setup: Setup) -> None:
    assert setup().returncode == 0
    before = everything_in(project / ".venv")
    depend(project, {"nowhere": ("1", "0" * 64)})
    done = setup()
    assert done.returncode != 0
    assert "nowhere" in done.stderr
    assert done.stderr.splitlines()[-2:] == [
        "setup: a package could not be installed. For a mirror, a proxy or a folder of wheels see docs/set-up.md",
        "setup: failed; .venv is as it was",
    ]
    assert everything_in(project / ".venv") == before
    assert remains(project) == []


@pytest.fixture
def slow_uv(project: Path, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a set-up that is busy with its last step, installing packages."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "uv").write_text(
        f"#!/bin/sh\n[ \"$*\" = sync ] || exec '{UV}' \"$@\"\n'{UV}' sync && touch busy && sleep 60\n"
    )
    (folder / "uv").chmod(0o755)
    started: list[subprocess.Popen[str]] = []

    def start(variables: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [".ci/setup"],
            cwd=project,
            env={**variables, "PATH": f"{folder}{os.pathsep}{variables['PATH']}"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        deadline = time.monotonic() + 60
        while not (project / "busy").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        return process

    yield start
    for process in started:
        process.wait(timeout=60)


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_ended_setup_leaves_the_old_environment_and_the_next_one_removes_its_remains(
    project: Path,
    setup: Setup,
    variables: dict[str, str],
    slow_uv: Callable[..., subprocess.Popen[str]],
    signal_sent: int,
) -> None:
    assert setup().returncode == 0
    before = everything_in(project / ".venv")
    process = slow_uv(variables)
    os.killpg(process.pid, signal_sent)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert everything_in(project / ".venv") == before
    assert bool(remains(project)) == (signal_sent == signal.SIGKILL)
    assert setup().returncode == 0
    assert bench(project) == "it runs"
    assert remains(project) == []


def test_two_setups_at_once_leave_a_whole_environment(
    project: Path, setup: Setup, variables: dict[str, str], slow_uv: Callable[..., subprocess.Popen[str]]
) -> None:
    first = slow_uv(variables)
    assert setup().returncode == 0
    assert bench(project) == "it runs"
    os.killpg(first.pid, signal.SIGTERM)
    first.communicate(timeout=60)
    assert bench(project) == "it runs"
    assert remains(project) == []


# Where uv comes from


@pytest.fixture
def without_uv(variables: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """PATH with the few commands that set-up uses, and no uv."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for command in ("cp", "dirname", "mkdir", "mv", "rm", "sed", "tail"):
        (folder / command).symlink_to(shutil.which(command) or "")
    del variables["UV_PYTHON"]
    return {**variables, "PATH": str(folder)}


def a_python(path: Path, pip: str) -> str:
    """A Python whose pip is a shell command."""
    path.write_text(f'#!/bin/sh\nif [ "$2" = pip ]; then\n{pip}\nelse exec \'{sys.executable}\' "$@"; fi\n')
    path.chmod(0o755)
    return str(path)


def test_a_missing_uv_is_fetched_by_pip_once_in_the_version_of_the_lock(
    project: Path, setup: Setup, without_uv: dict[str, str], tmp_path: Path
) -> None:
    with (project / "uv.lock").open("a") as lock:
        lock.write(
            '\n[[package]]\nname = "uv"\nversion = "0.99"\nsource = { registry = "https://example.invalid/simple" }\n'
        )
    pip = f'echo "$@" >> calls; for target in "$@"; do shift; [ "$target" != --target ] || break; done; mkdir -p "$1/bin"; cp \'{UV}\' "$1/bin/uv"'
    python = a_python(tmp_path / "python3", pip)
    for _ in range(2):
        done = setup(**without_uv, PYTHON=python)
        assert done.returncode == 0, done.stderr
        assert bench(project) == "it runs"
    (call,) = (project / "calls").read_text().splitlines()
    assert call.endswith(" uv==0.99")
    assert [path.name for path in (project / ".uv").iterdir()] == ["0.99"]


def test_where_pip_fetches_no_uv_the_last_line_says_how_to_install_it(
    project: Path, setup: Setup, without_uv: dict[str, str], tmp_path: Path
) -> None:
    done = setup(**without_uv, PYTHON=a_python(tmp_path / "python3", "exit 1"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "setup: pip could not download uv. Install uv, then try again: curl -LsSf https://astral.sh/uv/install.sh | sh"
    )


# Where packages come from


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


def test_pytorch_comes_from_a_folder_of_wheels_even_if_it_was_built_again(
    project: Path, setup: Setup, wheels: Path
) -> None:
    make_wheel(wheels, "torch", "2.0+cpu")
    depend(project, {"torch": ("2.0+cpu", "0" * 64)})
    done = setup(PIP_FIND_LINKS=str(wheels))
    assert done.returncode == 0, done.stderr
    assert version_of(project, "torch") == "2.0+cpu"


def test_without_any_index_all_packages_come_from_the_folder(project: Path, setup: Setup, wheels: Path) -> None:
    make_wheel(wheels, "torch", "2.0+cpu")
    digest = make_wheel(wheels, "other", "1.5")
    make_wheel(wheels, "other", "1.6")
    depend(project, {"torch": ("2.0+cpu", "0" * 64), "other": ("1.5", digest)})
    done = setup(PIP_FIND_LINKS=str(wheels), PIP_NO_INDEX="1")
    assert done.returncode == 0, done.stderr
    assert (version_of(project, "torch"), version_of(project, "other")) == ("2.0+cpu", "1.5")


@pytest.mark.parametrize("may_keep_bytecode", [True, False])
def test_packages_are_compiled_where_python_will_not_keep_what_it_compiles(
    project: Path, setup: Setup, wheels: Path, may_keep_bytecode: bool
) -> None:
    make_wheel(wheels, "torch", "2.0+cpu")
    depend(project, {"torch": ("2.0+cpu", "0" * 64)})
    done = setup(PIP_FIND_LINKS=str(wheels), PYTHONDONTWRITEBYTECODE="" if may_keep_bytecode else "1")
    assert done.returncode == 0, done.stderr
    assert bool(list((project / ".venv").rglob("torch.*.pyc"))) is not may_keep_bytecode


def test_a_wheel_of_the_folder_with_another_hash_than_the_lock_has_is_refused(
    project: Path, setup: Setup, wheels: Path
) -> None:
    make_wheel(wheels, "torch", "2.0+cpu")
    make_wheel(wheels, "other", "1.5")
    depend(project, {"torch": ("2.0+cpu", "0" * 64), "other": ("1.5", "0" * 64)})
    done = setup(PIP_FIND_LINKS=str(wheels), PIP_NO_INDEX="1")
    assert done.returncode != 0
    assert "Hash mismatch for `other==1.5`" in done.stderr
    assert not (project / ".venv").exists()


def test_a_folder_without_pytorch_is_named_and_the_address_in_the_lock_is_next(
    project: Path, setup: Setup, wheels: Path
) -> None:
    depend(project, {"torch": ("2.0+cpu", "0" * 64)})
    done = setup(PIP_FIND_LINKS=str(wheels))
    assert done.returncode != 0
    assert "setup: no torch==2.0+cpu in the sources set for pip, trying its address in uv.lock" in done.stderr
    assert "https://example.invalid/torch-2.0%2Bcpu-py3-none-any.whl" in done.stderr
