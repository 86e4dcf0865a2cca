"""An estimate says within which bounds it holds, and what it was made from: earlier sessions, a calibration, or guesses."""

from __future__ import annotations

import pytest

from bench.model import Session
from bench.options import RunRequest
from bench.planning import calibration, estimate, plan
from bench.planning.plan import NOTHING_KNOWN, Known

SHORT = RunRequest(experiments=("granularity",), cpus=2, blocks=1)
LONG = RunRequest(experiments=("granularity",), cpus=2, blocks=60)


def known_of(session: Session, seconds: float = 20.0, runs: int | None = None) -> Known:
    return Known(
        runs={plan.time_key(spec): seconds for spec in session.specs[:runs]},
        clusters={"single": 5.0, "multi": 7.0},
        quiet_check=0.0,
    )


def test_a_guess_is_said_to_be_one_and_has_wide_bounds() -> None:
    session = plan.make(SHORT)
    found = estimate.estimate(session, NOTHING_KNOWN)
    assert found.seconds == plan.estimate_seconds(session)
    assert found.most_seconds / found.seconds == pytest.approx(estimate.WITHIN_GUESSED)
    assert found.describe().endswith("all of them guessed.")


def test_earlier_sessions_narrow_the_bounds_and_are_named() -> None:
    session = plan.make(SHORT)
    found = estimate.estimate(session, known_of(session))
    assert found.seconds == pytest.approx(2 * 20 + 5 + 7)
    assert found.seconds / found.least_seconds == pytest.approx(estimate.WITHIN_EARLIER)
    assert found.describe() == "2 runs, about 52 s (43 s to 62 s): all of them as in earlier sessions."


def test_runs_of_both_kinds_are_counted_apart() -> None:
    session = plan.make(SHORT)
    found = estimate.estimate(session, known_of(session, runs=1))
    assert found.describe().endswith("1 of them as in earlier sessions, 1 of them guessed.")
    assert estimate.WITHIN_EARLIER < found.most_seconds / found.seconds < estimate.WITHIN_GUESSED


def test_a_calibration_scales_guesses_and_not_what_earlier_sessions_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "slowness", lambda: 2.5)
    session = plan.make(SHORT)
    slow = estimate.calibrated(session, NOTHING_KNOWN, wanted=True)
    wait = plan.QUIET_CHECK_SECONDS
    assert plan.estimate_seconds(session, slow) - wait == pytest.approx(2.5 * (plan.estimate_seconds(session) - wait))
    assert "scaled by 2.5, as a calibration of this machine found" in estimate.estimate(session, slow).describe()
    measured = known_of(session)
    assert estimate.calibrated(session, measured, wanted=True) == measured


@pytest.mark.parametrize(
    ("request_", "wanted", "is_calibrated"),
    [(SHORT, None, False), (LONG, None, True), (LONG, False, False), (SHORT, True, True)],
)
def test_a_machine_is_calibrated_where_that_is_asked_for_or_long_runs_are_guessed(
    monkeypatch: pytest.MonkeyPatch, request_: RunRequest, wanted: bool | None, is_calibrated: bool
) -> None:
    monkeypatch.setattr(calibration, "slowness", lambda: 1.5)
    found = estimate.calibrated(plan.make(request_), NOTHING_KNOWN, wanted=wanted)
    assert (found.slowness is not None) == is_calibrated


def test_slowness_is_the_geometric_mean_over_all_kernels_of_what_they_take_here_and_there() -> None:
    assert calibration.KERNELS.keys() == calibration.REFERENCE_SECONDS.keys()
    assert calibration.mean_ratio({"a": 4.0, "b": 1.0}, {"a": 1.0, "b": 1.0}) == pytest.approx(2.0)
    assert calibration.mean_ratio(calibration.REFERENCE_SECONDS, calibration.REFERENCE_SECONDS) == pytest.approx(1.0)


def test_every_kernel_does_work_that_takes_time() -> None:
    assert all(calibration.fastest_seconds(kernel) > 0 for kernel in calibration.KERNELS.values())


def test_what_is_left_follows_how_the_estimates_have_held(monkeypatch: pytest.MonkeyPatch) -> None:
    session = plan.make(SHORT)
    pace = estimate.Pace(session.specs, known_of(session), _begun=100.0)
    assert pace.left_seconds == pytest.approx(2 * 20 + 5 + 7)
    monkeypatch.setattr(estimate.time, "monotonic", lambda: 100.0 + 52.0)
    pace.ended = 1
    assert pace.left_seconds == pytest.approx(2 * 26), "the first half took twice as long as was estimated"
    pace.ended = 2
    assert pace.left_seconds == 0
