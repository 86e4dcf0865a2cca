"""Sessions whose cells differ by known factors: each cell's rate is its factor times the block's own speed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from made_up import MULTI, RATE, SINGLE, a_facts

from bench.metrics import seconds
from bench.model import Arm, Interval, Metric, Run, Sample, Session, Spec, Topology, Value

STARTUP = seconds("startup_seconds")
ARMS = (
    Arm(name="ray", help="", role="subject"),
    Arm(name="pool", help="", role="peer"),
    Arm(name="empty", help="", role="calls"),
)
Rates = Mapping[str, float]
"""By topology, of the subject; the peer does 100 everywhere, and the start-up takes 10 by the rate."""


def session_of(
    cells: Sequence[tuple[Mapping[str, Value], Rates]],
    *,
    blocks: int = 8,
    noise: float = 0.0,
    contrast: str = "",
    metrics: tuple[Metric, ...] = (RATE, STARTUP),
    topologies: tuple[Topology, ...] = (SINGLE, MULTI),
) -> tuple[Session, list[Run]]:
    """A session of `cells`, each with its params and its rates; blocks differ fourfold in speed."""
    runs = [
        _run(number, params, rates[topology.name], topology, block, noise)
        for block in range(1, blocks + 1)
        for topology in topologies
        for number, (params, rates) in enumerate(cells, start=1)
    ]
    session = Session(
        id="made-up",
        created="2026-01-05T10:00:00+00:00",
        target="local",
        seed=1,
        profile="lab",
        contrast=contrast,
        metrics={"work": metrics},
        arms={"work": ARMS},
        specs=tuple(run.spec for run in runs),
    )
    return session, runs


def _run(number: int, params: Mapping[str, Value], rate: float, topology: Topology, block: int, noise: float) -> Run:
    spec = Spec(
        id=f"b{block:02d}-{topology.name}-c{number:02d}",
        session="made-up",
        experiment="work",
        cell=f"c{number:02d}",
        params=params,
        seed=1,
        topology=topology,
        block=block,
        warmups=0,
        samples=1,
        sample_seconds=1.0,
        deadline_seconds=60.0,
        guessed_seconds=10.0,
    )
    speed = (1 + block % 4) * random.Random(spec.id).gauss(1.0, noise)
    given = (
        (RATE.name, "ray", rate * speed),
        (STARTUP.name, "ray", 10 / rate / speed),
        (RATE.name, "pool", 100 * speed),
    )
    samples = tuple(
        Sample(metric=metric, value=value, interval=Interval(0.0, 1.0), arm=arm, turn=1) for metric, arm, value in given
    )
    return Run(spec=spec, status="ok", facts=a_facts(topology), samples=samples)
