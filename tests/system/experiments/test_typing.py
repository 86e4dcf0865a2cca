"""Ordinary Ray code in an experiment passes mypy --strict, and real mistakes beside it do not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from repository import ROOT

ACTOR = """
@ray.remote
class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    def add(self, amount: int) -> int:
        self.count += amount
        return self.count


@ray.remote
def double(number: int) -> int:
    return 2 * number


@ray.remote(num_cpus=1)
class Half(Counter):
    def halve(self) -> float:
        return self.count / 2


def total() -> int:
    counter, half = Counter.remote(1), Half.options(num_cpus=0).remote(2)
    numbers: list[int] = ray.get([double.remote(2), double.options(num_cpus=2).remote(3), counter.add.remote(4)])
    halved: float = ray.get(half.halve.remote())
    return sum(numbers) + round(halved)
"""
WRONG = "    def halve(self) -> float:\n        return self.cuont / 2\n"


def type_check(folder: Path, **modules: str) -> str:
    """What mypy prints of these modules, with the settings of this project."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")),
            *(str(folder / f"{name}.py") for name in modules),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return done.stdout


def example(page: str) -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    return str(code)


def test_the_examples_of_the_documentation_and_actors_pass_and_a_wrong_attribute_does_not(tmp_path: Path) -> None:
    wrong = ACTOR.replace(ACTOR[ACTOR.index("    def halve") : ACTOR.index("\n\ndef total")], WRONG)
    found = type_check(
        tmp_path,
        extending=example("docs/extending.md"),
        contributing=example("CONTRIBUTING.md"),
        actors=f"import ray\n{ACTOR}",
        wrong=f"import ray\n{wrong}",
    )
    errors = [line for line in found.splitlines() if "error:" in line]
    assert errors, found
    assert {Path(line.partition(":")[0]).name for line in errors} == {"wrong.py"}, found
    assert '"Half" has no attribute "cuont"' in found
