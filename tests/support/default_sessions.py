"""The default session of each experiment as it is planned, with its runs made up: every arm, every metric, six caveats or more."""

from __future__ import annotations

import random
import zlib

from made_up import a_facts

from bench.experiments import load
from bench.model import Arm, Interval, Metric, NodeUsage, Run, Sample, Session, Spec
from bench.options import RunRequest
from bench.planning import plan

_SPEEDS = {"single": 1.0, "multi": 0.7}
_OF_KINDS = {"rate": 2_400.0, "time": 0.03, "size": 5_000.0, "count": 12.0, "ratio": 0.97}


def default_session(experiment: str) -> tuple[Session, list[Run]]:
    """What `bench run EXPERIMENT` plans on two CPUs, and a good run of each of its Specs."""
    session = plan.make(RunRequest(experiments=(experiment,), target="local", cpus=2))
    return session, [_run(spec) for spec in session.specs]


def _run(spec: Spec) -> Run:
    experiment = load(spec.experiment)
    draw = random.Random(zlib.crc32(spec.id.encode()))
    samples: list[Sample] = []
    usage = [_usage(spec, node, "idle", 0, Interval(90.0, 92.0), 0.0) for node in _nodes(spec)]
    clock = 100.0
    for turn in range(1, spec.warmups + spec.samples + 1):
        for position, arm in enumerate(filter(spec.wants, experiment.arms)):
            covers = Interval(clock, clock + spec.sample_seconds)
            clock = covers.end + 1
            times, headline = draw.gauss(1.3**position, 0.02), experiment.metrics[0]
            measured = experiment.metrics if arm.role == "subject" else (headline,)
            samples += [_sample(spec, metric, arm, covers, turn, times) for metric in measured]
            if arm.probed:
                done = samples[-len(measured)].value if headline.kind == "rate" else 500.0
                usage += [_usage(spec, node, arm.name, turn, covers, done or 0.0) for node in _nodes(spec)]
    return Run(
        spec=spec,
        status="ok",
        facts=a_facts(spec.topology),
        samples=tuple(samples),
        usage=tuple(usage),
        digests={},
        reconciled=False,
    )


def _sample(spec: Spec, metric: Metric, arm: Arm, covers: Interval, turn: int, times: float) -> Sample:
    speed = _SPEEDS[spec.topology.name] * times
    value = _OF_KINDS[metric.kind] * (speed if metric.kind == "rate" else 1 / speed if metric.kind == "time" else 1.0)
    if metric.means == "left out":
        value = 0.0  # it is a good run
    return Sample(
        metric=metric.name,
        value=value,
        interval=covers,
        arm=arm.name,
        turn=turn,
        warmup=turn <= spec.warmups,
        step=1.0 if metric.axis else None,
    )


def _nodes(spec: Spec) -> list[str]:
    return ["head", *(f"worker-{number}" for number in range(1, spec.topology.nodes))]


def _usage(spec: Spec, node: str, arm: str, turn: int, covers: Interval, per_second: float) -> NodeUsage:
    work = per_second * covers.seconds / spec.topology.nodes
    crossing = 900 * work if spec.topology.nodes > 1 else 0
    return NodeUsage(
        node=node,
        arm=arm,
        turn=turn,
        warmup=turn <= spec.warmups,
        interval=covers,
        cpu_seconds=0.8 * covers.seconds * spec.topology.cpus_per_node if work else 0.01,
        peak_cpus=0.97 * spec.topology.cpus_per_node,
        peak_memory_bytes=900 * 2**20,
        sent_bytes=int(4_010 * covers.seconds + crossing) + 1,
        received_bytes=int(4_010 * covers.seconds + crossing) + 1,
        sent_packets=10,
        received_packets=10,
        work=work,
    )
