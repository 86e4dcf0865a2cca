"""Declares what the study of inference published: a network of 784-448-160-10 in Ray actors, random inputs, June 2024."""

from __future__ import annotations

from collections.abc import Mapping

from bench.model import Value
from bench.studies import Study, StudyFigure, StudyRow, StudySetting, StudyTable

ONE: Mapping[str, Value] = {"actors": 1, "batch": 1, "inputs": 100_000, "data_path": "by-value"}
TEN: Mapping[str, Value] = {"actors": 10, "batch": 10, "inputs": 100_000, "data_path": "by-value"}
BETWEEN: tuple[tuple[str, Mapping[str, Value]], ...] = (
    ("10 actors, 1 input in a call (not in the study)", {**ONE, "actors": 10}),
    ("1 actor, 10 inputs in a call (not in the study)", {**ONE, "batch": 10}),
)
LONG: Mapping[str, Value] = {**TEN, "inputs": 1_000_000}

STUDY = Study(
    title="inference in actors on 12 CPUs, then on two containers of the same machine",
    settings=(
        StudySetting(name="CPUs", published="12", ours="CPUs"),
        StudySetting(name="memory", published="128 GB", ours="memory"),
        StudySetting(name="nodes", published="one, and two containers of one machine", ours="nodes"),
        StudySetting(name="link", published="between two containers", ours="link"),
        StudySetting(name="inputs", published="random vectors", param="data"),
        StudySetting(name="type of inputs and weights", published="float64", param="dtype"),
        StudySetting(name="calls in flight", published="all of them", param="in_flight"),
        StudySetting(
            name="clock",
            published="starts before the actors do; inputs are drawn while it runs",
            always="starts when the actors are ready and all inputs are drawn",
        ),
    ),
    tables=(
        StudyTable(
            title="Five repeats of 100,000 inputs",
            figures=(
                StudyFigure(name="time", unit="s", metric="throughput_inputs_per_second", of="inputs", grows=True),
                StudyFigure(name="throughput", unit="inputs/s", metric="throughput_inputs_per_second"),
                StudyFigure(name="CPU", unit="%", metric="cpu_percent"),
            ),
            rows=(
                StudyRow(
                    what="1 actor, 1 input in a call",
                    params=ONE,
                    topology="single",
                    published=(
                        (66.324, 64.185, 65.694, 66.445, 66.547),
                        (1507.750, 1557.996, 1522.209, 1505.004, 1502.697),
                        ("below 30",),
                    ),
                ),
                *(
                    StudyRow(what=what, params=params, topology="single", published=((), (), ()))
                    for what, params in BETWEEN
                ),
                StudyRow(
                    what="10 actors, 10 inputs in a call",
                    params=TEN,
                    topology="single",
                    published=(
                        (6.399, 7.021, 6.181, 6.436, 6.935),
                        (15627.44, 14242.99, 16178.61, 15537.60, 14419.61),
                        (),
                    ),
                ),
                StudyRow(
                    what="10 actors, 10 inputs in a call",
                    params=TEN,
                    topology="multi",
                    published=(
                        (7.125, 7.707, 6.415, 6.727, 6.142),
                        (14035.09, 12975.22, 15588.46, 14865.47, 16281.34),
                        (),
                    ),
                ),
            ),
        ),
        StudyTable(
            title="1,000,000 inputs, for a reading of CPU and network",
            figures=(
                StudyFigure(name="CPU", unit="%", metric="cpu_percent"),
                StudyFigure(name="network at its peak", unit="MB/s", metric="peak_bytes_per_second", factor=1e-6),
            ),
            rows=(
                StudyRow(
                    what="10 actors, 10 inputs in a call",
                    params=LONG,
                    topology="single",
                    published=(("60 and more",), ()),
                ),
                StudyRow(
                    what="10 actors, 10 inputs in a call",
                    params=LONG,
                    topology="multi",
                    published=(("a little less",), (125.0,)),
                ),
            ),
        ),
    ),
)
