"""The ledger of real sessions on a link that is shaped: what is slower is what was made slower."""

from __future__ import annotations

from dataclasses import replace

import pytest
from person import Bench

from bench import analysis
from bench.analysis.ledger.network_ledger import Ledger

pytestmark = [pytest.mark.ray, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(600)]

# One actor sits on the worker: every input crosses the link, and the pool has no way around it. In batches of 100 it
# takes 15 to 30 times as long to send an input as to do all else, which leaves little to the noise of a busy machine.
BY_VALUE = tuple(
    word
    for setting in ("actors=1", "batch=100", "inputs=400", "dtype=float32", "data_path=by-value", "open_loop=off")
    for word in ("--set", setting)
)
INPUT_BYTES = 784 * 4


def ledger_at(bench: Bench, link_rate: str) -> Ledger:
    code, _, err = bench("run", "inference", "--target", "local", "--blocks", "1", "--link-rate", link_rate, *BY_VALUE)
    assert code == 0, err
    session = replace(bench.session(), allow_noise=True)  # the tests themselves may keep this machine busy
    (cell,) = analysis.build(session, bench.runs()).cells
    assert cell.ledger is not None
    assert cell.ledger.gap is not None
    return cell.ledger


def seconds_of(ledger: Ledger) -> dict[str, float]:
    return {part.name: part.seconds.value for part in ledger.parts if part.seconds}


def test_half_the_rate_of_the_link_is_found_in_the_network_part_and_nowhere_else(bench: Bench) -> None:
    fast, slow = ledger_at(bench, "40mbit"), ledger_at(bench, "20mbit")
    before, after = seconds_of(fast), seconds_of(slow)
    assert set(before) == set(after) == {part.name for part in fast.parts}  # each was measured
    assert fast.parts[0].title == "network, same host"

    expected = INPUT_BYTES * (8 / 20e6 - 8 / 40e6)
    assert after["network"] - before["network"] == pytest.approx(expected, rel=0.25)
    for name in set(before) - {"network"}:
        assert abs(after[name] - before[name]) < 0.25 * expected, name
