"""Waiting until all is ready: one observation a poll serves every question, and the last one is the result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from bench.errors import TargetFailed
from bench.targets.readiness import wait_until_ready


def no_failure(_observation: object, _missing: Sequence[str]) -> None:
    pass


def timeout_error(observation: object, missing: Sequence[str]) -> TargetFailed:
    return TargetFailed(f"{observation} lacks {', '.join(missing)}.")


def test_the_observation_in_which_nothing_is_missing_is_returned_and_none_is_made_beside_it() -> None:
    observations: Iterator[int] = iter((3, 1, 0))  # a fourth would end the iterator
    seen: list[tuple[int, Sequence[str]]] = []
    last = wait_until_ready(
        lambda: next(observations),
        missing=lambda count: ["node"] * count,
        raise_for_failure=lambda count, missing: seen.append((count, missing)),
        timeout_error=timeout_error,
        until=time.monotonic() + 30,
        poll_seconds=0,
    )
    assert last == 0
    assert seen == [(3, ["node"] * 3), (1, ["node"])]
    assert list(observations) == []


def test_the_error_at_the_deadline_is_made_of_the_last_observation() -> None:
    observations: Iterator[int] = iter((2, 1))
    with pytest.raises(TargetFailed, match=r"^2 lacks node\.$"):
        wait_until_ready(
            lambda: next(observations),
            missing=lambda _: ["node"],
            raise_for_failure=no_failure,
            timeout_error=timeout_error,
            until=time.monotonic() - 1,
            poll_seconds=0,
        )
    assert list(observations) == [1]


def test_a_failure_that_no_waiting_mends_ends_the_wait_at_once() -> None:
    def fail(observation: str, _missing: Sequence[str]) -> None:
        raise TargetFailed(f"{observation} ended.")

    with pytest.raises(TargetFailed, match="head ended"):
        wait_until_ready(
            lambda: "head",
            missing=lambda _: ["node"],
            raise_for_failure=fail,
            timeout_error=timeout_error,
            until=time.monotonic() + 30,
            poll_seconds=0,
        )
