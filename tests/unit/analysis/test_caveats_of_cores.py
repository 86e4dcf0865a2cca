"""Nodes with other cores than their neighbours, or than the other topology, get no verdict; those that share a core a warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from machines import ALL
from made_up import a_facts, made_up

from bench import analysis
from bench.analysis import facts as facts_of
from bench.machine.cores import cores, read_cpus, slices
from bench.reports import render

WORDS = ("unequal CPUs", "did not have the same CPUs", "physical core", "several kinds of cores")


def caveats_of(root: Path, machine: str, cpus: Mapping[str, Sequence[Sequence[int]]], *, allow_unequal: bool = False):
    """The severities and texts about cores, where the nodes of each topology have been given so; and the verdict."""
    session, runs = made_up(cells=1, blocks=6)
    session = replace(session, allow_unequal=allow_unequal)
    ALL[machine].write(root)
    changed = []
    for run in runs:
        given = cpus[run.spec.topology.name]
        facts = a_facts(run.spec.topology)
        nodes = tuple(
            replace(node, cores=cores(read_cpus(those, root)), cpus_granted=2 // len(given))
            for node, those in zip(facts.nodes, given, strict=True)
        )
        changed.append(replace(run, facts=replace(facts, nodes=nodes)))
    found = analysis.build(session, changed)
    caveats = [
        (caveat.severity, caveat.text) for caveat in found.caveats if any(words in caveat.text for words in WORDS)
    ]
    return caveats, found.cells[0].headline.comparison.verdict


@pytest.mark.parametrize("machine", sorted(ALL))
def test_nodes_as_they_are_chosen_raise_no_caveat_that_blocks(tmp_path, machine):
    cpus = read_cpus(range(ALL[machine].cpus), ALL[machine].write(tmp_path))
    chosen = {
        "multi": slices(cpus, nodes=2, cpus_per_node=1),
        "single": slices(cpus, nodes=1, cpus_per_node=2, shares=2),
    }
    found, verdict = caveats_of(tmp_path, machine, chosen)
    assert [severity for severity, _ in found] == (["weakens"] if machine == "VM of one core" else [])
    assert verdict == "slower"


def test_a_node_of_other_cores_blocks_the_verdict_and_names_them(tmp_path):
    unequal = {"single": [[0, 16]], "multi": [[0], [16]]}
    found, verdict = caveats_of(tmp_path, "i7-12700", unequal)
    assert found == [
        (
            "refuses",
            (
                "the nodes of multi have unequal CPUs (head: 1 performance 4.9 GHz core with 1 of 2 threads; worker-1: 1"
                " efficiency 3.6 GHz core): ask for --nodes and --cpus that divide them."
            ),
        )
    ]
    assert verdict != "slower"
    insisted, _ = caveats_of(tmp_path, "i7-12700", unequal, allow_unequal=True)
    assert [severity for severity, _ in insisted] == ["weakens"]


def test_a_whole_core_is_not_half_of_two(tmp_path):
    found, _ = caveats_of(tmp_path, "Xeon", {"single": [[0, 16]], "multi": [[0], [1]]})
    assert found == [
        (
            "refuses",
            "the topologies did not have the same CPUs (single: 1 core of 2 threads; multi: 2 cores with 1 of 2 threads).",
        )
    ]


def test_topologies_on_other_cores_block_the_verdict(tmp_path):
    found, verdict = caveats_of(tmp_path, "i7-12700", {"single": [[0, 1]], "multi": [[16], [17]]})
    assert found == [
        (
            "refuses",
            (
                "the topologies did not have the same CPUs (single: 1 performance 4.9 GHz core of 2 threads;"
                " multi: 2 efficiency 3.6 GHz cores)."
            ),
        )
    ]
    assert verdict != "slower"


def test_two_threads_of_a_core_on_two_nodes_get_a_caveat(tmp_path):
    found, _ = caveats_of(tmp_path, "Xeon", {"single": [[0, 16]], "multi": [[0], [16]]})
    assert [severity for severity, _ in found] == ["weakens"]
    assert "head and worker-1 of multi share 1 physical core" in found[0][1]


def test_nodes_that_are_not_pinned_are_alike_and_what_the_scheduler_may_choose_is_said(tmp_path):
    everywhere = range(20)
    found, verdict = caveats_of(tmp_path, "i7-12700", {"single": [everywhere], "multi": [everywhere, everywhere]})
    assert {severity for severity, _ in found} == {"weakens"}
    assert "may run on any of several kinds of cores (efficiency 3.6 GHz and performance 4.9 GHz)" in found[0][1]
    assert verdict == "slower"
    assert caveats_of(tmp_path / "xeon", "Xeon", {"single": [range(32)], "multi": [range(32), range(32)]})[0] == []


def test_the_report_says_which_cores_the_nodes_had(tmp_path):
    root = ALL["i7-12700"].write(tmp_path)
    session, runs = made_up(cells=1, blocks=6)
    cpus = {"single": [(0, 1)], "multi": [(0,), (2,)]}
    told = []
    for run in runs:
        facts = a_facts(run.spec.topology)
        nodes = [
            replace(node, cores=cores(read_cpus(those, root)))
            for node, those in zip(facts.nodes, cpus[run.spec.topology.name], strict=True)
        ]
        told.append(replace(run, facts=replace(facts, nodes=tuple(nodes))))
    text = " ".join(render("text", analysis.build(session, told)).split())
    assert "scheduling, single cores: 1 performance 4.9 GHz core of 2 threads scheduling, multi" in text
    assert "cores: 1 performance 4.9 GHz core with 1 of 2 threads each node" in text


def test_two_sessions_on_other_kinds_of_cores_are_told_apart_and_older_records_are_not(tmp_path):
    _, runs = made_up(cells=1, blocks=1)
    root = ALL["i7-12700"].write(tmp_path)

    def on(cpus):
        facts = a_facts(runs[0].spec.topology)
        nodes = [replace(node, cores=cores(read_cpus(cpus, root))) for node in facts.nodes]
        return [replace(runs[0], facts=replace(facts, nodes=tuple(nodes)))]

    (found,) = facts_of.between(on((0, 1)), on((16, 17)))
    assert found.text == "kinds of cores: performance 4.9 GHz, then efficiency 3.6 GHz"
    assert found.confounds
    assert not list(facts_of.between(on(()), on((16, 17))))
