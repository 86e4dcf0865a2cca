"""Timed work that was not done is found: values that are not computed yet, and credits that differ from the headline."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from builders import RATE, a_sample
from hypothesis import given
from hypothesis import strategies as st

from bench.cluster.work_checks import credit_reasons, credited_share, undeclared, unresolved, unresolved_reason
from bench.model import Interval, Metric


@dataclass(frozen=True, slots=True)
class Slotted:
    inner: Any


@dataclass
class Held:
    inner: Any


class Plain:
    def __init__(self, inner: Any) -> None:
        self.inner = inner


class WithSlots:
    __slots__ = "inner"  # noqa: PLC0205, a single name may stand so

    def __init__(self, inner: Any) -> None:
        self.inner = inner


class Pair(NamedTuple):
    first: int
    second: Any


def numbers() -> Iterator[int]:
    yield 1


def an_array_of(inner: Any) -> Any:
    made = np.empty(2, dtype=object)
    made[1] = inner
    return made


WRAPPERS: tuple[Callable[[Any], Any], ...] = (
    lambda inner: [1, inner],
    lambda inner: (inner, "a"),
    lambda inner: {"key": inner},
    lambda inner: deque([inner]),
    Held,
    Slotted,
    Plain,
    WithSlots,
    lambda inner: Pair(1, inner),
    an_array_of,
)
nested = st.lists(st.sampled_from(WRAPPERS), max_size=6)


@given(nested)
def test_a_value_that_is_not_there_is_found_however_deep_it_lies(wrappers: list[Callable[[Any], Any]]) -> None:
    value: Any = Future()
    for wrap in wrappers:
        value = wrap(value)
    assert unresolved([value]) == {"Future": 1}


@given(nested, st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.binary()))
def test_values_that_are_there_are_no_fault(wrappers: list[Callable[[Any], Any]], value: Any) -> None:
    for wrap in wrappers:
        value = wrap(value)
    assert unresolved([value]) == {}


@pytest.mark.parametrize(
    ("lazy", "kind"),
    [(numbers(), "generator"), (map(str, [1]), "map"), (iter([1]), "list_iterator"), ((n for n in ()), "generator")],
)
def test_what_is_computed_when_it_is_read_was_not_computed(lazy: Any, kind: str) -> None:
    assert unresolved([[lazy]]) == {kind: 1}


def test_a_coroutine_is_not_done() -> None:
    waiting = asyncio.sleep(0)
    assert unresolved([waiting]) == {"coroutine": 1}
    waiting.close()


def test_keys_are_looked_at_and_circles_end() -> None:
    circle: list[Any] = [{Future(): 1}]
    circle.append(circle)
    assert unresolved(circle) == {"Future": 1}


def test_large_arrays_are_not_walked() -> None:
    assert unresolved([np.zeros(50_000_000, dtype=np.uint8), range(10**12), memoryview(bytes(10**7))]) == {}


def test_the_reason_says_what_to_do() -> None:
    reason = unresolved_reason("ray", Counter({"ObjectRef": 100}))
    assert reason.startswith("ray: the measured work returned values that are not computed yet (100 x ObjectRef)")
    assert "ray.get" in reason
    assert unresolved_reason("ray", Counter()) == ""


SAMPLE = a_sample(1000.0, interval=Interval(10.0, 12.0))
INTERVAL = ("ray", 10.0, 12.0)


def test_the_credit_of_an_interval_is_compared_with_its_headline() -> None:
    assert credited_share(SAMPLE, RATE, {INTERVAL: 2000.0}) == 1.0
    assert credited_share(SAMPLE, RATE, {INTERVAL: 500.0}) == 0.25
    assert credited_share(SAMPLE, RATE, {INTERVAL: 0.0}) == 0.0
    assert credited_share(SAMPLE, RATE, {("peer", 10.0, 12.0): 500.0}) is None


@pytest.mark.parametrize("changes", [{"warmup": True}, {"node": "head"}, {"point": "64 KiB"}, {"metric": "other"}])
def test_what_is_no_headline_is_not_compared(changes: dict[str, Any]) -> None:
    assert credited_share(a_sample(1000.0, interval=Interval(10.0, 12.0), **changes), RATE, {INTERVAL: 1.0}) is None


def test_the_worst_interval_of_an_arm_is_its_reason() -> None:
    reasons = credit_reasons({"ray": [1.0, 0.995, 0.5, 0.9], "peer": [1.0, 0.991]}, RATE)
    assert reasons == [
        (
            f"ray: its nodes were credited with 50.0% of the work that {RATE.name} says was done:"
            " credit must return the inputs of each node in one pass"
        )
    ]
    assert credit_reasons({"ray": [1.4, 1.0]}, RATE) == [], "more was done than is counted"
    assert credit_reasons({}, RATE) == []


def test_samples_of_a_metric_that_is_not_declared_are_a_reason_and_never_lost_in_silence() -> None:
    declared = [Metric(name="rate", unit="x/s", better="higher", kind="rate")]
    assert undeclared({"rate"}, declared) == []
    (reason,) = undeclared({"rate", "raet"}, declared)
    assert "does not declare the metrics raet" in reason
