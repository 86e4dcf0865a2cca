"""A cell with more workers than CPUs carries its mark wherever it is shown, by what its experiment declared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import a_facts, made_up

from bench import analysis
from bench.analysis.oversubscribed import usable_cpus
from bench.model import Core
from bench.reports import as_csv, as_text


def report_of(workers, *, cells=1, marked="c01", **facts):
    session, runs = made_up(cells=cells, blocks=6)
    changed = [
        replace(run, spec=replace(run.spec, busy_workers=workers), facts=a_facts(run.spec.topology, **facts))
        if run.spec.cell == marked
        else run
        for run in runs
    ]
    return analysis.build(session, changed)


def said(report):
    return [
        (caveat.severity, caveat.about, caveat.text) for caveat in report.caveats if "oversubscribed" in caveat.text
    ]


def test_more_workers_than_cpus_are_marked_and_get_a_caveat_in_their_cell_alone():
    report = report_of(8, cells=2, marked="c02")
    assert [cell.marks for cell in report.cells] == [(), ("oversubscribed",)]
    assert said(report) == [
        (
            "weakens",
            f"{report.cells[1].experiment} c02",
            (
                "oversubscribed: 8 workers on 2 CPUs of single, 8 workers on 2 CPUs of multi. Workers wait for a CPU, and"
                " what is measured is scheduling too."
            ),
        )
    ]


@pytest.mark.parametrize("workers", [None, 0, 1, 2])
def test_no_more_workers_than_cpus_are_not(workers):
    report = report_of(workers)
    assert (report.cells[0].marks, said(report)) == ((), [])


def test_a_quota_counts():
    assert report_of(2, cpus_effective=0.5).cells[0].marks == ("oversubscribed",)


def test_the_mark_is_in_text_and_in_a_spreadsheet():
    report = report_of(8)
    assert "(oversubscribed)" in as_text.render(report)
    assert all("oversubscribed" in line for line in as_csv.render(report).splitlines()[1:])


def test_cpus_that_several_nodes_of_a_machine_may_run_on_count_once():
    (node,) = a_facts(made_up(cells=1, blocks=1)[0].specs[0].topology).nodes[:1]
    both = Core(cpus=(0,), siblings=(0,)), Core(cpus=(1,), siblings=(1,))
    free = replace(node, cpus_allowed=2, cpus_effective=2.0, cores=both)
    assert usable_cpus([free, free]) == 2
    assert usable_cpus([free, replace(free, boot_id="another")]) == 4
    assert usable_cpus([replace(free, cpus_effective=0.5), replace(free, cpus_effective=0.5)]) == 1
    assert usable_cpus([replace(free, cores=()), replace(free, cores=())]) == 4  # an older record
