"""Open-loop load: calls come when they are due, response times count from then, and what cannot be said is not."""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeping import SweepContext

from bench.context import Measured, over_turns
from bench.errors import RunFailed
from bench.experiments.toolkit.histograms import added, decoded, encoded, histogram, seconds_at
from bench.experiments.toolkit.load import Answer, closed_loop, due_seconds, open_loop
from bench.experiments.toolkit.response_times import (
    LATE,
    RESPONSES,
    LoadResult,
    ResponseTimes,
    Subject,
    guess_pass_seconds,
    percentiles,
)
from bench.model import Arm, Interval, Sample

RAY = Arm(name="ray", help="", role="subject")
ANY_NUMBER = 1_000_000_000


@dataclass
class Simulated:
    """Servers on a clock of their own: each call takes its time, one after the other, and none begins in a stall."""

    slots: int = 1
    service_seconds: float = 0.001
    stall_seconds: float = 0.0
    stall_every_seconds: float = 5.0
    send_seconds: float = 0.0
    wrong: frozenset[int] = frozenset()
    time: float = 100.0
    sent: list[tuple[float, int]] = field(default_factory=list)
    due: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = [self.time] * self.slots

    def now(self) -> float:
        return self.time

    def sleep_until(self, moment: float) -> None:
        self.time = max(self.time, moment)

    def send(self, slot: int, number: int) -> None:
        self.sent.append((self.time, slot))
        begin = max(self.time, self.free[slot])
        into = begin % self.stall_every_seconds
        if into < self.stall_seconds:
            begin += self.stall_seconds - into
        self.free[slot] = begin + self.service_seconds
        heapq.heappush(self.due, (self.free[slot], number))
        self.time += self.send_seconds

    def answers(self, seconds: float) -> Sequence[Answer]:
        if self.due and seconds > 0:
            self.time = max(self.time, min(self.due[0][0], self.time + seconds))
        found = []
        while self.due and self.due[0][0] <= self.time:
            came, number = heapq.heappop(self.due)
            found.append(Answer(number, came, b"no" if number in self.wrong else b"ok"))
        return found


def p99(seconds: Sequence[float]) -> float:
    return seconds_at(histogram(seconds), 990)


def told(response: Sequence[float], late: Sequence[float] = (), problem: str = "", number: int = 1) -> LoadResult:
    timed: Measured[Any] = Measured(
        results=(), interval=Interval(1.0, 2.0), arm="ray", turn=number, warmup=False, point="70 % poisson"
    )
    late_seconds = late or [0.0] * len(response)
    return LoadResult(timed=timed, response=histogram(response), late=histogram(late_seconds), problem=problem)


def test_each_choice_of_turns_that_count_has_percentiles_and_no_fewer_than_a_steady_window_is_left() -> None:
    slow, fast = ([seconds] * 1000 for seconds in (2.0, 1.0))
    turns = [told(slow, number=2), *(told(fast, number=number) for number in range(3, 9))]
    p99 = [sample for sample in over_turns(turns, percentiles) if sample.metric == RESPONSES[990].name]
    assert [(sample.since, sample.warmup) for sample in p99] == [(2, False), (3, True), (4, True)]
    assert [sample.value for sample in p99] == pytest.approx([2.0, 1.0, 1.0], rel=1e-3)
    assert [sample.since for sample in over_turns(turns[:5], percentiles)] == [2] * (len(RESPONSES) + 1)
    assert list(over_turns([], percentiles)) == []


def found(*each: LoadResult) -> dict[str, Sample]:
    return {sample.metric: sample for sample in percentiles(each)}


# the schedule


def test_poisson_gaps_are_exponential() -> None:
    from scipy.stats import kstest

    moments = due_seconds("poisson", 200.0, 5_000, "7")
    gaps = [later - before for before, later in pairwise([0.0, *moments])]
    assert kstest(gaps, "expon", args=(0, 1 / 200.0)).pvalue > 0.01
    constant = [later - before for before, later in pairwise(due_seconds("constant", 200.0, 5_000, "7"))]
    assert kstest(constant, "expon", args=(0, 1 / 200.0)).pvalue < 1e-6


def test_a_constant_schedule_has_equal_gaps() -> None:
    assert due_seconds("constant", 4.0, 3, "7") == [0.25, 0.5, 0.75]


@given(st.integers(1, 300), st.floats(0.1, 1e5), st.sampled_from(["poisson", "constant"]))
def test_of_one_seed_the_schedule_is_the_same_at_every_rate_but_for_the_scale(
    calls: int, rate: float, schedule: Any
) -> None:
    moments = due_seconds(schedule, rate, calls, "7/a")
    assert moments == due_seconds(schedule, rate, calls, "7/a")
    assert [moment * rate for moment in moments] == pytest.approx(due_seconds(schedule, 1.0, calls + 5, "7/a")[:calls])
    assert moments == sorted(moments)


def test_another_seed_gives_another_schedule() -> None:
    assert due_seconds("poisson", 1.0, 5, "7") != due_seconds("poisson", 1.0, 5, "8")


# the loops


def test_a_stall_is_seen_by_the_open_loop_and_hidden_by_the_closed_one() -> None:
    """R16: 200 ms every 5 s, at 100 calls a second."""
    schedule = due_seconds("constant", 100.0, 6_000, "7")
    open_one = open_loop(Simulated(stall_seconds=0.2), schedule, most_outstanding=1_000)
    closed_one = closed_loop(Simulated(stall_seconds=0.2), 60.0, in_flight=1)
    assert not open_one.overloaded
    assert p99(open_one.response_seconds) >= 0.1
    assert p99(closed_one.response_seconds) <= 0.005
    assert max(closed_one.response_seconds) >= 0.2  # it was there, and 1 in 4,800 calls
    quiet = open_loop(Simulated(), schedule, most_outstanding=1_000)
    assert p99(quiet.response_seconds) == pytest.approx(0.001, rel=1e-3)


@given(st.floats(1e-5, 0.5), st.integers(1, 3))
def test_calls_are_sent_when_they_are_due_however_long_answers_take(service_seconds: float, slots: int) -> None:
    calls = Simulated(service_seconds=service_seconds, slots=slots)
    due = due_seconds("poisson", 50.0, 200, "7")
    load = open_loop(calls, due, most_outstanding=ANY_NUMBER)
    assert [moment for moment, _ in calls.sent] == [100.0 + offset for offset in due]
    assert load.late_seconds == [0.0] * 200
    assert len(load.response_seconds) == 200
    assert min(load.response_seconds) >= service_seconds - 1e-9


def test_response_times_count_from_when_a_call_was_due_and_not_from_when_it_was_sent() -> None:
    load = open_loop(Simulated(send_seconds=0.02, service_seconds=0.001), [0.01, 0.02, 0.03], most_outstanding=10)
    assert load.late_seconds == pytest.approx([0.0, 0.01, 0.02])
    assert load.response_seconds == pytest.approx([0.001, 0.011, 0.021])


def test_more_unanswered_calls_than_the_bound_end_the_load_and_it_says_overloaded() -> None:
    load = open_loop(Simulated(service_seconds=1.0), due_seconds("constant", 100.0, 500, "7"), most_outstanding=20)
    assert load.overloaded == "overloaded: 20 calls were unanswered 0.21 s after the start"
    assert len(load.values) == 20  # what was sent is waited for
    assert load.end == pytest.approx(100.01 + 20.0)


def test_a_call_goes_to_who_has_the_fewest_and_those_who_are_idle_take_turns() -> None:
    idle = Simulated(slots=3, service_seconds=0.001)
    open_loop(idle, due_seconds("constant", 10.0, 6, "7"), most_outstanding=10)
    assert [slot for _, slot in idle.sent] == [0, 1, 2, 0, 1, 2]
    busy = Simulated(slots=2, service_seconds=100.0)
    load = open_loop(busy, due_seconds("constant", 10.0, 8, "7"), most_outstanding=10)
    assert sorted(load.slots) == [0] * 4 + [1] * 4


def test_the_closed_loop_keeps_as_many_in_flight_and_finds_the_maximum() -> None:
    load = closed_loop(Simulated(slots=2, service_seconds=0.01), 5.0, in_flight=4)
    assert len(load.values) / (load.end - load.begin) == pytest.approx(200.0, rel=0.02)
    assert max(load.response_seconds) == pytest.approx(0.04)


def test_calls_that_nobody_answers_fail_the_run() -> None:
    class Silent(Simulated):
        def answers(self, seconds: float) -> Sequence[Answer]:
            return ()

    with pytest.raises(RunFailed, match=r"No answer in 120 s to 1 call\."):
        open_loop(Silent(), [0.1], most_outstanding=10)


# histograms and percentiles


@given(st.lists(st.lists(st.floats(1e-6, 100.0), max_size=50), min_size=1, max_size=4))
def test_merged_equals_pooled_also_when_they_come_from_files(parts: list[list[float]]) -> None:
    merged = added(decoded(encoded(histogram(part))) for part in parts)
    pooled = histogram(seconds for part in parts for seconds in part)
    assert merged.get_total_count() == sum(map(len, parts))
    assert [seconds_at(merged, each) for each in (500, 900, 990, 999)] == [
        seconds_at(pooled, each) for each in (500, 900, 990, 999)
    ]


@pytest.mark.parametrize("per_mille", [500, 900, 990, 999])
def test_percentiles_are_those_of_the_values_to_three_digits(per_mille: int) -> None:
    draw = Random(7)
    seconds = [draw.lognormvariate(-7, 1.5) for _ in range(20_000)]
    exact = sorted(seconds)[20_000 * per_mille // 1000 - 1]
    assert seconds_at(histogram(seconds), per_mille) == pytest.approx(exact, rel=1e-3)


def test_what_buckets_get_wrong_is_right() -> None:
    """P23: 1,000 of 1 ms and 5 of 3 s."""
    seconds = [0.001] * 1000 + [3.0] * 5
    assert [seconds_at(histogram(seconds), each) for each in (500, 990, 999)] == pytest.approx(
        [0.001, 0.001, 3.0], rel=1e-3
    )


def test_percentiles_of_turns_are_merged_and_not_averaged() -> None:
    samples = found(told([0.001] * 900), told([1.0] * 100))
    assert samples["response_time_p50_seconds"].value == pytest.approx(0.001, rel=1e-3)
    assert samples["response_time_p99_seconds"].value == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("calls", "there"), [(19, 0), (20, 1), (99, 1), (100, 2), (999, 2), (1000, 3), (9_999, 3), (10_000, 4)]
)
def test_a_percentile_takes_ten_calls_beyond_it(calls: int, there: int) -> None:
    samples = found(told([0.002] * calls))
    values = [samples[metric.name].value for metric in RESPONSES.values()]
    assert [value is not None for value in values] == [True] * there + [False] * (4 - there)
    if calls == 9_999:
        assert samples["response_time_p999_seconds"].reason == "9999 calls; p99.9 needs 10000"


def test_percentiles_of_a_late_generator_are_not_given() -> None:
    samples = found(told([0.01] * 1000, late=[0.0001] * 980 + [0.005] * 20))
    assert samples["response_time_p50_seconds"].value == pytest.approx(0.01, rel=1e-3)
    reason = samples["response_time_p99_seconds"].reason
    assert reason == "generator late: at p99 calls were sent 5 ms after they were due, over 10% of the response time"
    assert samples[LATE.name].value == pytest.approx(0.0001, rel=1e-3)


def test_an_overloaded_turn_leaves_its_point_without_percentiles() -> None:
    samples = found(told([0.01] * 1000), told([0.01] * 1000, problem="overloaded: 20 calls were unanswered"))
    assert {samples[metric.name].reason for metric in RESPONSES.values()} == {"overloaded: 20 calls were unanswered"}


# in a turn


def measured(calls: Any, folder: Path, choice: str = "poisson", seconds: float = 20.0) -> tuple[Any, list[Sample]]:
    context = SweepContext(nodes=[], folder=folder)
    subject = Subject(
        arm=RAY,
        calls=calls,
        in_flight=1,
        is_right=lambda _, value: value == b"ok",
        by_node=lambda slots: {"head": float(len(slots))},
    )
    times = ResponseTimes(context=context, subject=subject, choice=choice, seconds=seconds)  # type: ignore[arg-type]
    samples = [sample for turn in context.turns() for sample in times.measure(turn)]
    return context, samples + list(times.percentiles())


def test_loads_are_shares_of_the_closed_loop_of_the_same_turn(tmp_path: Path) -> None:
    context, samples = measured(Simulated(service_seconds=0.01), tmp_path, "both")
    offered = {sample.point: sample.value for sample in samples if sample.metric == "offered_calls_per_second"}
    assert list(offered) == [f"{share} % {when}" for when in ("poisson", "constant") for share in (50, 70, 90)]
    assert list(offered.values()) == pytest.approx([50, 70, 90] * 2, rel=0.01)
    (maximum, _) = [sample for sample in samples if sample.metric == "closed_loop_maximum_calls_per_second"]
    assert not maximum.point
    assert maximum.value == pytest.approx(100, rel=0.01)
    assert context.credits["ray", "50 % constant"] == {"head": pytest.approx(1000, rel=0.01)}
    p50 = {s.point: s.value for s in samples if s.metric == "response_time_p50_seconds"}
    assert p50["90 % constant"] == pytest.approx(0.01, rel=0.01)  # evenly spread calls wait for none
    assert p50["90 % poisson"] > p50["50 % poisson"] > 0.01  # type: ignore[operator]


def test_histograms_are_kept_and_add_up_to_what_was_said(tmp_path: Path) -> None:
    _, samples = measured(Simulated(service_seconds=0.01), tmp_path, "constant")
    lines = [json.loads(line) for line in (tmp_path / "response_times.jsonl").read_text().splitlines()]
    assert [(line["point"], line["turn"], line["warmup"]) for line in lines] == [
        (f"{share} % constant", 1, False) for share in (50, 70, 90)
    ]
    merged = added(decoded(line["response_nanoseconds"]) for line in lines if line["point"] == "70 % constant")
    (said,) = [
        sample for sample in samples if (sample.metric, sample.point) == ("response_time_p99_seconds", "70 % constant")
    ]
    assert seconds_at(merged, 990) == said.value


def test_a_wrong_answer_leaves_no_percentile_and_an_invalid_run(tmp_path: Path) -> None:
    context, samples = measured(Simulated(service_seconds=0.01, wrong=frozenset({3})), tmp_path)
    assert len(context.reasons) == 4
    assert "70 % poisson: 1 of 1400 calls gave a wrong answer" in context.reasons
    assert all(sample.value is None for sample in samples if sample.metric.startswith("response"))


def test_off_means_no_load_and_no_time(tmp_path: Path) -> None:
    assert measured(Simulated(), tmp_path, "off")[1] == []
    guessed = {choice: guess_pass_seconds(choice, 2.0) for choice in ("off", "poisson", "both")}
    assert guessed == {"off": (), "poisson": (2.0,) * 4, "both": (2.0,) * 8}
