"""The steps of `bench up` on stderr: lines in a log, and on a terminal the step in progress beside them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from bench.terminal.output import Level, set_level
from bench.terminal.steps import StepDisplay, describe_step

UP = """
import time
from bench.terminal.steps import StepDisplay
with StepDisplay() as display:
    with display.steps.step("making the cluster", "cluster made"):
        time.sleep(1.2)
    with display.steps.step("waiting for the nodes", "nodes registered") as report:
        report("2 of 2")
"""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "made 0.0 s"), (9.94, "made 9.9 s"), (9.96, "made 10 s"), (123.4, "made 123 s")]
)
def test_a_step_is_told_with_its_seconds(seconds: float, text: str) -> None:
    assert describe_step("made", seconds) == text


def run_steps() -> None:
    with StepDisplay() as display:
        display.steps.started("making the cluster")
        display.steps.finished("cluster made", 41.2)


def test_without_a_terminal_each_step_that_is_done_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    run_steps()
    assert capsys.readouterr() == ("", "cluster made 41 s\n")


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    set_level(Level.QUIET)
    try:
        run_steps()
    finally:
        set_level(Level.USUAL)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_a_long_step_shows_how_long_it_has_been_going_on() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, "-c", UP], stderr=theirs, env=environment) as process:
        os.close(theirs)
        output = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # its end has closed the terminal
                break
            output += part
        assert process.wait(timeout=30) == 0
    os.close(ours)
    text = output.decode()
    assert "making the cluster" in text
    assert "0:00:01" in text
    assert "cluster made 1.2 s" in text
    assert "nodes registered 2 of 2 0.0 s" in text
