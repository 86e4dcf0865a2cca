"""The command line as a person uses it: in a folder of its own, with an appliance of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench import store
from bench.model import Run, Session

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
)
MINUTES = 60.0


@dataclass(frozen=True)
class Bench:
    """The command line in a folder of its own, with an appliance of its own."""

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

    def __call__(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=5 * MINUTES)
        return process.returncode, out, err

    def session(self) -> Session:
        return store.load_session(self.session_folder())

    def session_folder(self) -> Path:
        return store.find(self.folder / "results", "latest")

    def runs(self) -> list[Run]:
        return store.load_runs(self.session_folder(), self.session())
