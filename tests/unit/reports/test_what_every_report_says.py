"""What a result may not be quoted without: each is in the JSON of a report of two topologies, and has something to say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from made_up import made_up

from bench import analysis
from bench.experiments.inference import metrics
from bench.model import QuietCheck
from bench.reports import render

QUIET = QuietCheck(is_quiet=True, waited_seconds=0.0, busy=0.02, pressure=0.0, boot_id="boot-1")
HEADLINE = "cells.0.rows.0"
FIELDS = {
    "question": "question",
    "topologies": "topologies.1.cpus_per_node",
    "blocks": "blocks",
    "samples in each": "samples",
    "how long they are": "sample_seconds",
    "what was randomised": "randomised",
    "seed": "seed",
    "n": f"{HEADLINE}.comparison.ratio.n",
    "estimator": "estimator",
    "ratio": f"{HEADLINE}.comparison.ratio.value",
    "its interval": f"{HEADLINE}.comparison.ratio.low",
    "level of the interval": f"{HEADLINE}.comparison.ratio.level",
    "smallest effect": f"{HEADLINE}.comparison.smallest_effect",
    "verdict": f"{HEADLINE}.comparison.verdict",
    "margin": "margin",
    "absolute values": f"{HEADLINE}.sides.single.estimate.value",
    "ceiling": "cells.0.arms.3.side.estimate.value",
    "quiet_check": "quiet_checks.quiet",
    "excluded blocks": "excluded_blocks.3.0",
    "versions": "versions.ray",
    "command": "command",
}
USED = ("cpu_seconds_per_input", "wire_bytes_per_input")
PHASES = (metrics.STARTUP, metrics.FIRST_RESULT, metrics.END_TO_END, metrics.THROUGHPUT)


@pytest.fixture(scope="module")
def said() -> Any:
    """A report of twelve blocks, one of which is excluded, as JSON."""
    session, runs = made_up(cells=1, blocks=12)
    runs = [
        replace(
            run,
            quiet_check=QUIET,
            usage=tuple(replace(row, swapped_bytes=2**30 if run.spec.block == 3 else 0) for row in run.usage),
        )
        for run in runs
    ]
    return json.loads(render("json", analysis.build(session, runs)))


def at(value: Any, way: str) -> Any:
    """What stands at `way`, of names and positions with points between."""
    for step in way.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


@pytest.mark.parametrize("way", FIELDS.values(), ids=FIELDS)
def test_a_report_says_it(said: Any, way: str) -> None:
    assert at(said, way) not in (None, "", 0, [], {})


@pytest.mark.parametrize("name", USED)
def test_a_report_says_what_a_unit_of_work_used_on_each_topology(said: Any, name: str) -> None:
    (row,) = [each for each in said["cells"][0]["usage"] if each["metric"]["name"] == name]
    assert set(row["sides"]) == {"single", "multi"}
    assert all(side["estimate"]["value"] is not None for side in row["sides"].values())


def test_the_bytes_that_must_cross_stand_beside_those_that_did(said: Any) -> None:
    (row,) = [each for each in said["cells"][0]["rows"] if each["metric"]["name"] == metrics.PAYLOAD.name]
    assert row["sides"]["multi"]["estimate"]["value"] == 784.0


@pytest.mark.parametrize("phase", PHASES, ids=lambda metric: metric.name)
def test_each_phase_is_a_metric_of_its_own(said: Any, phase: Any) -> None:
    (row,) = [each for each in said["cells"][0]["rows"] if each["metric"]["name"] == phase.name]
    assert row["sides"]["single"]["estimate"]["n"] == 11


def test_a_slow_start_changes_no_other_phase() -> None:
    session, runs = made_up(cells=1, blocks=6)

    def slower(run: Any) -> Any:
        changed = (replace(s, value=s.value * 10) if s.metric == metrics.STARTUP.name else s for s in run.samples)
        return replace(run, samples=tuple(changed))

    before, after = (
        {row.metric.name: row.sides["single"].estimate for row in analysis.build(session, those).cells[0].rows}
        for those in (runs, [slower(run) for run in runs])
    )
    assert {name for name in before if before[name] != after[name]} == {metrics.STARTUP.name}
