"""`bench try` starts a small Ray when an experiment uses it, and ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MODULE = '''"""Sizes: what the Ray of a try has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from bench.experiments import Experiment, Profile
from bench.metrics import rate
from bench.model import Arm

CPUS = rate("cpus_per_second", "CPUs/s")
ARMS = (Arm(name="ray", help="A task.", role="subject"),)


@dataclass(frozen=True, kw_only=True)
class Params:
    fails: Annotated[bool, Meta(description="Whether the task fails.")] = False


def run(params, context):
    import ray

    @ray.remote
    def cpus() -> float:
        if params.fails:
            raise ArithmeticError("no such number")
        return ray.cluster_resources()["CPU"]

    for turn in context.turns():
        timed = turn.measure(ARMS[0], lambda: ray.get(cpus.remote()), lambda count: {"head": count})
        yield timed.sample(CPUS, timed.results[0] / timed.interval.seconds)
        (context.folder / "folder").touch()
        print("folder of Ray:", ray._private.worker.global_worker.node.get_temp_dir_path())


EXPERIMENT = Experiment(
    metrics=(CPUS,),
    arms=ARMS,
    params=Params,
    profiles={"tiny": Profile(help="One.", grids=({},), blocks=1, warmups=1, samples=1, sample_seconds=0.1)},
    guess_pass_seconds=lambda params: {ARMS[0].name: (0.001,)},
    run=run,
)
'''
CODE = """
import sys
from bench import cli, experiments
experiments._MODULES["core-rates"] = "sizes"
sys.argv[0] = "bench"
cli.main()
"""


def try_sizes(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "sizes.py").write_text(MODULE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "RAYMETER_"))}
    return subprocess.run(
        [sys.executable, "-c", CODE, "try", "core-rates", *words],
        env={**environment, "PYTHONPATH": str(folder), "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_the_first_task_starts_a_ray_of_so_many_cpus_which_ends_with_the_command(tmp_path: Path) -> None:
    done = try_sizes(tmp_path, "--cpus", "3")
    assert done.returncode == 0, done.stderr
    assert "  ray: head 3" in done.stdout.splitlines()
    (folder,) = [line.partition(": ")[2] for line in done.stdout.splitlines() if line.startswith("folder of Ray")]
    assert not Path(folder).exists()
    assert not (tmp_path / ".ray").exists()


def test_an_error_in_a_task_is_one_line_that_names_the_line_of_the_task(tmp_path: Path) -> None:
    done = try_sizes(tmp_path, "--set", "fails=true", "--json")
    assert (done.returncode, done.stdout) == (6, "")
    line = MODULE[: MODULE.index("raise ArithmeticError")].count("\n") + 1
    assert done.stderr.splitlines()[-1] == (
        f"bench: The experiment raised ArithmeticError: no such number ({tmp_path / 'sizes.py'}, line {line})."
        " --debug prints the traceback."
    )
    assert "Traceback" not in done.stderr


def test_an_address_uses_the_ray_that_is_running(local_ray: object, tmp_path: Path) -> None:
    import ray

    address = ray.get_runtime_context().gcs_address
    done = try_sizes(tmp_path, "--cpus", "3", "--address", address, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout[done.stdout.index("{") :])
    assert answer["data"]["work"] == {"ray": {"head": 2.0}}
    assert ray.is_initialized()
