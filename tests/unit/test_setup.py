"""Set-up: when .venv is made anew, where PyTorch comes from, and what is said when it cannot be made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import environment as setup
import pytest
from repository import ROOT

PROJECT = """
[build-system]
requires = ["setuptools>=77"]
[project]
name = "a-project"
version = "1"
dependencies = ["numpy"]
[tool.ruff]
line-length = 120
"""
CPU = "torch==2.13.0+cpu"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the real set-up and nothing that would be installed for long."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "constraints.txt").write_text("# pins\nnumpy==2.4.6\ntorch==2.13.0\n")
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Taskfile.yml", tmp_path)
    return tmp_path


def pretend_made(project: Path) -> Path:
    """A .venv that set-up takes for a whole one, though its Python only notes down that it was called."""
    python = project / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho called >> {project}/called\n")
    python.chmod(0o755)
    inputs = setup.inputs_of(project)
    (project / ".venv/setup.json").write_text(json.dumps(inputs))
    return project / ".venv"


def run_setup(project: Path, command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=project, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False
    )


def everything_in(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


# When


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("pyproject.toml", '"numpy"', '"numpy", "scipy"', ["pyproject.toml"]),
        ("pyproject.toml", "setuptools>=77", "setuptools>=78", ["pyproject.toml"]),
        ("pyproject.toml", "line-length = 120", "line-length = 100", []),
        ("constraints.txt", "2.4.6", "2.4.7", ["constraints.txt"]),
        ("constraints.txt", "# pins", "# other words\n", []),
    ],
)
def test_only_what_is_installed_puts_an_environment_out_of_date(
    project: Path, file: str, old: str, new: str, changed: list[str]
) -> None:
    before = setup.inputs_of(project)
    path = project / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    after = setup.inputs_of(project)
    assert [name for name in after if before[name] != after[name]] == changed


def test_code_of_ours_does_not_put_an_environment_out_of_date(project: Path) -> None:
    before = setup.inputs_of(project)
    (project / "bench").mkdir()
    (project / "bench/new.py").write_text("")
    assert setup.inputs_of(project) == before


def test_another_python_or_folder_puts_it_out_of_date(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = setup.inputs_of(project)
    monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-399")
    moved = project.rename(project.with_name("moved"))
    assert setup.why(before, setup.inputs_of(moved)) == "Python and the folder changed"


def test_an_environment_without_its_last_file_or_its_python_is_not_whole(project: Path) -> None:
    venv = pretend_made(project)
    assert setup.recorded(venv) == setup.inputs_of(project)
    (venv / "bin/python").rename(venv / "bin/gone")
    assert setup.recorded(venv) is None
    (venv / "bin/gone").rename(venv / "bin/python")
    (venv / "setup.json").write_text('{"cut of')
    assert setup.recorded(venv) is None
    assert setup.why(None, setup.inputs_of(project)) == "there is no complete .venv"


@pytest.mark.skipif(not shutil.which("task"), reason="needs the command task: pip install go-task-bin")
def test_with_nothing_to_do_task_setup_says_so_in_one_line_and_calls_no_pip(project: Path) -> None:
    venv = pretend_made(project)
    before = everything_in(venv)
    done = run_setup(project, ["task", "setup"], PYTHON=sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "setup: nothing to do, .venv is up to date\n")
    assert everything_in(venv) == before
    assert not (project / "called").exists()


def test_a_second_setup_waits_for_the_first_and_then_has_nothing_to_do(project: Path) -> None:
    with setup.locked(project):
        second = subprocess.Popen(
            [sys.executable, ".ci/setup.py"], cwd=project, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert second.stderr
        assert second.stderr.readline() == "setup: another set-up is at work here, waiting for it\n"
        pretend_made(project)
    _, said = second.communicate(timeout=60)
    assert said == "setup: nothing left to do, another set-up has just made .venv\n"
    assert second.returncode == 0
    assert not (project / "called").exists()


# Making it


@pytest.mark.slow
def test_a_failed_setup_puts_the_old_environment_back(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    venv = pretend_made(project)
    before = everything_in(venv)
    (project / "constraints.txt").write_text("torch==0.0.1\n")
    nothing = str(tmp_path_factory.mktemp("no-wheels"))
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": nothing}
    done = run_setup(project, [sys.executable, ".ci/setup.py"], **offline)
    assert done.returncode == 1
    said = done.stderr.splitlines()
    assert "as constraints.txt changed" in said[0]
    assert said[-1] == "setup: there is no torch==0.0.1 for this Python and system in the package sources"
    assert everything_in(venv) == before
    assert not (project / ".venv.previous").exists()


def test_the_ruin_of_a_killed_setup_is_removed_and_what_was_set_aside_is_kept(project: Path) -> None:
    venv, previous = project / ".venv", project / ".venv.previous"
    pretend_made(project).rename(previous)
    (venv / "bin").mkdir(parents=True)
    setup.set_aside(venv, previous)
    assert not venv.exists()
    assert setup.recorded(previous) == setup.inputs_of(project)


def test_a_finished_environment_is_set_aside_in_place_of_an_older_one(project: Path) -> None:
    venv, previous = pretend_made(project), project / ".venv.previous"
    previous.mkdir()
    setup.set_aside(venv, previous)
    assert not venv.exists()
    assert setup.recorded(previous) == setup.inputs_of(project)


# Where PyTorch comes from


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (set(), [(CPU, setup.CPU_INDEX), ("torch==2.13.0", None)]),
        ({"find-links"}, [(CPU, None), (CPU, setup.CPU_INDEX), ("torch==2.13.0", None)]),
        ({"extra-index-url"}, [(CPU, None), (CPU, setup.CPU_INDEX), ("torch==2.13.0", None)]),
        ({"index-url"}, [(CPU, None), ("torch==2.13.0", None)]),
        ({"find-links", "no-index"}, [(CPU, None), ("torch==2.13.0", None)]),
    ],
)
def test_pytorch_is_the_cpu_build_and_a_set_source_is_obeyed(
    settings: set[str], wanted: list[tuple[str, str | None]]
) -> None:
    sources = setup.torch_sources("2.13.0", settings, "linux")
    assert [(source.requirement, source.options[-1] if source.options else None) for source in sources] == wanted
    assert [source.is_cuda for source in sources] == [False] * (len(sources) - 1) + [True]


def test_pytorch_is_nothing_special_where_the_usual_build_is_for_the_cpu() -> None:
    assert setup.torch_sources("2.13.0", {"find-links"}, "darwin") == ()


@pytest.mark.parametrize(
    ("listing", "wanted"),
    [
        ("", set()),
        (":env:.find-links='/wheels'\n:env:.default-timeout='180'\nglobal.cert='/a.pem'", {"find-links"}),
        ("user.index-url='https://example.org/simple?a=b'", {"index-url"}),
        ("install.extra-index-url='https://example.org'\nglobal.no-index='1'", {"extra-index-url", "no-index"}),
    ],
)
def test_sources_are_found_in_variables_and_files_of_pip(listing: str, wanted: set[str]) -> None:
    assert setup.configured(listing) == wanted


def test_the_pin_of_pytorch_is_read_from_the_constraints() -> None:
    assert setup.torch_pin("numpy==2\ntorch==2.13.0  # why\n") == "2.13.0"
    with pytest.raises(setup.SetupFailed, match="has no line torch==VERSION"):
        setup.torch_pin("torchvision==1\n")


# What is said


@pytest.mark.parametrize(
    ("complaints", "line"),
    [
        ("OSError: [Errno 28] No space left on device: '/tmp/x'", "the disk is full"),
        (
            "Retrying after connection broken by 'NewConnectionError'\nERROR: No matching distribution",
            "no package index",
        ),
        ("The virtual environment was not created because ensurepip is not available.", "apt install python3-venv"),
        ("ERROR: No matching distribution found for ray==9\n", "there is no ray==9 for this Python and system"),
        ("ERROR: ResolutionImpossible: see the manual\n", "pyproject.toml and constraints.txt contradict each other"),
        ("WARNING: a\nERROR: first\nERROR: the wheel is broken\n", "the wheel is broken. All that was said: a.log"),
        (
            "ERROR: Exception:\nTraceback:\n  File\nValueError: odd pin\n",
            "ValueError: odd pin. All that was said: a.log",
        ),
        ("", "a step failed. All that was said: a.log"),
    ],
)
def test_the_cause_of_a_failed_step_is_one_line(complaints: str, line: str) -> None:
    said = setup.cause(complaints, "a.log")
    assert line in said
    assert "\n" not in said


def test_a_short_disk_is_refused_before_anything_starts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "NEEDED_BYTES", 10**18)
    with pytest.raises(setup.SetupFailed, match=r"GB free, and 1000000000 GB are needed\. Free some"):
        setup.make(project, setup.inputs_of(project), "it is a test")
    assert not (project / ".venv").exists()


def test_a_python_that_is_too_old_is_told_which_one_is_needed(project: Path) -> None:
    script = project / ".ci/setup.py"
    script.write_text(
        script.read_text().replace("OLDEST = (3, 11)", "OLDEST = (9, 0)").replace('"python3', '"no-python3')
    )
    done = run_setup(project, [sys.executable, ".ci/setup.py"])
    assert done.returncode == 1
    assert f"{sys.executable} is Python 3.{sys.version_info[1]}, and raymeter needs 3.11 or newer" in done.stderr
    assert len(done.stderr.splitlines()) == 1
