"""What the user reads while a session goes on: how far long work is, and what the blocks so far say."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from made_up import made_up

from bench import analysis
from bench.analysis import Report
from bench.model import RunResult
from bench.planning.plan import NOTHING_KNOWN
from bench.terminal import output
from bench.terminal.output import Level
from bench.terminal.progress import TELL_SECONDS, Progress, WorkInHand

OK = RunResult(status="ok", lines=0, sha256="")


def test_the_rate_is_that_of_the_work_in_hand_and_gives_what_is_left() -> None:
    work = WorkInHand()
    work.came((0.0, 1_000.0), now=50.0)
    assert work.words == "0 of 1,000"
    work.came((200.0, 1_000.0), now=60.0)
    assert work.words == "200 of 1,000, 20/s, 40 s left"


def test_other_work_begins_anew() -> None:
    work = WorkInHand()
    work.came((900.0, 1_000.0), now=0.0)
    work.came((1_000.0, 1_000.0), now=10.0)
    work.came((5.0, 1_000.0), now=11.0)
    assert work.words == "5 of 1,000"
    work.came((25.0, 1_000.0), now=13.0)
    assert work.words == "25 of 1,000, 10/s, 2 min left"


def test_short_rounds_of_which_the_end_alone_is_heard_have_no_rate() -> None:
    work = WorkInHand()
    work.came((40.0, 48.0), now=0.0)
    work.came((48.0, 48.0), now=1.0)
    assert work.words.startswith("48 of 48, 8/s")
    work.came((48.0, 48.0), now=31.0)  # the next round, in 0.5 s, after arms that do not say how far they are
    assert work.words == "48 of 48"


def test_a_plain_log_is_told_now_and_then() -> None:
    work = WorkInHand()
    assert work.due(TELL_SECONDS) == ""
    work.came((1.0, 2.0), now=TELL_SECONDS)
    assert work.due(TELL_SECONDS) == "1 of 2"
    assert work.due(TELL_SECONDS + 1) == ""
    assert work.due(2 * TELL_SECONDS) == "1 of 2"


class Blocks:
    """A session of two cells and three blocks, shown block by block as its runs end."""

    def __init__(self) -> None:
        self.session, self.runs = made_up(cells=2, blocks=3)
        self.asked = 0
        self.progress = Progress(todo=self.session.specs, known=NOTHING_KNOWN, so_far=self.so_far)
        self.ended = 0

    def so_far(self) -> Report:
        self.asked += 1
        return analysis.build(self.session, self.runs[: self.ended])

    def end(self, block: int) -> None:
        for spec in self.session.specs:
            if spec.block == block:
                self.progress.run_ended(spec, OK)
                self.ended += 1
        self.progress.block_ended(block)


@pytest.fixture
def _level() -> Iterator[None]:
    yield
    output.set_level(Level.USUAL)


def test_a_pipe_gets_the_first_values_then_a_line_a_block_and_the_report_follows_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks = Blocks()
    with blocks.progress:
        seen = []
        for block in (1, 2, 3):
            blocks.end(block)
            seen.append([line for line in capsys.readouterr().err.splitlines() if "ok (" not in line])
    first, second, third = seen
    assert first[0].startswith("block 1 of 3 done, about ")
    assert [line.partition(": throughput")[0] for line in first[1:]] == ["  batch=1", "  batch=10"]
    assert all("k inputs/s" in line and "multi/single 0.8" in line for line in first[1:])
    (line,) = second
    assert line.startswith("block 2 of 3 done, about ")
    assert line.count("multi/single 0.8") == line.count("]~") == 2
    assert third == []


@pytest.mark.usefixtures("_level")
def test_quiet_shows_no_values_and_analyses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    output.set_level(Level.QUIET)
    blocks = Blocks()
    with blocks.progress:
        blocks.end(1)
    assert (blocks.asked, capsys.readouterr().err) == (0, "")


def test_a_terminal_has_the_values_above_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    blocks = Blocks()
    with blocks.progress as shown:
        shown._bar.console.file = page = io.StringIO()
        blocks.end(1)
        blocks.end(2)
    lines = page.getvalue().splitlines()
    assert any("batch=10: throughput single" in line for line in lines)
    assert any("block 2 of 3 done" in line for line in lines)
