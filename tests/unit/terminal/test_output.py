"""How much a command says beside its answer, in which colours, and what it offers where a name is wrong."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Typed, typist
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.options import RunRequest
from bench.planning import plan
from bench.planning.plan import NOTHING_KNOWN
from bench.terminal import output
from bench.terminal.output import Level
from bench.terminal.progress import Progress

FIRST = "20260105-100000-inference-lab-0001"
COLOUR = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|38|9[0-7])[;m]")


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Typed]:
    """Type a command in a folder that has a session; get its exit code, stdout and stderr."""
    a_session_on_disk(tmp_path / "results", FIRST)

    yield typist(capsys, monkeypatch, tmp_path)
    output.set_level(Level.USUAL)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["run", "inferense"], "inference"),
        (["run", "inference", "--profile", "tinny"], "tiny"),
        (["run", "inference", "--set", "btach=1"], "batch"),
        (["run", "inference", "--topology", "mulit"], "multi"),
        (["run", "inference", "--target", "dokcer"], "docker"),
        (["run", "inference", "--isolation", "lopback"], "loopback"),
        (["history", "throughput_input_per_second"], "throughput_inputs_per_second"),
        (["report", FIRST, "--format", "markdwn"], "markdown"),
        (["report", "20260105-10000-inf"], FIRST),
        (["report", "latset"], "latest"),
        (["show", FIRST, "b01-sngle-inference-c01"], "b01-single-inference-c01"),
        (["compare", FIRST, FIRST, "--format", "jsn"], "json"),
        (["compare", FIRST, FIRST, "--fail-on", "slowr"], "slower"),
        (["baseline", "rm", "mian"], "main"),
        (["list", "sesions"], "sessions"),
        (["list", "sessions", "--status", "faild"], "failed"),
        (["data", "seed", "mnsit", "."], "mnist"),
    ],
)
def test_a_name_that_is_almost_right_is_answered_with_the_right_one(bench: Typed, words: list[str], meant: str) -> None:
    bench("baseline", "set", "main", FIRST)
    code, out, err = bench("-q", *words)
    assert (code, out) == (2, "")
    assert f"Did you mean {meant}? " in err
    assert err.count("\n") == 1


def test_a_name_like_no_other_gets_all_that_there_are(bench: Typed) -> None:
    _, _, err = bench("run", "xyzzy")
    assert "Did you mean" not in err
    assert "Choose from: inference" in err


def test_quiet_leaves_the_answer_and_what_went_wrong(bench: Typed) -> None:
    plan = ("plan", "inference", "--cpus", "2", "--target", "local", "--blocks", "1", "--save", "plan.toml", "--json")
    assert "Run it with: bench run --plan plan.toml" in bench(*plan)[2]
    code, out, err = bench("--quiet", *plan)
    assert (code, err) == (0, "")
    assert json.loads(out)["schema"] == "raymeter.plan"
    assert "Unknown experiment inferense" in bench("-q", "run", "inferense")[2]
    assert bench("-q", "-v", "list")[0] == 2


@pytest.fixture
def progress() -> Iterator[Callable[[], Progress]]:
    session = plan.make(RunRequest(experiments=("inference",), cpus=2, blocks=1))
    yield lambda: Progress(todo=session.specs, known=NOTHING_KNOWN, so_far=lambda: analysis.build(session, []))
    output.set_level(Level.USUAL)


@pytest.mark.parametrize(("level", "lines"), [(Level.QUIET, 0), (Level.USUAL, 1), (Level.VERBOSE, 2)])
def test_verbose_says_what_each_run_is_about_to_do(
    progress: Callable[[], Progress], capsys: pytest.CaptureFixture[str], level: Level, lines: int
) -> None:
    output.set_level(level)
    with progress() as listener:
        spec = listener._todo[0]
        listener.cluster_wanted(spec.topology, 1)
        listener.run_begun(spec)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == lines
    if level == Level.VERBOSE:
        assert all(f"{name}={value}" in told[1] for name, value in spec.params.items())


def test_steps_of_the_first_cluster_are_told_and_later_the_slow_ones_alone(
    progress: Callable[[], Progress], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress() as listener:
        for ended in (0, 1):
            listener._ended = ended
            listener.cluster_step_started("loading the image")
            listener.cluster_step_finished("image loaded", 63.0)
            listener.cluster_step_finished("nodes registered 2 of 2", 9.0)
    told = capsys.readouterr().err.splitlines()
    assert told == ["image loaded 63 s", "nodes registered 2 of 2 9.0 s", "image loaded 63 s"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_color_takes_the_colours_of_the_bar_away_and_quiet_the_bar(
    progress: Callable[[], Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def shown() -> str:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress() as listener:
            listener.run_begun(listener._todo[0])
        return terminal.getvalue()

    assert COLOUR.search(shown())
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown()
    assert not COLOUR.search(shown())
    output.set_level(Level.QUIET)
    assert shown() == ""


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("200", 100), ("20", 60), ("", 100)])
def test_a_report_is_as_wide_as_the_terminal_from_60_to_100_columns(bench, monkeypatch, columns, width) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output.page_layout() == {"width": width, "colour": False}
    assert max(map(len, bench("report", FIRST)[1].splitlines())) <= width


@pytest.mark.parametrize(
    ("setting", "value", "colour"), [("TERM", "xterm", True), ("TERM", "dumb", False), ("NO_COLOR", "1", False)]
)
def test_a_report_has_colours_on_a_terminal_alone(monkeypatch, setting, value, colour) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(setting, value)
    assert not output.page_layout()["colour"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert output.page_layout()["colour"] is colour
