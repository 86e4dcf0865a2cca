"""How long a sample must last, and that those which do not are told, in any metric of any arm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up

from bench import analysis
from bench.analysis.caveats.clock import least_seconds
from bench.model import Clock, Run

FINE = Clock(step_seconds=1e-7, empty_sample_seconds=1e-6)


def short_of(change, **shape) -> list[str]:
    session, runs = made_up(**({"cells": 1, "blocks": 6} | shape))
    return [
        caveat.text
        for caveat in analysis.build(session, list(map(change, runs))).caveats
        if "shorter than" in caveat.text
    ]


def lasting(seconds: float, arm: str, **about):
    """Every sample of `arm` lasts so long, of the metrics that are told by `about`."""

    def change(run: Run) -> Run:
        def one(sample):
            is_meant = sample.arm == arm and all(getattr(sample, name) == value for name, value in about.items())
            begin = sample.interval.begin
            return replace(sample, interval=replace(sample.interval, end=begin + seconds)) if is_meant else sample

        return replace(run, samples=tuple(map(one, run.samples)))

    return change


def with_clock(clock: Clock):
    return lambda run: replace(run, facts=replace(run.facts, clock=clock))


@pytest.mark.parametrize(
    ("clock", "seconds"),
    [
        (None, 0.1),
        (FINE, 0.1),
        (replace(FINE, step_seconds=0.004), 4.0),  # a clock that goes on 250 times a second
        (replace(FINE, empty_sample_seconds=0.01), 0.5),
    ],
)
def test_a_sample_lasts_as_long_as_the_clock_and_the_harness_ask_for(clock, seconds):
    assert least_seconds(clock)[0] == pytest.approx(seconds)


def test_a_coarse_clock_makes_samples_too_short_that_are_long_enough_by_a_fine_one():
    assert short_of(with_clock(FINE)) == []
    (said,) = short_of(with_clock(replace(FINE, step_seconds=0.001)))
    assert said == (
        "216 samples of 216 shorter than 1,000 ms (the shortest 500 ms): a sample needs 1000 steps of the driver's clock."
    )


def test_samples_of_what_the_subject_is_compared_with_are_looked_at_too():
    (said,) = short_of(lasting(0.02, "pool"))
    assert said.startswith("36 samples of 216 shorter than 100 ms (the shortest 20 ms)")


def test_what_is_timed_once_is_as_short_as_it_is():
    assert short_of(lasting(0.02, "ray", metric="startup_seconds")) == []


def test_what_is_shorter_than_a_millisecond_is_said_to_be_no_measurement():
    (said,) = short_of(lasting(0.0005, "pool"))
    assert said.endswith("36 shorter than 1 ms: those are not measurements.")


def test_the_clock_of_a_run_is_no_fact_that_must_be_equal():
    session, runs = made_up(cells=1, blocks=6)
    each = [with_clock(replace(FINE, step_seconds=n * 1e-8))(run) for n, run in enumerate(runs)]
    assert analysis.build(session, each).caveats == analysis.build(session, runs).caveats
