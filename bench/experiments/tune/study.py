"""Declares what the study of Ray Tune published: a search for a network that learns handwritten digits to 0.99."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bench.experiments.tune import metrics
from bench.model import Value
from bench.studies import Study, StudyFigure, StudyRow, StudySetting, StudyTable

SETTINGS: Mapping[str, Value] = {"threads": 2, "scheduler": "asha", "max_iterations": 400}

ROWS = (
    StudyRow(
        what="10 trials of 1 CPU",
        params={**SETTINGS, "trials": 10, "cpus_per_trial": 1},
        topology="multi",
        published=((12.0,), (55.0,), (4.58,), (90.19,)),
    ),
    StudyRow(
        what="16 trials of 1 CPU",
        params={**SETTINGS, "trials": 16, "cpus_per_trial": 1},
        topology="multi",
        published=((9.0,), (314.0,), (34.89,), ("not printed",)),
    ),
    StudyRow(
        what="16 trials of 2 CPUs",
        params={**SETTINGS, "trials": 16, "cpus_per_trial": 2},
        topology="multi",
        published=((), (), (), (187.14,)),
    ),
)

STUDY = Study(
    title="iterations until an accuracy of 0.99, and the time of the whole search",
    settings=(
        StudySetting(name="CPUs", published="not said, of several machines", ours="CPUs"),
        StudySetting(name="nodes", published="several machines", ours="nodes"),
        StudySetting(name="data", published="MNIST", param="data"),
        StudySetting(name="target", published="0.99", param="target_accuracy"),
        StudySetting(name="images of an iteration", published="an epoch: 60,000", param="iteration_samples"),
        StudySetting(name="most iterations of a trial", published="not said; 314 were done", param="max_iterations"),
        StudySetting(name="scheduler", published="not said", param="scheduler"),
        StudySetting(name="threads of a trial", published="2", param="threads"),
    ),
    tables=(
        StudyTable(
            title="Iterations to the target, and the time of the search",
            figures=(
                StudyFigure(
                    name="fewest", unit="iterations", metric=metrics.ITERATIONS.name, pick="fewest", grows=True
                ),
                StudyFigure(name="most", unit="iterations", metric=metrics.ITERATIONS.name, pick="most", grows=True),
                StudyFigure(name="effect, most by fewest", unit="", metric=metrics.EFFECT.name),
                StudyFigure(name="time", unit="s", metric=metrics.SEARCH.name, grows=True),
            ),
            # The study had several machines; on one node of ours there is nothing of it to stand beside.
            rows=(*ROWS, *(replace(row, topology="single", published=((), (), (), ())) for row in ROWS)),
        ),
    ),
)
