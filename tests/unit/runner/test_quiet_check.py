"""A block begins on a quiet machine, or its record says that it did not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from bench.errors import BadInput
from bench.machine.counters import HostCounts
from bench.runner import quiet_check
from bench.runner.quiet_check import Deployment, Look, wait_for_quiet

QUIET, BUSY = Look(0.03, 0.01), Look(0.6, 0.4)


def looks(monkeypatch: pytest.MonkeyPatch, *seen: Look) -> None:
    left: Iterator[Look] = iter(seen)
    monkeypatch.setattr(quiet_check, "look", lambda _pause, _deployment: next(left))


@pytest.mark.parametrize(
    ("seen", "is_quiet"),
    [
        (Look(0.14, 0.04), True),
        (Look(0.15, 0.0), False),
        (Look(0.0, 0.05), False),
        (Look(None, None), True),
        (Look(None, 0.5), False),
        # A deployment that uses 20 % at rest: what is busy beyond that is judged, and the waiting that this share causes.
        (Look(0.34, 0.1, deployment=0.2), True),
        (Look(0.351, 0.0, deployment=0.2), False),
        (Look(0.2, 0.9, deployment=0.2), True),
        (Look(0.25, 0.24, deployment=0.2), True),
        (Look(0.25, 0.26, deployment=0.2), False),
        (Look(0.1, 0.9, deployment=0.2), True),
        (Look(None, 0.5, deployment=0.2), False),
    ],
)
def test_a_machine_is_quiet_below_both_limits_and_what_cannot_be_seen_is_no_reason(seen: Look, is_quiet: bool) -> None:
    assert seen.is_quiet == is_quiet


def test_what_the_deployment_uses_at_rest_is_told_recorded_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(quiet_check.WAIT_VARIABLE, "0")
    monkeypatch.setattr(quiet_check.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(
        quiet_check, "look", lambda _pause, deployment: Look(0.3, 0.01, deployment=deployment.cpus_at_rest / 2)
    )
    assert not wait_for_quiet(Event(), lambda _line: None, deployment=Deployment()).is_quiet
    found = wait_for_quiet(Event(), lambda _line: None, deployment=Deployment(cpus_at_rest=0.4))
    assert (found.is_quiet, found.busy, found.deployment_cpus) == (True, 0.3, 0.4)
    assert Look(0.6, 0.3, deployment=0.2).description == (
        "40% of all CPUs are busy beyond the 20% of the deployment itself (less than 15% is quiet),"
        " tasks wait for a CPU 20% of the time (less than 5%)"
    )


def test_a_quiet_machine_is_not_waited_for_and_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    looks(monkeypatch, QUIET)
    told: list[str] = []
    found = wait_for_quiet(Event(), told.append, deployment=Deployment())
    assert (found.is_quiet, found.busy, found.pressure, told) == (True, 0.03, 0.01, [])
    assert found.boot_id


def test_a_busy_machine_is_waited_for_and_the_reason_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(quiet_check.WAIT_VARIABLE, "30")
    looks(monkeypatch, BUSY, BUSY, QUIET)
    told: list[str] = []
    assert wait_for_quiet(Event(), told.append, deployment=Deployment()).is_quiet
    assert told == [
        (
            "waits up to 30 s for a quiet machine: 60% of all CPUs are busy (less than 15% is quiet),"
            " tasks wait for a CPU 40% of the time (less than 5%)"
        )
    ]


def test_a_machine_that_stays_busy_is_recorded_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(quiet_check.WAIT_VARIABLE, "0")
    looks(monkeypatch, BUSY)
    told: list[str] = []
    found = wait_for_quiet(Event(), told.append, deployment=Deployment())
    assert (found.is_quiet, found.busy) == (False, 0.6)
    assert [line.partition(":")[0] for line in told] == ["begins on a busy machine, and the record says so"]


def test_no_more_is_waited_than_a_budget_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(quiet_check.WAIT_VARIABLE, "60")
    looks(monkeypatch, BUSY)  # a second look there is none
    assert not wait_for_quiet(Event(), lambda _line: None, most_seconds=0.0, deployment=Deployment()).is_quiet


def test_the_wait_ends_when_the_session_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(quiet_check.WAIT_VARIABLE, "60")
    stop = Event()

    def look(_pause: Callable[[float], object], _deployment: Deployment) -> Look:
        stop.set()
        return BUSY

    monkeypatch.setattr(quiet_check, "look", look)
    assert not wait_for_quiet(stop, lambda _line: None, deployment=Deployment()).is_quiet


@pytest.fixture
def half_a_second(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Half a second of a machine of 4 CPUs, of which half a CPU second was used; gives the pauses that were made."""
    counts = iter(
        (
            HostCounts(host_busy_seconds=100.0, pressure_cpu_seconds=10.0),
            HostCounts(host_busy_seconds=100.5, pressure_cpu_seconds=10.25),
        )
    )
    clock = iter((50.0, 50.5))
    monkeypatch.setattr(quiet_check, "read_host", lambda _cpus: next(counts))
    monkeypatch.setattr(quiet_check, "monotonic", lambda: next(clock))
    monkeypatch.setattr(quiet_check.os, "cpu_count", lambda: 4)
    return []


def test_a_look_is_the_share_of_all_cpus_and_of_the_time(half_a_second: list[float]) -> None:
    seen = quiet_check.look(half_a_second.append, Deployment(cpus_at_rest=0.8))
    assert seen == Look(busy=0.25, pressure=0.5, deployment=0.2)
    assert half_a_second == [quiet_check.LOOK_SECONDS]


def test_what_is_counted_of_one_deployment_and_was_measured_of_another_is_told_apart_from_others(
    half_a_second: list[float],
) -> None:
    used = iter((7.0, 7.4))
    counted, measured = Deployment(cpu_seconds=lambda: next(used)), Deployment(cpus_at_rest=0.16)
    seen = quiet_check.look(half_a_second.append, counted, measured)
    assert seen.deployment == pytest.approx(0.2 + 0.04)
    assert seen.is_quiet  # 25 % of the CPUs are busy, 24 % by the deployments, and tasks wait for those


@pytest.mark.parametrize("used", [(7.0, None), (7.0, 6.0)])
def test_a_deployment_that_ends_in_a_look_hides_nothing_of_others(
    half_a_second: list[float], used: tuple[float | None, ...]
) -> None:
    readings = iter(used)
    seen = quiet_check.look(half_a_second.append, Deployment(cpu_seconds=lambda: next(readings)))
    assert (seen.deployment, seen.is_quiet) == (0.0, False)


@pytest.mark.parametrize("said", ["soon", "-1", "inf", "nan"])
def test_a_time_to_wait_that_cannot_be_meant_is_refused(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(quiet_check.WAIT_VARIABLE, said)
    with pytest.raises(BadInput, match="must be a number of seconds from 0"):
        quiet_check.longest_wait()
