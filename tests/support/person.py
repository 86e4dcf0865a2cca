"""The command line as a person uses it: in a folder of its own, with a deployment of its own."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.model import Run, Session
from bench.prometheus import extract
from bench.record import store

SMALL = (
    "--target",
    "local",
    "--set",
    "actors=2",
    "--set",
    "batch=1000",
    "--set",
    "inputs=5000",
    "--set",
    "data_path=by-value",
    "--set",
    "open_loop_seconds=0.1",
)


@dataclass(frozen=True)
class Bench:
    """The command line in a folder of its own, with a deployment of its own."""

    folder: Path
    environment: dict[str, str] = field(repr=False)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.cli", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, *words: str, minutes: float = 5) -> tuple[int, str, str]:
        return ended(self.start(*words), f"bench {' '.join(words)}", minutes)

    def session(self, name: str = "latest") -> Session:
        return store.load_session(self.session_folder(name))

    def session_folder(self, name: str = "latest") -> Path:
        return store.find(self.folder / "results", name)

    def runs(self, session: str = "latest") -> list[Run]:
        return store.load_runs(self.session_folder(session), self.session(session))

    def metrics_kept(self, run: Run) -> set[str]:
        """The metrics in what a run keeps of Prometheus, which must be what run.json says."""
        path = store.run_folder(self.session_folder(run.spec.session), run.spec) / store.SERIES
        extract.check(path, run)
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        return {line.split()[2] for line in lines if line.startswith("# TYPE")}


def ended(process: subprocess.Popen[str], typed: str, minutes: float) -> tuple[int, str, str]:
    """How a command ended, and what it printed. One that does not end is ended with all that it has started."""
    try:
        out, err = process.communicate(timeout=60 * minutes)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"`{typed}` did not end within {minutes:g} min.\n{out[-1000:]}\n{err[-2000:]}") from None
    return process.returncode, out, err


def nothing_is_left(bench: Bench) -> bool:
    mine = str(bench.folder).encode()
    environs = (path for path in Path("/proc").glob("[0-9]*/environ"))
    marked = [path for path in environs if _holds(path, mine) and int(path.parent.name) != os.getpid()]
    return not marked and not list((bench.folder / "state/raymeter/local").glob("[!.]*"))


def _holds(path: Path, mine: bytes) -> bool:
    try:
        return b"RAYMETER_RECORDS=" + mine in path.read_bytes()
    except OSError:
        return False
