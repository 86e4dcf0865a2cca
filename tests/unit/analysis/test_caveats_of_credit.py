"""What the nodes were credited with is the work that the headline counts, or a count is wrong and that is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import ARMS, METRICS, made_up

from bench import analysis
from bench.analysis.caveats.credit import shares
from bench.analysis.table import Table


def said(change, **shape) -> list[str]:
    """The caveats on credit in a session whose rows of usage are changed so; None takes a row away."""
    session, runs = made_up(**({"cells": 1, "blocks": 6} | shape))
    changed = []
    for run in runs:
        rows = [change(run, row) for row in run.usage]
        changed.append(replace(run, usage=tuple(row for row in rows if row is not None)))
    return [
        caveat.text for caveat in analysis.build(session, changed).caveats if "credited with other work" in caveat.text
    ]


def shares_of(run):
    those = Table([run]).of([run])
    return [share for arm in ARMS for share in shares(those, METRICS[0].name, arm.name)]


def credited(times: float, arm: str = "ray", topology: str = "multi"):
    def change(run, row):
        is_meant = (row.arm, run.spec.topology.name) == (arm, topology) and row.work is not None
        return replace(row, work=row.work * times) if is_meant else row

    return change


@pytest.mark.parametrize(("times", "says"), [(1.0, False), (1.009, False), (0.991, False), (1.02, True), (0.5, True)])
def test_work_that_is_not_what_the_rate_says_gets_a_caveat_beyond_one_per_cent(times, says):
    assert bool(said(credited(times))) is says


def test_it_is_told_of_which_arm_in_how_many_samples_and_by_how_much():
    (text,) = said(credited(0.5, "pool"))
    assert text.startswith("pool: in 18 samples of 36 the nodes were credited with other work than throughput_inputs")
    assert "by up to 50 %" in text


def test_calls_without_the_work_are_credited_with_none():
    assert said(credited(0.0, "empty-calls")) == []


def test_a_node_that_was_lost_has_no_word_on_what_it_did():
    assert said(lambda _run, row: None if row.node == "worker-1" else row) == []


def test_where_nodes_may_join_nobody_counts_for_them():
    _, runs = made_up(cells=1, blocks=1)
    struck = [replace(run, spec=replace(run.spec, faults="join:1")) for run in runs]
    assert [each for run in struck for each in shares_of(run)] == []


def test_the_share_is_over_all_nodes_together():
    _, runs = made_up(cells=1, blocks=1)
    for run in runs:
        # three turns that count, of the five arms that are watched
        assert shares_of(run) == pytest.approx([1.0] * 15)
