"""Small builders: a test shows only what matters to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.context import Context
from bench.model import Arm, Interval, Metric, Sample, Session, Spec, Topology, Value

RATE = Metric(name="throughput_inputs_per_second", unit="inputs/s", better="higher", kind="rate")


def a_topology(name: str = "single", *, nodes: int = 1, cpus: int = 2) -> Topology:
    return Topology(
        name=name,
        nodes=nodes,
        cpus_per_node=cpus // nodes,
        memory_bytes_per_node=4 * 2**30 // nodes,
        object_store_bytes_per_node=2**30 // nodes,
        threads_per_node=cpus // nodes,
    )


def a_spec(**changes: Any) -> Spec:
    fields: dict[str, Any] = {
        "id": "b01-single-inference-c01",
        "session": "s1",
        "experiment": "inference",
        "cell": "c01",
        "params": {"batch": 1},
        "seed": 1,
        "topology": a_topology(),
        "block": 1,
        "warmups": 1,
        "samples": 2,
        "sample_seconds": 0.1,
        "deadline_seconds": 30.0,
        "guessed_seconds": 10.0,
    }
    return Spec(**{**fields, **changes})


def a_session(specs: tuple[Spec, ...] | None = None, **changes: Any) -> Session:
    fields: dict[str, Any] = {
        "id": "s1",
        "created": "2026-01-01T00:00:00+00:00",
        "target": "local",
        "seed": 1,
        "profile": "tiny",
        "command": "bench run inference",
        "metrics": {"inference": (RATE,)},
        "arms": {"inference": (Arm(name="ray", help="", role="subject"),)},
        "specs": specs if specs is not None else (a_spec(),),
    }
    return Session(**{**fields, **changes})


def a_sample(value: float | None = 1000.0, **changes: Any) -> Sample:
    fields: dict[str, Any] = {
        "metric": RATE.name,
        "value": value,
        "unit": RATE.unit,
        "interval": Interval(1.0, 2.0),
        "arm": "ray",
        "turn": 2,
        "reason": None if value is not None else "it was lost",
    }
    return Sample(**{**fields, **changes})


def values_of(params: Mapping[str, Value], *names: str) -> tuple[Value, ...]:
    return tuple(params[name] for name in names)


class FakeExperiment:
    """An experiment that yields what it is told to."""

    def __init__(self, samples: tuple[Sample, ...]) -> None:
        self.samples = samples

    def run(self, params: Any, context: Context) -> Iterator[Sample]:
        yield from self.samples
