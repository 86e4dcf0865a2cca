from __future__ import annotations

import re

import pytest

from bench.analysis.number_format import (
    Scale,
    label,
    noun,
    percent,
    plain,
    quantity,
    ratio,
    span,
    times_as,
    with_interval,
)
from bench.analysis.stats.estimates import Estimate
from bench.experiments import NAMES, load
from bench.model import Metric


def an_estimate(value, low=None, high=None, level=0.95):
    return Estimate(value=value, low=low, high=high, level=level, n=6)


def a_metric(name, unit, kind):
    return Metric(name=name, unit=unit, better="higher", kind=kind)


@pytest.mark.parametrize(
    ("estimate", "shown"),
    [
        (an_estimate(12.3456, 11.9012, 12.8123), "12.35 [11.90, 12.81]"),
        (an_estimate(12.3456, 8.0, 20.0), "12 [8, 20]"),
        (an_estimate(12345.6, 11900.0, 12800.0), "12,350 [11,900, 12,800]"),
        (an_estimate(0.8812, 0.8531, 0.9123), "0.881 [0.853, 0.912]"),
        (an_estimate(0.8812), "0.881"),
        (an_estimate(784.0, 784.0, 784.0), "784"),
        (an_estimate(480.0, 479.99999, 480.00001), "480"),
        (an_estimate(0.88, 0.80, 0.91, level=0.75), "0.88 [0.80, 0.91]~"),
        (an_estimate(-0.0001, -0.06, 0.05), "0.00 [-0.06, 0.05]"),
    ],
)
def test_numbers_are_rounded_to_the_second_digit_of_their_interval(estimate, shown):
    assert with_interval(estimate) == shown


def test_a_ratio_has_three_decimals_at_most():
    assert ratio(an_estimate(0.10998, 0.10932, 0.11001)) == "0.110 [0.109, 0.110]"


@pytest.mark.parametrize(
    ("metric", "value", "shown"),
    [
        (a_metric("throughput", "inputs/s", "rate"), 12_345.0, "12.3 k inputs/s"),
        (a_metric("throughput", "inputs/s", "rate"), 999.4, "999 inputs/s"),
        (a_metric("goodput", "B/s", "rate"), 1.19e8, "119 MB/s"),
        (a_metric("latency", "s", "time"), 0.00212, "2.12 ms"),
        (a_metric("latency", "s", "time"), 0.0, "0 s"),
        (a_metric("cpu", "s/input", "time"), 6.3e-5, "63 µs/input"),
        (a_metric("memory", "B", "size"), 1.5 * 2**20, "1.50 MiB"),
        (a_metric("wire", "B/input", "size"), 490.0, "490 B/input"),
        (a_metric("success", "1", "ratio"), 0.975, "0.975"),
        (a_metric("retransmits", "", "count"), 12.0, "12"),
    ],
)
def test_rates_and_times_have_decimal_prefixes_and_sizes_binary_ones(metric, value, shown):
    assert quantity(metric, value) == shown


@pytest.mark.parametrize(
    ("name", "unit", "kind", "shown"),
    [
        ("throughput_inputs_per_second", "inputs/s", "rate", "throughput"),
        ("goodput_bytes_per_second", "B/s", "rate", "goodput"),
        ("latency_p50_seconds", "s", "time", "latency p50"),
        ("peak_memory_bytes", "B", "size", "peak memory"),
        ("payload_bytes_per_input", "B/input", "size", "payload bytes"),
        ("cpu_seconds_per_input", "s/input", "time", "CPU time"),
        ("success_ratio", "1", "ratio", "success ratio"),
    ],
)
def test_a_label_leaves_out_the_unit_that_stands_beside_it(name, unit, kind, shown):
    assert label(a_metric(name, unit, kind)) == shown


def test_shares_have_two_digits():
    assert [percent(share) for share in (0.02, 0.0512, 0.123, 1.0, 0.0, 0.0004)] == [
        "2 %", "5.1 %", "12 %", "100 %", "0 %", "0.040 %",
    ]  # fmt: skip


def test_a_span_of_one_number_is_that_number():
    assert span([1.33, 1.31]) == "1.3"
    assert span([1.5, 12.0, 140.0]) == "1.5 to 140"
    assert span([1.0, 1.02]) == "1.00 to 1.02"


def test_a_number_has_its_unit():
    assert plain(0.5, Scale(1.0, "s")) == "0.500 s"


def test_what_rounding_leaves_of_nothing_is_nothing():
    assert quantity(Metric(name="sent_bytes", unit="B", better="lower", kind="size"), -1.46e-16) == "0 B"


@pytest.mark.parametrize(
    ("name", "unit", "kind", "said"),
    [
        ("throughput_inputs_per_second", "inputs/s", "rate", "throughput"),
        ("goodput_bytes_per_second", "B/s", "rate", "goodput"),
        ("jobs_per_second", "jobs/s", "rate", "rate of jobs"),
        ("calls_per_second", "calls/s", "rate", "rate of calls"),
        ("read_bytes_per_second", "B/s", "rate", "read rate"),
        ("search_seconds", "s", "time", "search time"),
        ("startup_seconds", "s", "time", "startup time"),
        ("time_to_target_seconds", "s", "time", "time to target"),
        ("call_latency_p50_seconds", "s", "time", "call latency p50"),
        ("overhead_per_task_seconds", "s", "time", "overhead per task"),
        ("cpu_seconds_per_job", "s/job", "time", "CPU time"),
        ("projected_hours", "h", "time", "number of projected hours"),
        ("jobs_set_aside", "jobs", "count", "number of jobs set aside"),
        ("iterations_to_target", "iterations", "count", "number of iterations to target"),
        ("payload_bytes_per_input", "B/input", "size", "amount of payload bytes"),
        ("peak_memory_bytes", "B", "size", "peak memory"),
        ("success_ratio", "1", "ratio", "success ratio"),
        ("share_of_jobs", "jobs/job", "ratio", "share of jobs"),
    ],
)
def test_a_metric_is_the_subject_of_a_sentence_in_the_singular(name, unit, kind, said):
    assert noun(a_metric(name, unit, kind)) == said


@pytest.mark.parametrize("experiment", NAMES)
def test_every_headline_makes_a_sentence(experiment):
    headline = load(experiment).metrics[0]
    last = re.split(r" (?:of|to|per|at) ", noun(headline))[0].rsplit(" ", 1)[-1]
    assert not last.endswith("s"), f"{noun(headline)} is 3"
    assert times_as(headline) == ("times as long" if headline.kind == "time" else "times as high")
