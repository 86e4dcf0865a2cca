"""A later attempt at a run does the work that the earlier ones lack, once: the frame of a job repeats none of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from builders import a_spec

from bench.cluster.invocation import Invocation, NodeProbe
from bench.cluster.recorder import Recorder
from bench.context import NodeSlot
from bench.experiments import clustering, tune
from bench.model import Spec
from bench.record.store import DONE, FILES

JOBS = {"jobs": 300, "job": "empty", "jobs_per_part": 3}
TRIALS = {"trials": 2, "hidden_below": 48, "iteration_samples": 2_000, "max_iterations": 2, "target_accuracy": 0.8}


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("experiment", "params", "in_second_turn"),
    [(clustering, JOBS, 30), (tune, TRIALS, 1)],
    ids=["clustering", "tune"],
)
@pytest.mark.usefixtures("_no_probes")
def test_a_resumed_run_does_exactly_what_is_missing(
    experiment: ModuleType,
    params: dict[str, Any],
    in_second_turn: int,
    local_ray: Sequence[NodeSlot],
    tmp_path: Path,
) -> None:
    def attempt(number: int, sample_seconds: float) -> tuple[Invocation, Path]:
        subject = experiment.ARMS[0].name
        spec = a_spec(attempt=number, warmups=0, samples=2, sample_seconds=sample_seconds, arms=(subject,))
        invocation = an_invocation(spec, local_ray, tmp_path)
        for sample in experiment.run(experiment.Params(**params), invocation):
            invocation.record(sample)
        return invocation, tmp_path / spec.folder / FILES / DONE

    _, done = attempt(1, sample_seconds=0.0)
    rows = done.read_bytes().splitlines(keepends=True)
    parts = len(rows) // 2
    done.write_bytes(b"".join(rows[: parts + in_second_turn]))  # as if it was cut off in its second turn
    again, rest = attempt(2, sample_seconds=5.0)
    found = rest.read_bytes().splitlines()
    assert len(found) == parts - in_second_turn > 0
    assert not again.reasons
    assert again.work_by_node.keys() == {"head"}
    if experiment is clustering:
        jobs = [json.loads(line.split(b" ", 1)[1])["item"]["jobs"] for line in found]
        assert again.work_by_node["head"] == sum(jobs)  # none that the first attempt did is credited


def an_invocation(spec: Spec, nodes: Sequence[NodeSlot], runs: Path) -> Invocation:
    probes = [NodeProbe(actor=None, slot=slot, address="", port=0, object_store_bytes=0) for slot in nodes]
    return Invocation(spec=spec, probes=probes, recorder=Recorder(runs / spec.folder, spec))


@pytest.fixture
def _no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Invocation, "_begin_probes", lambda self: None)
    monkeypatch.setattr(Invocation, "_ask_probes", lambda self, _: [])
    monkeypatch.setattr(Invocation, "_record_usage", lambda self, *_, **__: None)
