"""What the shell offers when a person presses Tab, asked as bash asks it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_up_sessions import a_session_on_disk

from bench import experiments, params
from bench.cli import app

FIRST, SECOND = "20260105-100000-inference-lab-0001", "20260206-100000-inference-lab-0002"


CODE = "import sys; sys.argv[0] = 'bench'; from bench.cli import main; main()"


def asked(words: str) -> dict[str, str]:
    """How bash asks what to offer for the last of `words`."""
    return {"_BENCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


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
def test_names_are_offered_where_they_are_asked_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    expected: list[str],
) -> None:
    for name in (FIRST, SECOND):
        a_session_on_disk(tmp_path / "results", name)
    monkeypatch.chdir(tmp_path)
    for name, value in asked(words).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="0"):
        app(prog_name="bench")
    out, err = capsys.readouterr()
    assert err == ""
    assert out.split() == expected
    assert expected


def test_the_command_itself_offers_names_and_says_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, **asked("bench run inf")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["inference"], "")
