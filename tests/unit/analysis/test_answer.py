"""The answer: no sentence that judges rests on fewer invocations than a verdict needs, or on what was excluded."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import pytest
from made_up import ARMS, SINGLE, made_up

from bench import analysis
from bench.analysis.usage import IDLE
from bench.model import Run, Session
from bench.reports import FORMATS

JUDGES = ("is not the best way", "of what the CPUs can do", "sent over the network", "go best on")


def disturbed(runs: list[Run]) -> list[Run]:
    """All of them on a machine of which a hypervisor took half."""
    return [
        replace(
            run,
            usage=tuple(replace(row, watched_seconds=1.0, steal_seconds=1.0) for row in run.usage),
        )
        for run in runs
    ]


def caveats_of_peers(session: Session, runs: list[Run]) -> list[str]:
    return [caveat.text for caveat in analysis.build(session, runs).caveats if "does better than" in caveat.text]


@pytest.mark.parametrize("topologies", [{}, {"topologies": (SINGLE,)}], ids=["both", "single"])
@pytest.mark.parametrize("blocks", [1, 5, 6])
def test_below_six_invocations_nothing_is_judged(topologies: dict[str, object], blocks: int) -> None:
    session, runs = made_up(cells=1, blocks=blocks, **topologies)
    said = " ".join(analysis.build(session, runs).answer)
    assert ("Ray is not the best way" in said) is (blocks == 6)
    assert bool(caveats_of_peers(session, runs)) is (blocks == 6)
    if blocks < 6:
        assert not any(words in said for words in JUDGES), said
        assert f"a verdict {'on them ' if topologies else ''}needs 6" in said


@pytest.mark.parametrize("topologies", [{}, {"topologies": (SINGLE,)}], ids=["both", "single"])
@pytest.mark.parametrize("blocks", [1, 12])
def test_of_excluded_blocks_nothing_is_said_but_that(topologies: dict[str, object], blocks: int) -> None:
    session, runs = made_up(cells=1, blocks=blocks, **topologies)
    (said,) = analysis.build(session, disturbed(runs)).answer
    assert f"noisy host: {blocks} of {blocks} block" in said
    assert said.startswith("There is no answer: " if topologies else "Multi beside single: undecided")
    assert caveats_of_peers(session, disturbed(runs)) == []
    assert caveats_of_peers(replace(session, allow_noise=True), disturbed(runs)) == caveats_of_peers(session, runs)


def test_a_cell_whose_own_numbers_are_refused_is_not_judged_by_its_peers() -> None:
    session, runs = made_up(cells=1)
    spilled = [replace(run, usage=tuple(replace(row, spilled_bytes=1) for row in run.usage)) for run in runs]
    assert "is not the best way" in analysis.build(session, runs).answer[0]
    assert "is not the best way" not in " ".join(analysis.build(session, spilled).answer)


def test_bytes_below_the_idle_baseline_are_no_negative_bytes() -> None:
    arms = tuple(arm for arm in ARMS if arm.role == "subject")
    session, runs = made_up(cells=1, topologies=(SINGLE,), arms=arms)
    found = analysis.build(session, runs)
    assert "sent over the network: " in found.answer[-1]
    chatty = [
        replace(run, usage=tuple(replace(row, sent_bytes=10**9 if row.arm == IDLE else 0) for row in run.usage))
        for run in runs
    ]
    quiet = analysis.build(session, chatty)
    assert quiet.answer[-1] == "Each input sent over the network: not distinguishable from idle traffic on single."
    (row,) = [row for row in quiet.cells[0].usage if row.metric.name == "wire_bytes_per_input"]
    assert row.sides["single"].estimate.value < 0  # the number itself is in JSON and CSV, marked
    assert row.sides["single"].like_idle
    text = " ".join(FORMATS["text"](quiet).split())
    assert "like idle, not distinguishable from idle traffic: wire bytes" in text
    assert not re.search(r"-[0-9.]+ ?k?B/", text)
    rows = list(csv.DictReader(FORMATS["csv"](quiet).splitlines()))
    marked = {row["metric"] for row in rows if "not distinguishable from idle traffic" in row["stamps"]}
    assert marked >= {"wire_bytes_per_input", "sent_bytes_per_second", "sent_bytes_per_unit"}
    assert any(float(row["value"]) < 0 for row in rows if row["metric"] == "sent_bytes_per_second")


def test_what_stands_beside_a_lone_topology_is_named() -> None:
    session, runs = made_up(cells=1, topologies=(SINGLE,))
    said = analysis.build(session, runs).answer[1]
    names = "empty-calls, numpy-one-by-one, numpy-all-cpus, pool, ray-unwatched"
    assert said.startswith("On single the throughput is ")
    assert said.endswith(f" k inputs/s; beside it in the same invocations: {names}.")
    alone, of_it = made_up(cells=1, topologies=(SINGLE,), arms=ARMS[:1])
    assert analysis.build(alone, of_it).answer[0].endswith("; no other cell or arm was measured.")
