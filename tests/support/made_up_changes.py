"""Sessions whose cells differ by known factors: each cell's rate is its factor times the block's own speed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    return session_with(runs, metrics={"work": metrics}, arms={"work": ARMS}, contrast=contrast), runs


def session_with(runs: Sequence[Run], **fields: Any) -> Session:
    """The session that planned these `runs`, with `fields` of its own: metrics and arms of the experiment "work"."""
    return Session(
        id="made-up",
        created="2026-01-05T10:00:00+00:00",
        target="local",
        seed=1,
        profile="lab",
        specs=tuple(run.spec for run in runs),
        **fields,
    )


def _run(number: int, params: Mapping[str, Value], rate: float, topology: Topology, block: int, noise: float) -> Run:
    speed = (1 + block % 4) * random.Random(_id(number, topology, block)).gauss(1.0, noise)
    values = (
        (RATE.name, "ray", rate * speed),
        (STARTUP.name, "ray", 10 / rate / speed),
        (RATE.name, "pool", 100 * speed),
    )
    return run_of(number, params, values, topology=topology, block=block)


def _id(number: int, topology: Topology, block: int) -> str:
    return f"b{block:02d}-{topology.name}-c{number:02d}"


def run_of(
    number: int,
    params: Mapping[str, Value],
    values: Iterable[tuple[str, str, float]],
    *,
    topology: Topology = SINGLE,
    block: int = 1,
) -> Run:
    """A run of cell `number`, with one value of each metric and arm."""
    spec = Spec(
        id=_id(number, topology, block),
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
    samples = tuple(
        Sample(metric=metric, value=value, interval=Interval(0.0, 1.0), arm=arm, turn=1)
        for metric, arm, value in values
    )
    return Run(spec=spec, status="ok", facts=a_facts(topology), samples=samples)
