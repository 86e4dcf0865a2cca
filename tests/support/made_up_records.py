"""Records as a real run leaves them, with the arms and metrics of a real experiment, and numbers made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builders import a_spec, a_topology

from bench.cluster.recorder import Recorder
from bench.experiments import inference
from bench.experiments.inference import arms, metrics
from bench.model import Arm, Declared, Interval, Metric, NodeUsage, Sample, Spec

SINGLE, MULTI = a_topology(), a_topology("multi", nodes=2)


def made_up_spec(topology: str = "single", **changes: Any) -> Spec:
    shape = {"single": SINGLE, "multi": MULTI}[topology]
    return a_spec(
        **{"id": f"b01-{topology}-inference-c01", "topology": shape, "session": "20260101-000000-made-up"} | changes
    )


class MadeUpRun:
    """A run whose record is written turn by turn."""

    def __init__(self, records: Path, spec: Spec, declared: Declared | None = None) -> None:
        self.spec = spec
        self.samples: list[Sample] = []
        self.recorder = Recorder(records / spec.session / "runs" / spec.folder, spec)
        self.recorder.declare(declared or Declared(metrics=inference.METRICS, arms=inference.ARMS))

    def start_up(self) -> None:
        for metric in (metrics.STARTUP, metrics.FIRST_RESULT, metrics.END_TO_END):
            self._sample(metric, arms.RAY, 1.5, turn=0)

    def turn(self, number: int, *, throttled: int = 0) -> None:
        warmup = number <= self.spec.warmups
        self.recorder.progress(number, self.spec.warmups + self.spec.samples)
        for arm in inference.ARMS:
            if arm.probed:
                self._usage(arm, number, warmup, throttled)
            self._sample(metrics.THROUGHPUT, arm, 1000.0 + number, turn=number)
        for metric in (*metrics.LATENCIES.values(), metrics.SUCCESS, metrics.PAYLOAD):
            self._sample(metric, arms.RAY, 0.25, turn=number)

    def close(self, status: Any = "ok") -> None:
        self.recorder.close(status, ())

    def whole(self, **changes: Any) -> MadeUpRun:
        """Start-up and every turn, and the end."""
        self.start_up()
        for number in range(1, self.spec.warmups + self.spec.samples + 1):
            self.turn(number, **changes)
        self.close()
        return self

    def _sample(self, metric: Metric, arm: Arm, value: float, *, turn: int) -> None:
        sample = Sample(
            metric=metric.name,
            unit=metric.unit,
            value=value,
            interval=Interval(turn, turn + 0.5),
            arm=arm.name,
            turn=turn,
            warmup=0 < turn <= self.spec.warmups,
        )
        self.samples.append(sample)
        self.recorder.sample(sample)

    def _usage(self, arm: Arm, turn: int, warmup: bool, throttled: int) -> None:
        for node in ("head", "worker-1")[: self.spec.topology.nodes]:
            usage = NodeUsage(
                node=node,
                arm=arm.name,
                turn=turn,
                warmup=warmup,
                interval=Interval(turn, turn + 0.5),
                cpu_seconds=0.4,
                peak_memory_bytes=2**28,
                received_bytes=70_000,
                sent_bytes=60_000,
                received_packets=70,
                sent_packets=60,
                retransmits=0,
                peak_bytes_per_second=1e5,
                periods=100,
                throttled_periods=throttled,
                disk_read_bytes=0,
                disk_written_bytes=4096,
                spilled_bytes=0,
                work=500.0,
            )
            self.recorder.usage(usage)
