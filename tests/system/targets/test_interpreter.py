"""The path of Python that Ray is given: one without characters that a shell reads otherwise."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from odd_places import ODD_NAME, environment_in

from bench.targets.local import interpreter


@pytest.fixture
def run_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("name", ["ray meter", "ray's", 'a "b"', "$HOME", "`ls`", "ü", "two\nlines", ODD_NAME])
def test_an_environment_with_an_odd_path_gets_a_plain_one(tmp_path: Path, run_folder: Path, name: str) -> None:
    executable = environment_in(tmp_path / name)
    interpreter.link(run_folder, str(executable))
    path = interpreter.path(run_folder, str(executable))
    assert path == f"{run_folder}/python/bin/python"
    # As Ray does it: through a shell, without quotes.
    code = "'import sys, ray; print(sys.executable, sys.prefix, ray.__file__, sep=chr(10))'"
    words = subprocess.check_output(["bash", "-c", f"exec {path} -c {code}"], text=True, timeout=60).splitlines()
    assert words[:2] == [path, f"{run_folder}/python"]
    assert words[2].startswith(f"{run_folder}/python/lib/")


@pytest.mark.skipif(
    not all(map(interpreter.is_plain, (sys.executable, *interpreter._ray_folders()))), reason="an odd path"
)
def test_a_plain_path_stays_as_it_is(run_folder: Path) -> None:
    interpreter.link(run_folder)
    assert interpreter.path(run_folder) == sys.executable
    assert not list(run_folder.iterdir())
