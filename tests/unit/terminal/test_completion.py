"""What the shell offers when a person presses Tab, asked as bash asks it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_up_sessions import a_session_on_disk

from bench import experiments, params

FIRST, SECOND = "20260105-100000-inference-lab-0001", "20260206-100000-inference-lab-0002"


def offered(folder: Path, words: str) -> list[str]:
    """What bash is told to offer for the last of `words`."""
    environment = {"_BENCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    code = "import sys; sys.argv[0] = 'bench'; from bench.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


PROFILES = list(dict.fromkeys(each for name in experiments.NAMES for each in experiments.load(name).profiles))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("bench run inf", ["inference"]),
        ("bench plan inference tune", [name for name in experiments.NAMES if name.startswith("tune")]),
        ("bench run --profile ", PROFILES),
        ("bench run inference --profile t", ["tiny"]),
        ("bench run --topology ", ["both", "single", "multi"]),
        ("bench up --target ", ["auto", "local", "docker", "k8s"]),
        ("bench run --isolation n", ["namespace"]),
        (
            "bench run inference --set ba",
            [f"{name}=" for name in params.declared(experiments.load("inference").params) if name.startswith("ba")],
        ),
        ("bench report ", ["latest", SECOND, FIRST]),
        ("bench show 20260105", [FIRST]),
        ("bench rm 202", [SECOND, FIRST]),
        ("bench report --out elsewhere ", ["latest"]),
    ],
)
def test_names_are_offered_where_they_are_asked_for(tmp_path: Path, words: str, expected: list[str]) -> None:
    for name in (FIRST, SECOND):
        a_session_on_disk(tmp_path / "results", name)
    assert offered(tmp_path, words) == expected
    assert expected
