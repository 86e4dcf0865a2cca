"""A ceiling that moves by more than 5 % between start, middle and end of a session is said; one that does not is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import RATE, made_up

from bench import analysis


def caveats(drift: float, *, blocks: int = 9, arm: str = "numpy-all-cpus") -> list[str]:
    """Of a session whose `arm` does 1 + drift times as much in the last third of the blocks."""
    session, runs = made_up(blocks=blocks, noise=0.0, cells=2)
    runs = [
        replace(
            run,
            samples=tuple(
                replace(s, value=s.value * (1 + drift)) if (s.metric, s.arm) == (RATE.name, arm) and s.value else s
                for s in run.samples
            ),
        )
        if run.spec.block > blocks * 2 // 3
        else run
        for run in runs
    ]
    return [caveat.text for caveat in analysis.build(session, runs).caveats if "ceiling of" in caveat.text]


@pytest.mark.parametrize(("drift", "says"), [(0.06, True), (-0.06, True), (0.04, False), (0.0, False)])
def test_a_drift_of_six_per_cent_is_flagged_and_one_of_four_is_not(drift: float, says: bool) -> None:
    found = caveats(drift)
    assert bool(found) is says
    if says:
        assert f"then {'106' if drift > 0 else '94'} %" in found[0]


def test_the_subject_is_no_ceiling_and_five_blocks_are_too_few() -> None:
    assert caveats(0.2, arm="ray") == []
    assert caveats(0.2, blocks=5) == []


@pytest.mark.parametrize(("drift", "says"), [(0.06, True), (-0.06, True), (0.04, False), (0.0, False)])
def test_copying_memory_that_drifts_by_six_per_cent_is_flagged_and_by_four_is_not(drift: float, says: bool) -> None:
    session, runs = made_up(blocks=9, cells=1)
    rates = {run.spec.id: 8e9 * (1 + drift * (run.spec.block > 6)) for run in runs}
    runs = [replace(run, facts=replace(run.facts, copy_bytes_per_second=rates[run.spec.id])) for run in runs]
    found = [caveat.text for caveat in analysis.build(session, runs).caveats if "copying memory" in caveat.text]
    assert bool(found) is says
    if says:
        assert f"then {'106' if drift > 0 else '94'} %" in found[0]
