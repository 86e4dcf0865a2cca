"""Sessions of which every part of the gap is known: the seconds of each arm are put together from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from made_up import MULTI, RATE, SINGLE, a_facts

from bench.experiments.toolkit import parts
from bench.metrics import rate, seconds
from bench.model import Arm, Interval, Metric, NodeUsage, Run, Sample, Session, Spec, Topology

ARMS = (
    Arm(name="ray", help="The work.", role="subject"),
    Arm(name="full-calls", help="Its calls, with all that is in them.", role="calls"),
    Arm(name="bare-calls", help="Its calls, with nothing in them.", role="calls"),
)
METRICS = (RATE, *parts.WORK_METRICS, parts.SERIALISE)
IDLE_BYTES_PER_SECOND = 3_000.0


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What a unit of work takes on one topology, in seconds and bytes."""

    compute: float = 100e-6
    straggler: float = 0.0
    serialise: float = 20e-6
    queue: float = 50e-6
    link_bytes: float = 0.0  # of the subject and of full calls; bare calls have a hundredth
    byte_seconds: float = 0.0
    unexplained: float = 0.0

    @property
    def seconds(self) -> float:
        """On the clock."""
        return self.compute + self.straggler + self.unexplained + self.of_calls("full-calls")

    def of_calls(self, arm: str) -> float:
        """Of an arm that makes the calls and does no work."""
        return self.serialise + self.queue + self.bytes_of(arm) * self.byte_seconds

    def bytes_of(self, arm: str) -> float:
        """That go over the link."""
        return self.link_bytes / 100 if arm == "bare-calls" else self.link_bytes


ALONE = Truth()
APART = Truth(compute=110e-6, straggler=30e-6, queue=60e-6, link_bytes=6_272.0, byte_seconds=20e-9, unexplained=5e-6)


def a_session(
    single: Truth = ALONE,
    multi: Truth = APART,
    *,
    blocks: int = 6,
    metrics: tuple[Metric, ...] = METRICS,
    arms: tuple[Arm, ...] = ARMS,
    same_host: bool = True,
    samples: int = 2,
    stalled_turn: int | None = None,  # in which all calls take three times as long
) -> tuple[Session, list[Run]]:
    """A session of one cell. Blocks differ in how fast the machine was, by a percent each; pairs do not."""
    truths = {"single": single, "multi": multi}
    runs = [
        _run(
            _spec("inference", topology, block, samples),
            _slower(truths[topology.name], 1 + block / 100),
            arms,
            same_host,
            stalled_turn,
        )
        for block in range(1, blocks + 1)
        for topology in (SINGLE, MULTI)
    ]
    session = Session(
        id="s-breakdown",
        created="2026-01-05T10:00:00+00:00",
        target="local",
        seed=7,
        profile="lab",
        command="bench run inference",
        metrics={"inference": metrics},
        arms={"inference": arms},
        specs=tuple(run.spec for run in runs),
    )
    return session, runs


def _spec(experiment: str, topology: Topology, block: int, samples: int = 2) -> Spec:
    return Spec(
        id=f"b{block:02d}-{topology.name}-{experiment}-c01",
        session="s-breakdown",
        experiment=experiment,
        cell="c01",
        params={},
        seed=7,
        topology=topology,
        block=block,
        warmups=1,
        samples=samples,
        sample_seconds=0.5,
        deadline_seconds=60.0,
        guessed_seconds=10.0,
    )


def _slower(truth: Truth, factor: float) -> Truth:
    times = ("compute", "straggler", "serialise", "queue", "byte_seconds", "unexplained")
    return replace(truth, **{name: getattr(truth, name) * factor for name in times})


def _run(spec: Spec, truth: Truth, arms: tuple[Arm, ...], same_host: bool, stalled_turn: int | None) -> Run:
    samples: list[Sample] = []
    usage = [_usage(spec, "idle", node, Interval(0.0, 2.0), 0.0, turn=0) for node in _nodes(spec)]
    clock = 10.0
    for turn in range(1, spec.warmups + spec.samples + 1):
        for arm in arms:
            # A warm-up is slow, and later samples do more work: neither may change what a unit of work takes.
            seconds = truth.seconds if arm.role == "subject" else truth.of_calls(arm.name)
            seconds *= 10 if turn == 1 else 3 if turn == stalled_turn and arm.role == "calls" else 1
            work = 10_000.0 * turn
            covers = Interval(clock, clock + work * seconds)
            clock = covers.end + 1
            samples += _samples(truth, arm, covers, work, turn)
            usage += [
                _usage(spec, arm.name, n, covers, work * truth.bytes_of(arm.name), turn=turn) for n in _nodes(spec)
            ]
    facts = replace(a_facts(spec.topology, link="veth at 50mbit"), same_host=same_host)
    return Run(spec=spec, status="ok", facts=facts, samples=tuple(samples), usage=tuple(usage))


def _nodes(spec: Spec) -> list[str]:
    return ["head", "worker-1"][: spec.topology.nodes]


def _samples(truth: Truth, arm: Arm, covers: Interval, work: float, turn: int) -> list[Sample]:
    values = {RATE: work / covers.seconds, parts.SERIALISE: work * truth.serialise}
    if arm.role == "subject":
        values |= {parts.COMPUTE: work * truth.compute, parts.STRAGGLER: work * truth.straggler}
    return [
        Sample(metric=m.name, value=v, interval=covers, arm=arm.name, turn=turn, warmup=turn == 1)
        for m, v in values.items()
    ]


def _usage(spec: Spec, arm: str, node: str, covers: Interval, crossed: float, *, turn: int) -> NodeUsage:
    idle = IDLE_BYTES_PER_SECOND * covers.seconds
    there, back = (crossed, crossed / 50) if node == "head" else (crossed / 50, crossed)
    return NodeUsage(
        node=node,
        arm=arm,
        turn=turn,
        warmup=turn <= spec.warmups,
        interval=covers,
        sent_bytes=round(there + idle),
        received_bytes=round(back + idle),
    )


def the_network_experiment(
    session: Session, runs: list[Run], *, goodput: float, round_trip: float = 0.0
) -> tuple[Session, list[Run]]:
    """The same session with the experiment `network` in it: `round_trip` is what one takes longer between nodes."""
    size, trip = rate("goodput_bytes_per_second", "B/s", means="goodput"), seconds("trip_seconds", means="round trip")
    raw, ray = Arm(name="tcp", help="", means="raw TCP"), Arm(name="ray-call", help="", means="actor call")
    added = []
    for run in runs:
        spec = _spec("network", run.spec.topology, run.spec.block)
        is_multi = spec.topology.nodes > 1

        def sample(metric: Metric, value: float, arm: Arm, **changes: Any) -> Sample:
            return Sample(metric=metric.name, value=value, interval=Interval(1.0, 2.0), arm=arm.name, turn=2, **changes)

        samples = (
            sample(size, goodput / 50, raw, point="64 B"),
            sample(size, goodput * 8, raw, point="64 KiB"),  # a shaped link lets so little pass at once
            sample(size, goodput if is_multi else goodput * 7, raw, point="64 MiB"),
            sample(size, goodput if is_multi else goodput * 7, raw),
            sample(size, goodput / 2, ray, point="64 MiB"),
            sample(trip, 1e-3 + (round_trip if is_multi else 0.0), ray, point="64 B"),
        )
        added.append(Run(spec=spec, status="ok", facts=run.facts, samples=samples))
    return replace(
        session,
        metrics={**session.metrics, "network": (size, trip)},
        arms={**session.arms, "network": (ray, raw)},
        specs=(*session.specs, *(run.spec for run in added)),
    ), [*runs, *added]
