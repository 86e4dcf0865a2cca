"""Declares what the study of the parameter server published: workers of Ray that train with CIFAR-10, August 2020.

Its curves are pictures: where no number is printed, its words stand in the table.
"""

from __future__ import annotations

from bench.counts import plural
from bench.experiments.parameter_server import arms, metrics
from bench.studies import Entry, Study, StudyFigure, StudyRow, StudySetting, StudyTable

SIMPLE_WORKERS = (1, 2, 5, 10, 15, 20)
DEEP_WORKERS = (1, 5, 10, 15, 20)
_FIGURES = (
    StudyFigure(name="time to the target", unit="s", metric=metrics.TO_TARGET.name, grows=True),
    StudyFigure(name="speed-up", unit="", metric=metrics.SPEED_UP.name),
    StudyFigure(name="accuracy at the end", unit="%", metric=metrics.ACCURACY.name),
)


def _table(
    title: str, model: str, workers: tuple[int, ...], arm: str, *, at_ten: str, of_one: tuple[Entry, ...] = ()
) -> StudyTable:
    """A row a worker count; the study prints the speed-up of ten workers at most, and the accuracy of one."""
    return StudyTable(
        title=title,
        figures=_FIGURES,
        rows=tuple(
            StudyRow(
                what=plural(count, "worker"),
                params={"model": model, "workers": count, "evaluate_every": 10},
                topology=topology,
                arm=arm,
                published=((), (at_ten,) if count == 10 else (), of_one if count == 1 else ()),
            )
            for topology in ("single", "multi")
            for count in workers
        ),
    )


STUDY = Study(
    title="time to 40 % with one convolution, to 60 % (synchronous) and 55 % (asynchronous) with ResNet-18",
    settings=(
        StudySetting(name="CPUs", published="nodes of 32", ours="CPUs"),
        StudySetting(name="memory", published="24 GB a node", ours="memory"),
        StudySetting(name="nodes", published="of a cluster with SLURM", ours="nodes"),
        StudySetting(name="link", published="InfiniBand HDR, 200 Gbit/s", ours="link"),
        StudySetting(name="data", published="CIFAR-10", param="data"),
        StudySetting(name="iterations", published="10,000; asynchronous 20,000", param="iterations"),
        StudySetting(name="batch", published="100", param="batch"),
        StudySetting(name="learning rate", published="0.0001", param="learning_rate"),
        StudySetting(
            name="target accuracy, %",
            published="40; ResNet-18 60, asynchronous 55",
            param="target_accuracy",
            words={"0.0": "the study's"},
        ),
        StudySetting(name="messages", published="tensors as objects of Ray", param="transport"),
    ),
    tables=(
        _table(
            "One convolution, synchronous, target 40 %",
            "convolution",
            SIMPLE_WORKERS,
            arms.SYNC.name,
            at_ten="over 4.0, the most",
            of_one=("50 at most",),
        ),
        _table(
            "ResNet-18, synchronous, target 60 %",
            "resnet18",
            DEEP_WORKERS,
            arms.SYNC.name,
            at_ten="the most",
            of_one=("up to 80",),
        ),
        _table("ResNet-18, asynchronous, target 55 %", "resnet18", DEEP_WORKERS, arms.ASYNC.name, at_ten="the most"),
    ),
)
