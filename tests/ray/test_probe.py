"""The probe on a real Ray: a busy CPU is seen in the usage of an interval, in the report, and in the timeline of the run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

import pytest
from builders import a_session, a_spec, a_topology

from bench import analysis
from bench.cluster.invocation import Invocation, NodeProbe
from bench.cluster.recorder import Recorder
from bench.context import NodeSlot
from bench.metrics import rate
from bench.model import Arm, Session, Spec
from bench.record import store

LOOPS = rate("loops_per_second", "loops/s")
ARM = Arm(name="ray", help="A loop that keeps one CPU busy.", role="subject")
UNWATCHED = Arm(name="unwatched", help="The same, while raymeter does not watch.", role="control", probed=False)
SECONDS = 1.5


@pytest.fixture
def probes(local_ray: Sequence[NodeSlot]) -> Iterator[list[NodeProbe]]:
    """The probe of a node of two CPUs, which consists of the processes that bear its marks."""
    import ray

    from bench.cluster.probe.actor import Probe

    marks = {"RAYMETER_NODE": "head", "RAYMETER_DEPLOYMENT": "of-this-test", "RAYMETER_NODE_CGROUP": ""}
    environment = {"env_vars": {**marks, "RAYMETER_LINK": "loopback, no bytes counted"}}
    (node,) = ray.nodes()
    actor = ray.remote(num_cpus=0, runtime_env=environment)(Probe).remote()
    yield [
        NodeProbe(
            actor=actor,
            slot=local_ray[0],
            address=node["NodeManagerAddress"],
            port=node["NodeManagerPort"],
            object_store_bytes=0,
        )
    ]
    ray.kill(actor)


def test_one_busy_cpu_of_two_is_half_of_the_node(
    probes: list[NodeProbe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setenv("RAYMETER_RECORDS", str(tmp_path))
    marks = {"RAYMETER_NODE": "head", "RAYMETER_DEPLOYMENT": "of-this-test"}

    @ray.remote(num_cpus=1, runtime_env={"env_vars": marks})
    def busy(seconds: float) -> float:
        begin, used = time.monotonic(), time.process_time()
        while time.monotonic() - begin < seconds:
            pass
        return time.process_time() - used

    spec = a_spec(topology=a_topology(cpus=2), warmups=1, samples=2, sample_seconds=0.0)
    folder = store.create(tmp_path / "results", _session(spec))
    recorder = Recorder(store.run_folder(folder, spec), spec)
    invocation = Invocation(spec=spec, probes=probes, recorder=recorder)
    invocation.measure_idle()
    used: list[float] = []
    for turn in invocation.turns():
        for arm in (ARM, UNWATCHED):
            timed = turn.measure(arm, lambda: ray.get(busy.remote(SECONDS)), lambda _: {"head": 1.0})
            recorder.sample(timed.sample(LOOPS, 1 / timed.interval.seconds))
            if arm is ARM:
                used.append(timed.results[0] / timed.interval.seconds)
    recorder.timelines(invocation.timelines())
    recorder.close("ok", ())

    run = store.load_run(folder, spec)
    # Nearly one CPU in each turn; less where others use the machine and a call waits, which may change from turn to turn.
    counted = used[-spec.samples :]  # without the warm-up
    expected = 100 * sum(counted) / len(counted) / 2
    (row,) = analysis.build(_session(spec), [run]).cells[0].nodes
    assert row.cpu_percent == pytest.approx(expected, abs=8)
    assert row.peak_cpu_percent is not None
    assert row.peak_cpu_percent >= row.cpu_percent - 5

    (timeline,) = store.load_timelines(folder, spec)
    points = list(zip(timeline.ends, timeline.seconds, timeline.mean["cpus"], strict=True))
    watched = [each.interval for each in run.usage if each.turn > 0]
    inside = [
        (cpus, s)
        for end, s, cpus in points
        if any(i.begin <= end - s and end <= i.end for i in watched) and isfinite(cpus)
    ]
    assert sum(s for _, s in inside) > 0.5 * SECONDS * len(watched)
    assert sum(cpus * s for cpus, s in inside) / sum(s for _, s in inside) == pytest.approx(
        sum(used) / len(used), abs=0.16
    )
    unwatched = [each.interval for each in run.samples if each.arm == UNWATCHED.name]
    assert not [end for end, s, _ in points if any(i.begin < end - s and end < i.end for i in unwatched)]
    assert min(timeline.mean["memory_bytes"]) > 2**20


def _session(spec: Spec) -> Session:
    return replace(a_session((spec,)), metrics={spec.experiment: (LOOPS,)}, arms={spec.experiment: (ARM, UNWATCHED)})
