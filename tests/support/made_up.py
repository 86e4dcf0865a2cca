"""Sessions that were never run, with numbers like those of real ones: seeded, so that each is always the same."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.metrics import rate, ratio, seconds, size
from bench.model import Arm, Facts, Interval, Metric, NodeFacts, NodeUsage, Run, Sample, Session, Spec, Topology, Value

RATE = rate("throughput_inputs_per_second", "inputs/s")
LATENCIES = tuple(
    seconds(
        f"latency_p{share}_seconds",
        means="median latency" if share == 50 else "",
        distribution="latency",
        percentile=float(share),
    )
    for share in (50, 90, 99)
)
METRICS = (
    RATE,
    seconds("end_to_end_seconds", means="end to end"),
    seconds("first_result_seconds"),
    seconds("startup_seconds"),
    *LATENCIES,
    ratio("success_ratio", "1", better="higher"),
    size("payload_bytes_per_input", "B/input", means="payload"),
)
ONCE = ("end_to_end_seconds", "first_result_seconds", "startup_seconds")
ARMS = (
    Arm(name="ray", help="Ray actors that predict a batch a call.", role="subject"),
    Arm(name="empty-calls", help="The same calls, that do no work.", role="calls"),
    Arm(name="numpy-one-by-one", help="A plain loop in one process, one input at a time.", role="peer"),
    Arm(name="numpy-all-cpus", help="One process a CPU, in large batches, no calls.", role="ceiling"),
    Arm(name="pool", help="A multiprocessing pool.", role="peer"),
    Arm(name="ray-unwatched", help="The subject, while raymeter does not watch.", role="control", probed=False),
)
SPEEDS = {
    "ray": 1.0,
    "ray-unwatched": 1.01,
    "empty-calls": 2.2,
    "numpy-one-by-one": 1.33,
    "numpy-all-cpus": 9.1,
    "pool": 0.9,
}
SINGLE = Topology(
    name="single",
    nodes=1,
    cpus_per_node=2,
    memory_bytes_per_node=4 * 2**30,
    object_store_bytes_per_node=2**30,
    threads_per_node=2,
)
MULTI = Topology(
    name="multi",
    nodes=2,
    cpus_per_node=1,
    memory_bytes_per_node=2 * 2**30,
    object_store_bytes_per_node=2**29,
    threads_per_node=1,
)
CELLS: tuple[Mapping[str, Value], ...] = (
    {"actors": 2, "batch": 1, "image_edge": 28},
    {"actors": 2, "batch": 10, "image_edge": 28},
    {"actors": 2, "batch": 100, "image_edge": 28},
)
PER_SECOND = (3_000.0, 15_000.0, 41_000.0)


@dataclass(frozen=True, kw_only=True)
class SessionShape:
    """What a made-up session shall be like."""

    blocks: int = 6
    cells: int = 3
    samples: int = 3
    topologies: tuple[Topology, ...] = (SINGLE, MULTI)
    multi: float = 0.88  # multi/single of rates
    noise: float = 0.02
    link: str = "veth"
    metrics: tuple[Metric, ...] = METRICS
    arms: tuple[Arm, ...] = ARMS
    seed: int = 7


def made_up(shape: SessionShape | None = None, **changes: Any) -> tuple[Session, list[Run]]:
    """A session and its runs, all of them ok."""
    shape = replace(shape or SessionShape(), **changes)
    specs = tuple(_specs(shape))
    session = Session(
        id="s-2026-01-05",
        created="2026-01-05T10:00:00+00:00",
        target="local",
        seed=shape.seed,
        profile="lab",
        command=f"bench run inference --profile lab --seed {shape.seed}",
        metrics={"inference": shape.metrics},
        arms={"inference": shape.arms},
        specs=specs,
    )
    return session, [a_run(spec, shape) for spec in specs]


def _params(cell: int) -> Mapping[str, Value]:
    """The three cells of the profile, then the same with more actors."""
    return {**CELLS[cell % len(CELLS)], "actors": 2 + cell // len(CELLS)}


def _specs(shape: SessionShape) -> Sequence[Spec]:
    draw = random.Random(shape.seed)
    return [
        Spec(
            id=f"b{block:02d}-{topology.name}-inference-c{cell + 1:02d}",
            session="s-2026-01-05",
            experiment="inference",
            cell=f"c{cell + 1:02d}",
            params=_params(cell),
            seed=shape.seed,
            topology=topology,
            block=block,
            warmups=1,
            samples=shape.samples,
            sample_seconds=0.5,
            deadline_seconds=120.0,
            guessed_seconds=10.0,
        )
        for block in range(1, shape.blocks + 1)
        for topology in draw.sample(shape.topologies, len(shape.topologies))
        for cell in draw.sample(range(shape.cells), shape.cells)
    ]


def a_run(spec: Spec, shape: SessionShape | None = None) -> Run:
    """One Spec, done well."""
    shape = shape or SessionShape()
    draw = random.Random(f"{spec.id}/{spec.seed}")
    drift = random.Random(f"{spec.block}").gauss(1.0, shape.noise)
    speed = PER_SECOND[(int(spec.cell[1:]) - 1) % len(PER_SECOND)] * drift * draw.gauss(1.0, shape.noise)
    if spec.topology.name == "multi":
        speed *= shape.multi
    samples, usage = [], _idle(spec, shape)
    clock = 100.0
    for metric in shape.metrics:
        if metric.name not in ONCE:
            continue
        samples.append(_sample(metric, draw.gauss(2.0, 0.1), Interval(clock, clock + 2), "ray"))
        clock += 3
    for turn in range(1, spec.warmups + spec.samples + 1):
        warmup = turn <= spec.warmups
        for arm in shape.arms:
            covers = Interval(clock, clock + 0.5)
            clock += 1
            rate = speed * SPEEDS[arm.name] * draw.gauss(1.0, 0.01) * (0.5 if warmup else 1.0)
            samples.append(_sample(RATE, rate, covers, arm.name, turn, warmup=warmup))
            if arm.role == "subject":
                samples += _details(shape, rate, covers, turn, warmup=warmup)
            if arm.probed:
                usage += _usage(spec, shape, arm.name, rate * 0.5, covers, turn, warmup=warmup)
    return Run(
        spec=spec,
        status="ok",
        facts=a_facts(spec.topology, link=shape.link),
        samples=tuple(samples),
        usage=tuple(usage),
        digests={"predictions": "abc123"},
        reconciled=True,
    )


def _sample(
    metric: Metric, value: float | None, covers: Interval, arm: str, turn: int = 0, *, warmup: bool = False
) -> Sample:
    reason = None if value is not None else "p99 needs 1,000 calls"
    return Sample(metric=metric.name, value=value, reason=reason, interval=covers, arm=arm, turn=turn, warmup=warmup)


def _details(shape: SessionShape, rate: float, covers: Interval, turn: int, *, warmup: bool) -> list[Sample]:
    values = {
        "latency_p50_seconds": 6.0 / rate,
        "latency_p90_seconds": 9.0 / rate,
        "latency_p99_seconds": None,
        "success_ratio": 1.0,
        "payload_bytes_per_input": 784.0,
    }
    return [
        _sample(metric, values[metric.name], covers, "ray", turn, warmup=warmup)
        for metric in shape.metrics
        if metric.name in values
    ]


def _names(topology: Topology) -> list[str]:
    return ["head", *(f"worker-{number}" for number in range(1, topology.nodes))]


def _idle(spec: Spec, shape: SessionShape) -> list[NodeUsage]:
    counted = not shape.link.startswith("loopback")
    return [
        NodeUsage(
            node=node,
            arm="idle",
            turn=0,
            warmup=True,
            interval=Interval(90.0, 92.0),
            cpu_seconds=0.06,
            **_quiet_host(2.0, own=0.06 * len(_names(spec.topology))),
            sent_bytes=8_000 if counted else None,
            received_bytes=8_000 if counted else None,
            sent_packets=40 if counted else None,
            received_packets=40 if counted else None,
            spilled_bytes=0,
        )
        for node in _names(spec.topology)
    ]


def _quiet_host(seconds: float, *, own: float) -> dict[str, float]:
    """Of a machine that hardly anybody else uses; what must wait there waits for the run itself."""
    return {
        "watched_seconds": seconds + 0.02,
        "host_busy_seconds": own + 0.02,
        "pressure_cpu_seconds": 0.7 * seconds,
        "steal_seconds": 0.0,
        "swapped_bytes": 0,
    }


def _usage(
    spec: Spec, shape: SessionShape, arm: str, work: float, covers: Interval, turn: int, *, warmup: bool
) -> list[NodeUsage]:
    names = _names(spec.topology)
    counted = not shape.link.startswith("loopback")
    crossing = work / 2 if len(names) > 1 else 0.0
    sent = {"head": int(2_000 + crossing * 900), "worker-1": int(2_000 + crossing * 60)}
    received = {"head": sent["worker-1"], "worker-1": sent["head"]} if len(names) > 1 else sent
    cpu_seconds = 0.95 * (1.1 if len(names) > 1 else 1.0)
    return [
        NodeUsage(
            node=node,
            arm=arm,
            turn=turn,
            warmup=warmup,
            interval=covers,
            cpu_seconds=cpu_seconds / len(names),
            **_quiet_host(covers.seconds, own=cpu_seconds),
            peak_cpus=0.97 * spec.topology.cpus_per_node,
            peak_memory_bytes=900 * 2**20 // len(names),
            sent_bytes=sent[node] if counted else None,
            received_bytes=received[node] if counted else None,
            sent_packets=10 + int(crossing / 8) if counted else None,
            received_packets=10 + int(crossing / 8) if counted else None,
            retransmits=0 if counted else None,
            peak_bytes_per_second=2.2 * sent[node] if counted else None,
            disk_read_bytes=0,
            disk_written_bytes=8192,
            spilled_bytes=0,
            work=work / len(names),
        )
        for node in names
    ]


def a_facts(topology: Topology, *, link: str = "veth", **changes: Any) -> Facts:
    """Facts of a cluster whose nodes share one machine; `changes` are of each node."""
    threads = str(topology.threads_per_node)
    nodes = tuple(
        NodeFacts(
            **{
                "node": name,
                "boot_id": "boot-1",
                "kernel": "6.18",
                "cpu_model": "EPYC",
                "machine": "x86_64",
                "cpus_granted": topology.cpus_per_node,
                "cpus_allowed": topology.cpus_per_node,
                "cpu_quota": None,
                "memory_limit_bytes": topology.memory_bytes_per_node,
                "object_store_bytes": topology.object_store_bytes_per_node,
                "shared_memory_bytes": 2**31,
                "threads": {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
                "versions": {"python": "3.11.7", "ray": "2.60.0", "numpy": "2.4.6"},
                "code_hash": "0123456789abcdef",
                "image_digest": None,
                "ray_environment": {"RAY_AUTH_MODE": "token"},
                **changes,
            }
        )
        for name in _names(topology)
    )
    return Facts(
        nodes=nodes,
        cluster=f"cluster-of-{topology.name}",
        ray_config={"object_timeout_milliseconds": 100},
        data={"digits": "feed"},
        link=link,
        same_host=True,
    )
