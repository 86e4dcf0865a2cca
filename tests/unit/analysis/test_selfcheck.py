"""The check of raymeter by itself fails a harness that sees what is not there, or misses what is; and a machine that is too noisy."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from builders import a_spec

from bench.analysis.selfcheck import Selfcheck, autocorrelation, judge, variation
from bench.experiments.selfcheck import METRICS
from bench.model import Interval, Run, Sample


def a_run(
    *,
    block: int = 1,
    turns: int = 240,
    noise: float = 0.02,
    twin: float = 1.0,
    slowed: float = 1.1,
    stall_seconds: float = 0.02,
    moved_median: float = 1.0,
    unwatched: float = 1.0,
    seed: int = 1,
) -> Run:
    """A run of the check on a made-up machine, on which a call takes 10 ms."""
    draw = random.Random(f"{seed}/{block}")
    samples = [
        a_sample("unit_seconds", arm, 0.01 * times * draw.gauss(1.0, noise), turn)
        for turn in range(1, turns + 1)
        for arm, times in (("plain", 1.0), ("twin", twin), ("slowed", slowed), ("unwatched", unwatched))
    ]
    samples.append(a_sample("unit_seconds", "plain", 5.0, 0, warmup=True))
    for arm, stall, times in (("plain", 0.0, 1.0), ("stalled", stall_seconds, moved_median)):
        samples.append(a_sample("call_p50_seconds", arm, 0.01 * times))
        samples.append(a_sample("call_p99_seconds", arm, 0.01 * times + stall))
    samples.append(a_sample("timer_seconds", "plain", 5e-8))
    return Run(spec=a_spec(experiment="selfcheck", block=block), status="ok", samples=tuple(samples))


def a_sample(metric: str, arm: str, value: float, turn: int = 1, *, warmup: bool = False) -> Sample:
    return Sample(metric=metric, arm=arm, value=value, interval=Interval(0.0, 0.1), turn=turn, warmup=warmup)


def judged(*runs: Run) -> Selfcheck:
    return judge(runs, METRICS, slow_down=0.1, stall_seconds=0.02)


def failing(found: Selfcheck) -> Sequence[tuple[str, str]]:
    return [(check.of, check.name) for check in found.failures]


@pytest.mark.parametrize("seed", range(10))
def test_a_quiet_machine_and_a_sound_harness_pass(seed: int) -> None:
    found = judged(a_run(seed=seed))
    assert failing(found) == []
    assert found.level == "turns inside one invocation"
    # 12 pairs show 0.89 standard deviations, here of 2 % times the root of two.
    assert found.smallest_effect == pytest.approx(0.89 * 0.02 * 2**0.5, rel=0.15)


def test_twins_that_differ_fail_the_harness() -> None:
    assert failing(judged(a_run(twin=1.03))) == [("harness", "false alarms")]


def test_a_slow_down_that_is_not_found_fails_the_harness() -> None:
    assert failing(judged(a_run(slowed=1.0))) == [("harness", "known slow-down")]
    assert failing(judged(a_run(slowed=0.9))) == [("harness", "known slow-down")]


def test_stalls_that_do_not_show_in_the_tail_or_show_in_the_median_fail_the_harness() -> None:
    assert failing(judged(a_run(stall_seconds=0.0))) == [("harness", "known stalls")]
    assert failing(judged(a_run(moved_median=1.1))) == [("harness", "known stalls")]


def test_watching_that_costs_much_fails_the_harness_and_its_cost_is_told() -> None:
    assert failing(judged(a_run(unwatched=0.97))) == [("harness", "watching")]
    (found,) = (check for check in judged(a_run(unwatched=1 / 1.002)).checks if check.name == "watching")
    assert found.is_good
    assert "in 240 pairs of turns" in found.words


def test_what_watching_costs_is_left_open_where_noise_hides_it() -> None:
    (found,) = (check for check in judged(a_run(noise=0.2)).checks if check.name == "watching")
    assert found.is_good is None


def test_a_noisy_machine_is_not_fit_and_the_harness_is_not_blamed() -> None:
    found = judged(a_run(noise=0.2))
    assert ("machine", "fitness") in failing(found)
    assert next(check.is_good for check in found.checks if check.name == "known slow-down") is None


def test_twelve_invocations_are_paired_by_invocation_and_a_bias_of_each_cancels() -> None:
    runs = [a_run(block=block, turns=80) for block in range(1, 13)]
    found = judged(*runs)
    assert found.level == "12 invocations, each on a fresh cluster"
    assert failing(found) == []
    assert failing(judged(*(a_run(block=block, turns=80, twin=1.03) for block in range(1, 13)))) == [
        ("harness", "false alarms")
    ]


def test_too_few_turns_or_invocations_are_no_check() -> None:
    with pytest.raises(ValueError, match="needs 240"):
        judged(a_run(turns=239))
    with pytest.raises(ValueError, match="needs 12"):
        judged(a_run(block=1), a_run(block=2))


def test_noise_and_memory_of_known_series() -> None:
    assert variation([1.0, 2.0, 3.0]) == pytest.approx(0.5)
    assert autocorrelation([1.0, -1.0] * 50) == pytest.approx(-0.99)
    assert autocorrelation([3.0] * 5) == 0.0
