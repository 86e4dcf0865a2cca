"""What threads met with while something was timed, by topology, and that what is not counted is not made up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up

from bench import analysis
from bench.model import NodeUsage
from bench.reports import render

KNOWN = {"run_queue_wait_seconds": 0.2, "voluntary_switches": 300, "involuntary_switches": 5, "cpu_mhz": 2450.0}


def report_of(change):
    session, runs = made_up(cells=1, blocks=6)
    return analysis.build(session, [replace(run, usage=tuple(map(change, run.usage))) for run in runs])


def known(row: NodeUsage) -> NodeUsage:
    return replace(row, cpu_seconds=0.5, **KNOWN)


def test_waits_and_switches_are_told_for_each_cpu_second():
    single, multi = report_of(known).scheduling
    assert (single.topology, multi.topology) == ("single", "multi")
    assert single.waited_per_cpu_second == pytest.approx(0.4)
    assert single.voluntary_switches_per_cpu_second == pytest.approx(600)
    assert single.involuntary_switches_per_cpu_second == pytest.approx(10)
    assert (single.least_mhz, single.most_celsius) == (2450.0, None)


def test_idle_time_and_warm_ups_are_left_out():
    def in_use(row: NodeUsage) -> NodeUsage:
        return known(row) if not row.warmup and row.arm != "idle" else replace(row, cpu_seconds=0.5, cpu_mhz=9e9)

    assert report_of(in_use).scheduling == report_of(known).scheduling


def test_where_nothing_is_counted_nothing_is_said():
    found = report_of(lambda row: row)
    assert found.scheduling == ()
    assert "scheduling" not in render("text", found)


def test_a_report_describes_the_scheduling():
    text = " ".join(render("text", report_of(known)).split())
    assert (
        "scheduling, single per second of CPU time: 0.400 s of waiting for a CPU, 600 voluntary context switches,"
        " 10 involuntary context switches; CPU clock 2,450 MHz scheduling, multi" in text
    )


def test_what_a_core_copies_is_said_too():
    session, runs = made_up(cells=1, blocks=6)
    copied = [replace(run, facts=replace(run.facts, copy_bytes_per_second=8.1e9)) for run in runs]
    report = analysis.build(session, copied)
    assert [each.copy_bytes_per_second for each in report.scheduling] == [8.1e9, 8.1e9]
    assert "scheduling, single one core copies memory at 8.10 GB/s" in " ".join(render("text", report).split())
