"""Runs from folders with odd names, with a long temporary folder, and on nodes that cannot start workers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from odd_places import ODD_NAME, environment_in
from person import Bench

from bench.targets.local.run_folders import MOST_BYTES

pytestmark = [pytest.mark.ray, pytest.mark.slow]

LOOPBACK = ("--target", "local", "--isolation", "loopback", "--blocks", "1", "--samples", "1")
LEAST = (
    "--set",
    "actors=2",
    "--set",
    "data_path=by-value",
    "--set",
    "batch=1000",
    "--set",
    "inputs=2000",
    "--set",
    "open_loop=off",
)
REFUSING = """
import os
import sys
if any("default_worker" in word for word in sys.orig_argv):
    print("this interpreter has no licence for workers", file=sys.stderr)
    sys.stderr.flush()
    os._exit(3)
"""


@dataclass(frozen=True)
class Elsewhere(Bench):
    """The command line by another executable, with words before it."""

    command: tuple[str, ...] = ()

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.command, "-m", "bench.cli", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@contextmanager
def elsewhere(folder: Path, *command: str, **environment: str) -> Iterator[Elsewhere]:
    own = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), **environment}
    bench = Elsewhere(folder, {**os.environ, **own}, command)
    try:
        yield bench
    finally:
        bench("down")


def test_a_path_that_shells_read_otherwise_and_a_long_temporary_folder_are_worked_round(tmp_path: Path) -> None:
    folder = tmp_path / ODD_NAME
    temporary = folder / ("x" * 110)
    temporary.mkdir(parents=True)
    with elsewhere(folder, str(environment_in(folder)), TMPDIR=str(temporary)) as bench:
        code, out, err = bench("run", "inference", "--topology", "single", *LOOPBACK, *LEAST)
        assert code == 0, err
        (run,) = bench.runs()
        assert run.status == "ok"
        (note,) = [line for line in err.splitlines() if "Ray's files go to" in line]
        assert f"{len(os.fsencode(temporary))} bytes, and Ray's sockets leave room for {MOST_BYTES}" in note

        code, out, err = bench("doctor", "--target", "local")
        assert "Ray's files go to" in out
        assert (folder / ".venv").is_dir()  # what the link in the folder led to


def test_a_cluster_that_cannot_start_workers_ends_the_session_with_the_raylets_words(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(REFUSING)
    with elsewhere(tmp_path, str(environment_in(tmp_path)), PYTHONPATH=str(tmp_path)) as bench:
        code, _, err = bench("run", "inference", "--topology", "single", *LOOPBACK, *LEAST)
        assert code == 4, err
        last = err.strip().splitlines()[-1]
        assert "The cluster cannot start workers: head: worker process" in last
        # Ray's own word for it comes after a minute of waiting, and is not these.
        assert "ended before it had registered: this interpreter has no licence for workers" in last
        (run,) = bench.runs()
        assert run.status == "failed"
        assert "no licence for workers" in run.reasons[0]
