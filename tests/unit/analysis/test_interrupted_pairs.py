from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up

from bench import analysis
from bench.analysis import interrupted_pairs
from bench.analysis.table import Table
from bench.model import Interval, QuietCheck


def moved(run, seconds):
    """`run` as if it had been measured so much later."""

    def later(each):
        return replace(each, interval=Interval(each.interval.begin + seconds, each.interval.end + seconds))

    return replace(run, samples=tuple(map(later, run.samples)), usage=tuple(map(later, run.usage)))


def gated(run, boot):
    return replace(run, quiet_check=QuietCheck(is_quiet=True, waited_seconds=0.0, busy=0.0, pressure=0.0, boot_id=boot))


def with_block_one(change):
    """A session of 8 blocks, of which `change` was done to the multi of block 1."""
    session, runs = made_up(cells=1, blocks=8)
    return session, [
        change(run) if (run.spec.block, run.spec.topology.name) == (1, "multi") else gated(run, "boot-1")
        for run in runs
    ]


def pairs(session, runs):
    return analysis.build(session, runs).cells[0].headline.comparison.pairs


@pytest.mark.parametrize("hours", [26, -26])
def test_halves_a_day_apart_are_no_pair_and_it_is_said(hours):
    session, runs = with_block_one(lambda run: moved(gated(run, "boot-1"), 3600 * hours))
    found = analysis.build(session, runs)
    assert found.cells[0].headline.comparison.pairs == 7
    assert any("26 h later" in why for why in found.cells[0].headline.comparison.missing.values())
    assert [caveat for caveat in found.caveats if "1 run left out, because their pairs" in caveat.text]


def test_halves_on_either_side_of_a_reboot_are_no_pair_and_both_are_left_out():
    session, runs = with_block_one(lambda run: gated(run, "boot-2"))
    assert pairs(session, runs) == 7
    assert set(interrupted_pairs.halves(Table(runs)).values()) == {interrupted_pairs.REBOOT}
    assert len(interrupted_pairs.halves(Table(runs))) == 2


def test_a_block_that_took_long_is_whole_where_something_was_measured_all_the_time():
    session, runs = with_block_one(lambda run: moved(gated(run, "boot-1"), 3 * 3500))
    single = next(run for run in runs if (run.spec.block, run.spec.topology.name) == (1, "single"))
    between = [moved(replace(single, spec=replace(single.spec, id=f"x{n}", cell=f"x{n}")), 3500 * n) for n in (1, 2)]
    assert interrupted_pairs.halves(Table([*runs, *between])) == {}
    assert len(interrupted_pairs.halves(Table(runs))) == 1
    assert pairs(session, [moved(run, 30 * 86_400) if run.spec.block > 4 else run for run in runs]) == 7


def test_a_session_that_went_on_between_two_blocks_loses_no_pair():
    session, runs = made_up(cells=1, blocks=8)
    assert pairs(session, [moved(run, 30 * 86_400) if run.spec.block > 4 else run for run in runs]) == 8
