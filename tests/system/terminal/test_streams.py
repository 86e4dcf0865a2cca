"""A session goes on to its end, and keeps its results, whatever becomes of those who read what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_up_sessions import a_session_on_disk
from repository import SUPPORT

from bench.record import store

BENCH = "from bench.cli import main; main()"
SESSION = f"""
import sys, time
sys.path.insert(0, {str(SUPPORT)!r})
from pathlib import Path
from builders import a_topology
from fakes import FakeHead, a_fake_target, good_driver
from bench import cli
from bench.commands import run
from bench.targets import Choice, Options
def driver(spec, folder):
    until = time.monotonic() + 30
    while not Path("gone").exists() and time.monotonic() < until:
        time.sleep(0.02)
    return good_driver(spec, folder)

Path("records").mkdir()
with a_fake_target(FakeHead(Path("records"), driver), a_topology()) as fake:
    run.choose = lambda name, options: Choice(target=fake, options=Options(), reason="it is a fake")
    cli.main()
"""
RUN = ("run", "inference", "--blocks", "2", "--cpus", "1", "--topology", "single", "--set", "batch=1")
READER_LEAVES_STDERR, READER_LEAVES_STDOUT, READERS_LEAVE = ("stderr",), ("stdout",), ("stderr", "stdout")


def started(code: str, words: Sequence[str], folder: Path, **streams: Any) -> subprocess.Popen[str]:
    own = {"XDG_STATE_HOME": str(folder / "state"), "RAYMETER_QUIET_CHECK_SECONDS": "0"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, **own},
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )


@pytest.mark.parametrize("leave", [READER_LEAVES_STDERR, READER_LEAVES_STDOUT, READERS_LEAVE], ids="+".join)
def test_a_session_whose_reader_goes_away_keeps_its_results(tmp_path: Path, leave: Sequence[str]) -> None:
    process = started(SESSION, RUN, tmp_path)
    with process:
        assert process.stderr is not None
        heard = process.stderr.readline()  # as `head -1` does, and then goes away
        assert heard.startswith("Target local")
        for name in leave:
            getattr(process, name).close()
        (tmp_path / "gone").touch()
        rest = {name: getattr(process, name).read() for name in {"stdout", "stderr"}.difference(leave)}
        assert process.wait(timeout=60) == 0, rest
    (folder,) = store.session_folders(tmp_path / "results")
    assert [run.status for run in store.load_runs(folder, store.load_session(folder))] == ["ok"] * 4
    assert "raymeter report" in (folder / "report.txt").read_text()
    assert "Traceback" not in "".join(rest.values())
    assert "BrokenPipe" not in "".join(rest.values())


def test_a_session_without_any_standard_streams_keeps_its_results(tmp_path: Path) -> None:
    (tmp_path / "gone").touch()
    words = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", SESSION, *RUN]
    own = {"XDG_STATE_HOME": str(tmp_path / "state"), "RAYMETER_QUIET_CHECK_SECONDS": "0"}
    assert subprocess.run(words, cwd=tmp_path, env={**os.environ, **own}, timeout=60, check=False).returncode == 0
    (folder,) = store.session_folders(tmp_path / "results")
    assert [run.status for run in store.load_runs(folder, store.load_session(folder))] == ["ok"] * 4


def test_a_terminal_that_is_closed_costs_no_session(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    with started(
        f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN){SESSION}", RUN, tmp_path, stderr=theirs
    ) as process:
        os.close(theirs)
        until = time.monotonic() + 30
        while b"Target local" not in os.read(ours, 10_000):
            assert time.monotonic() < until
        os.close(ours)
        (tmp_path / "gone").touch()
        assert process.stdout is not None
        assert "raymeter report" in process.stdout.read()
        assert process.wait(timeout=60) == 0


def test_an_answer_that_is_read_in_part_is_no_failure_and_one_for_which_there_is_no_room_is(tmp_path: Path) -> None:
    a_session_on_disk(tmp_path / "results", blocks=6)
    with started(BENCH, ["report", "--format", "json"], tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=60)) == ("", 0)
    with Path("/dev/full").open("w") as full, started(BENCH, ["report"], tmp_path, stdout=full) as process:
        assert process.stderr is not None
        assert "No space left on device" in process.stderr.read()
        assert process.wait(timeout=60) == 10
    with Path("/dev/full").open("w") as full, started(BENCH, ["report", "none"], tmp_path, stderr=full) as process:
        assert process.wait(timeout=60) == 2
