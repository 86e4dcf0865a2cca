"""An option is declared once: what is made of it is there without a further line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import options

CODE = Path(options.__file__).parent
TOY = '    toy: Annotated[int, Option(min=1, max=9, metavar="TOYS", help="Number of toys.")] = 3\n'
BEFORE = "    target: TargetName ="  # a field of RunRequest


@pytest.fixture(scope="module")
def toy_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code, with one option more, that is declared as one field of RunRequest."""
    folder = tmp_path_factory.mktemp("toy")
    for name in ("bench", "images"):
        shutil.copytree(CODE.parent / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    module = folder / "bench" / "options.py"
    before, mark, after = module.read_text().partition(BEFORE)
    module.write_text(f"{before}{TOY}{mark}{after}")
    return folder


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.argv[0] = 'bench'; from bench.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(folder), "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "100"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("command", ["run", "plan"])
def test_an_option_of_one_line_is_in_the_help(toy_checkout: Path, command: str) -> None:
    said = typed(toy_checkout, command, "--help").stdout
    assert [line.split() for line in said.splitlines() if "--toy" in line] == [
        ["--toy", "TOYS", "Number", "of", "toys.", "[default:", "3;", "1<=x<=9]"]
    ]


def test_an_option_of_one_line_is_in_the_schema_of_plan_files(toy_checkout: Path) -> None:
    found = json.loads(typed(toy_checkout, "plan", "--schema").stdout)["properties"]["toy"]
    assert found == {"description": "Number of toys. Unit: TOYS.", "type": "integer", "minimum": 1, "maximum": 9}


def test_an_option_of_one_line_is_written_to_a_plan_read_from_it_and_kept_in_the_session(toy_checkout: Path) -> None:
    given = ("--target", "local", "--cpus", "2", "--toy", "7", "--save", "toy.toml")
    assert typed(toy_checkout, "plan", "inference", *given).returncode == 0
    assert "\ntoy = 7\n" in (toy_checkout / "toy.toml").read_text()
    again = typed(toy_checkout, "plan", "--plan", "toy.toml", "--json")
    assert json.loads(again.stdout)["data"]["session"]["toy"] == 7


def test_an_option_of_one_line_is_checked_in_a_plan_on_its_line(toy_checkout: Path) -> None:
    (toy_checkout / "many.toml").write_text('profile = "tiny"\ntoy = 10\n[experiments.inference]\n')
    said = typed(toy_checkout, "plan", "--plan", "many.toml")
    assert (said.returncode, said.stdout) == (2, "")
    assert "many.toml:2: toy must be an integer from 1 to 9, got 10" in said.stderr


def test_a_command_of_others_has_no_session_option(toy_checkout: Path) -> None:
    for command in ("up", "report", "list"):
        assert "--toy" not in typed(toy_checkout, command, "--help").stdout
