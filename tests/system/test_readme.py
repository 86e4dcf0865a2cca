"""Every command that README and the pages under docs/ show is run: here, by .ci/run, or by other tests of this folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from readme import ROOT, executed

BY_CI = {  # what .ci/run does, since a test cannot run the tests: the line of it that shows so
    "task test": 'step "task test" run_task test',
    "task image": 'step "task image" run_task image',
    "task up TARGET=docker": 'step "task up TARGET=docker" run_task up TARGET=docker',
    "task down TARGET=docker": 'step "task down TARGET=docker" run_task down TARGET=docker',
    "task lint": 'step "task lint" run_task lint',
    "task test:docker": 'step "task test:docker" run_task test:docker',
    "task test:k8s": 'step "task test:k8s" run_task test:k8s',
}
ONE_BLOCK = "task bench -- --blocks 1"
SAME = {  # what is measured once: by Taskfile.yml the same, or six blocks in place of one
    "uvx --from go-task-bin task bench": ONE_BLOCK,
    "task bench": ONE_BLOCK,
    "bench run inference --blocks 1": ONE_BLOCK,
}
BY_TESTS = {  # what a test types in these very words: the line of it that shows so
    "task up TARGET=k8s": ("test_k8s.py", 'task(bench, "up", "TARGET=k8s"'),
    "task down TARGET=k8s": ("test_k8s.py", 'task(bench, "down", "TARGET=k8s"'),
}
BY_OTHERS = {  # what tests under tests/e2e/ do on a Docker engine or a Kubernetes cluster, word for word or nearly so
    "docker": ("TARGET=docker", "--target docker", "bench image", "task image"),
    "k8s": ("TARGET=k8s", "--target k8s", "kubectl", "kind", "bench manifest"),
}
# What takes a registry of the user's own, or installs something from the network or from a folder.
BY_USERS = ("registry.example", "astral.sh", "uv export", "pip download", "pip install", "PIP_NO_INDEX=1")


def is_for_others(command: str) -> bool:
    return any(word in command for words in (BY_USERS, *BY_OTHERS.values()) for word in words)


def test_what_is_left_to_ci_is_in_ci() -> None:
    script = (ROOT / ".ci/run").read_text()
    shown = set(executed())
    assert {"uvx --from go-task-bin task bench", "task test"} <= shown
    for command in BY_CI.keys() & shown:
        assert BY_CI[command] in script, command
    assert "go-task-bin" in script
    for command, (file, words) in BY_TESTS.items():
        assert command in shown
        assert words in (ROOT / "tests" / "e2e" / file).read_text(), command


@pytest.mark.root
@pytest.mark.ray
@pytest.mark.timeout(3600)
def test_the_commands_of_readme_and_pages_do_what_they_say(tmp_path: Path) -> None:
    if not shutil.which("task"):
        pytest.skip("needs the command task, of the package go-task-bin")
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    # As after `. .venv/bin/activate`, which the pages ask for.
    environment["PATH"] = f"{ROOT / '.venv' / 'bin'}:{environment['PATH']}"
    todo = [command for command in executed() if command not in {*BY_CI, *SAME} and not is_for_others(command)]
    assert len(todo) > 30
    assert set(SAME.values()) <= set(todo)
    for command in todo:
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
