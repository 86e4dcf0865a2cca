"""Lines that many processes write into one log do not mix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.experiments.clustering.log import Log

SAYS = """
import sys
from pathlib import Path
from bench.experiments.clustering.log import Log
log = Log(Path(sys.argv[1]), sys.argv[2])
for number in range(2_000):
    log.write(f"line {number} " + "x" * (number % 700))
"""


def test_lines_of_many_processes_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "log"
    children = [subprocess.Popen([sys.executable, "-c", SAYS, str(path), f"w{number}"]) for number in range(4)]
    assert [child.wait(timeout=60) for child in children] == [0] * 4
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    assert len(lines) == 8_000
    assert {tuple(words[2:3]) for words in lines} == {("line",)}
    for who in ("w0", "w3"):
        assert [int(words[3]) for words in lines if words[1] == who] == list(range(2_000))
    assert all(len(words[4]) == int(words[3]) % 700 for words in lines if len(words) > 4)


def test_a_line_is_one_line_however_it_is_said(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", "me")
    log.write("one\ntwo\r\n three" + "x" * 10_000)
    log.close()
    assert (tmp_path / "log").read_text().count("\n") == 1
