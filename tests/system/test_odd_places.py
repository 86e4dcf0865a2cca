"""Runs from folders with odd names, with a long temporary folder, on nodes that cannot start workers, and without root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from odd_places import ODD_NAME, as_nobody, environment_in
from person import Bench
from repository import ROOT

from bench import experiments
from bench.targets.local.run_folders import MOST_BYTES

pytestmark = pytest.mark.ray

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
# Beside those of docs/ci-plan.toml, as they stand there.
OTHERS = """
[experiments.parameter-server]
data = "mnist-small-32"
batch = 20
learning_rate = 0.05
iterations = 20
evaluate_every = 20

[experiments.core-rates]
calls = 10
put_bytes = 131072
open_loop = "off"

[experiments.granularity]
shortest = 0.001
longest = 0.1
most_batch = 1

[experiments.tune-overhead]
trial_seconds = 1

[experiments.tune]
trials = 1
max_iterations = 1
iteration_samples = 128
hidden_below = 33

[experiments.clustering]
jobs = 8
points = 100
iterations = 1

[experiments.clustering-kernels]
points = 100
iterations = 1
jobs = 2

[experiments.clustering-files]
kib = 64
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
        assert f"{len(os.fsencode(temporary))} bytes, and Ray's sockets allow {MOST_BYTES}" in note

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


@pytest.mark.timeout(900)
def test_every_experiment_and_the_plan_for_ci_run_on_loopback_without_root(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text((ROOT / "docs/ci-plan.toml").read_text() + OTHERS)
    with elsewhere(tmp_path, *as_nobody(tmp_path), str(environment_in(tmp_path))) as bench:
        code, _, err = bench("run", "--plan", str(plan), "--topology", "multi", *LOOPBACK, minutes=12)
        found = {run.spec.experiment: (run.status, run.reasons) for run in bench.runs()}
        assert found == dict.fromkeys(experiments.NAMES, ("ok", ())), err
        assert all(any(sample.value is not None for sample in run.samples) for run in bench.runs())
        assert all(run.facts is not None and len(run.facts.nodes) == 2 for run in bench.runs())
        assert code == 0, err
