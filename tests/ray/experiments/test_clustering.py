"""Clustering on a real Ray: every job is counted once, after killed workers and drivers too."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import a_journal
from repository import SUPPORT

from bench.experiments import clustering
from bench.experiments.clustering import Params, kernels, split, work
from bench.experiments.clustering.metrics import Account
from bench.experiments.clustering.work import Outcome
from bench.experiments.toolkit.journal import Journal
from bench.model import Sample
from bench.record.store import DONE


def values(samples: Sequence[Sample], metric: str, arm: str = "ray", node: str | None = None) -> list[float | None]:
    return [s.value for s in samples if (s.metric, s.arm, s.node) == (metric, arm, node)]


POOL_ALONE = ("ray", "empty-parts")


def run(context: Any, *, arms: Sequence[str] = POOL_ALONE, **fields: Any) -> list[Sample]:
    context.arms = arms
    if "chaos" in fields:
        context.inject(fields["chaos"], clustering.EXPERIMENT.tolerates)
    return list(clustering.run(Params(**fields), context))


def test_every_arm_does_every_job_to_the_same_end(context: Any) -> None:
    context.passes = 1
    samples = run(context, arms=(), jobs=12, points=400, clusters=5, iterations=4)
    assert not context.is_invalid, context.reasons
    for arm in ("ray", "tasks", "pool", "serial"):
        (rate,) = values(samples, "jobs_per_second", arm)
        assert rate
        assert rate > 0
        assert sum(share for share in values(samples, "share_of_jobs", arm, "head") if share) == pytest.approx(1.0)
    assert values(samples, "parts_handed_over_again") == [0.0]
    assert {name for given in context.credits.values() for credit in given for name in credit} == {"head"}
    assert context.steps[-1] == (12, 12)
    results = np.fromfile(context.folder / "results-1-1.f64")
    assert len(results) == 12
    assert (results > 0).all()
    assert "jobs in" in (context.folder / "log-head.txt").read_text()


@pytest.mark.parametrize("source", ["local", "pulled"])
def test_where_the_input_comes_from_changes_the_bytes_and_not_the_results(
    two_halves: Any, tmp_path: Path, source: str
) -> None:
    two_halves.folder, two_halves.passes = tmp_path, 1
    samples = run(two_halves, jobs=8, points=300, clusters=5, iterations=3, source=source)
    two_halves.folder = tmp_path / "made"
    two_halves.folder.mkdir()
    made = run(two_halves, jobs=8, points=300, clusters=5, iterations=3)
    assert not two_halves.is_invalid, two_halves.reasons
    size = 8 * 300 * 16 * 4
    read, pulled = (size, 0) if source == "local" else (0, size)
    assert (values(samples, "read_bytes"), values(samples, "pulled_bytes")) == ([read], [pulled])
    assert values(made, "read_bytes") == [0.0]
    assert all(share for name in ("head", "worker-1") for share in values(samples, "share_of_jobs", node=name))


@pytest.mark.parametrize(("source", "arms"), [("local", ()), ("pulled", POOL_ALONE)])
def test_a_file_of_ones_own_is_clustered_wherever_it_is_read(
    two_halves: Any, tmp_path: Path, source: str, arms: Sequence[str]
) -> None:
    path = tmp_path / "mine.npy"
    np.save(path, np.random.default_rng(3).standard_normal((8 * 100, 4)))  # float64
    two_halves.passes = 1
    small = {"jobs": 8, "points": 100, "dimensions": 4, "clusters": 3, "iterations": 4}
    samples = run(two_halves, **small, source=source, input=str(path), arms=arms)
    assert not two_halves.is_invalid, two_halves.reasons
    assert two_halves.sets == {str(path): sha256(path.read_bytes()).hexdigest()}
    assert values(samples, "checked_share") == [1.0]
    found = np.fromfile(two_halves.folder / "results-1-1.f64")
    windows = np.load(path).astype(np.float32).reshape(8, 100, 4)
    alone = [kernels.cluster("broadcast", each, clusters=3, iterations=4).inertia for each in windows]
    assert found == pytest.approx(alone, rel=1e-3)
    assert "of mine.npy: " in (two_halves.folder / "log-worker-1.txt").read_text()


def test_jobs_that_fail_are_set_aside_with_all_it_takes_to_try_them(context: Any) -> None:
    context.passes = 1
    samples = run(context, jobs=9, points=300, clusters=5, iterations=3, failing=2)
    (reason,) = context.reasons
    assert "2 jobs were set aside" in reason
    aside = [json.loads(line) for line in (context.folder / "set-aside.jsonl").read_text().splitlines()]
    assert [each["job"] for each in aside] == [2, 6]
    assert "fails by plan" in aside[0]["error"]
    assert np.load(context.folder / "set-aside-2.npy").shape == (300, 16)
    assert values(samples, "jobs_per_second")[0]


def test_one_job_that_fails_is_counted_and_voids_nothing(context: Any) -> None:
    context.passes = 1
    samples = run(context, jobs=60, layers="layer4.1+fc", points=300, clusters=5, iterations=3, failing=1)
    assert not context.is_invalid, context.reasons
    assert values(samples, "jobs_set_aside") == [1.0]
    assert sum(sum(credit.values()) for credit in context.credits["ray"]) == split.total(60, "layer4.1+fc") - 1


def test_what_chaos_cost_is_told_by_kind(context: Any) -> None:
    context.passes = 1
    samples = run(context, jobs=500, job="sleep", job_ms=20, jobs_per_part=5, chaos="worker:2")
    assert not context.is_invalid, context.reasons
    (recovery,) = [each for each in samples if each.metric == "recovery_seconds"]
    assert recovery.point == "worker"
    assert recovery.value is not None
    assert 0 < recovery.value < 60
    (wasted,) = values(samples, "wasted_work")
    assert wasted is not None
    assert 0 < wasted <= 2 * 5 / (500 + 2 * 5) * 1.5  # two parts of five, some of which took longer than others
    assert values(samples, "jobs_missing") == [0.0]


def test_what_chaos_cost_is_told_where_there_are_warm_ups_too(context: Any, tmp_path: Path) -> None:
    context.passes = context.warmups = 1
    work_ = {"jobs": 400, "job": "sleep", "job_ms": 5, "jobs_per_part": 5}
    samples = run(context, **work_, chaos="worker:1")
    assert not context.is_invalid, context.reasons
    found = [each for each in samples if each.metric == "recovery_seconds"]
    assert [(each.point, each.turn, each.warmup) for each in found] == [("worker", 2, False)]
    assert found[0].value
    # An attempt that was ended late in the turn after the warm-up: the next one is back with the first part of that turn.
    rows = (context.folder / DONE).read_bytes().splitlines(keepends=True)
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / DONE).write_bytes(b"".join(rows[:-20]))
    context.earlier, context.folder = (tmp_path / "first" / DONE,), tmp_path / "second"
    context.folder.mkdir()
    samples = run(context, **work_, chaos="driver:1")
    assert not context.is_invalid, context.reasons
    (back,) = [each for each in samples if each.metric == "recovery_seconds"]
    assert (back.point, back.warmup) == ("driver", False)
    assert back.value


def test_a_row_that_the_disk_has_bent_is_done_again(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Journal.append
    bent: list[int] = []

    def append_and_bend(self: Journal[Outcome], round_: str, outcomes: Sequence[Outcome]) -> None:
        append(self, round_, outcomes)
        path = context.folder / DONE
        if not bent and path.read_bytes().count(b"\n") > 2:
            bent.append(outcomes[-1].part)
            path.write_bytes(path.read_bytes()[:-9] + b"XXXXXXXX\n")

    monkeypatch.setattr(Journal, "append", append_and_bend)
    context.passes = 1
    run(context, jobs=40, job="empty", jobs_per_part=1)
    assert not context.is_invalid, context.reasons
    lines = (context.folder / DONE).read_bytes().splitlines()
    assert len(bent) == 1
    assert len(lines) == 41  # the row that was bent, and the same part again


DRIVER = """
import json, sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import ray
from bench.cluster.local_context import LocalContext
from bench.experiments import clustering
from bench.context import NodeSlot

address, folder, params, earlier = sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4]), sys.argv[5:]
ray.init(address=address, log_to_driver=False, logging_level="ERROR")
nodes = [NodeSlot(name="head", node_id=ray.nodes()[0]["NodeID"], cpus=2, threads=2)]
earlier = [Path(each) for each in earlier]
context = LocalContext(nodes=nodes, folder=folder, earlier=earlier, passes=1, arms=["ray", "empty-parts"])
context.inject(params["chaos"], clustering.EXPERIMENT.tolerates)
samples = list(clustering.run(clustering.Params(**params), context))
said = {sample.metric: sample.value for sample in samples if sample.arm == "ray" and sample.node is None}
(folder / "said.json").write_text(json.dumps({"reasons": context.reasons, **said}))
"""


def test_a_million_jobs_survive_three_drivers_and_five_workers_that_are_killed(
    local_ray: Sequence[Any], tmp_path: Path
) -> None:
    import ray

    params = {"jobs": 1_000_000, "job": "empty", "jobs_per_part": 5_000, "chaos": "driver:3+worker:5"}
    address = ray.get_runtime_context().gcs_address
    earlier: list[str] = []
    codes: list[int] = []
    while not codes or codes[-1] != 0:
        folder = tmp_path / str(len(codes))
        folder.mkdir()
        words = [str(SUPPORT), address, str(folder), json.dumps(params), *earlier]
        done = subprocess.run([sys.executable, "-c", DRIVER, *words], check=False, timeout=120, capture_output=True)
        codes.append(done.returncode)
        assert codes[-1] in (0, -signal.SIGKILL), done.stderr[-2000:]
        earlier.append(str(folder / DONE))
    assert codes == [-signal.SIGKILL] * 3 + [0]
    account, rows = Account(), 0
    for path in map(Path, earlier):
        rows += path.read_bytes().count(b"\n")
    name = json.loads(Path(earlier[0]).read_bytes().split(b" ", 1)[1].split(b"\n")[0])["work"]
    with a_journal(tmp_path, list(map(Path, earlier)), work=name) as journal:
        for outcome in journal.done("1/1"):
            account.add(outcome)  # which raises at a part that is counted twice
    assert (account.jobs, account.squares, account.digest) == (
        1_000_000,
        work.squares_of(1_000_000),
        work.cubes_of(1_000_000),
    )
    assert rows == len(account.parts) == split.count(1_000_000, 5_000)  # none was even written twice
    said = json.loads((tmp_path / "3" / "said.json").read_text())
    assert said["reasons"] == []
    assert said["jobs_kept"] > 0
    assert said["parts_handed_over_again"] <= 5 * 2  # what five workers had in hand
