"""Trials of a search, made up from their accuracies."""

from __future__ import annotations

from bench.context import NodeSlot
from bench.experiments.tune.training import Config, IterationReport, TrainingSettings
from bench.experiments.tune.trials import TrialRun

TRAINING = TrainingSettings(
    batch=1, iteration_samples=1, max_iterations=9, target=0.9, judged_by="training", threads=1, seed=1
)

NODES = [NodeSlot(name=name, node_id=name, cpus=1, threads=1) for name in ("head", "worker-1")]


def a_trial(number: int, *accuracies: float, node: str = "head", seconds: float = 1.0) -> TrialRun:
    reports = [
        IterationReport(
            iteration=i + 1,
            training_accuracy=accuracy,
            held_out_accuracy=accuracy,
            loss=1.0,
            cpu_seconds=0.5 * seconds,
            begin=i * (seconds + 0.1),
            end=i * (seconds + 0.1) + seconds,
            peak_memory_bytes=100 + number,
            setup_seconds=0.0,
            node=node,
        )
        for i, accuracy in enumerate(accuracies)
    ]
    return TrialRun(number=number, config=Config(lr=0.1, momentum=0.5, hidden=32), reports=reports)
