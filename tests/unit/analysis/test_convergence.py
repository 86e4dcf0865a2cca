"""The convergence-point test gives MLPerf's own figures, and finds what converged too soon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from made_up import ARMS, METRICS, SINGLE, made_up

from bench.analysis import Report, build
from bench.analysis.convergence import Guard, is_too_fast, reference_point
from bench.metrics import count
from bench.model import Interval, Sample
from bench.reports import as_text

FIRST = [16, 14, 16, 17, 16, 16, 15, 16, 15, 16]
SECOND = [20, 21, 21, 20, 22, 22, 21, 21, 20, 20]


def test_ten_reference_runs_and_five_of_a_submission_give_the_published_point() -> None:
    point = reference_point(FIRST, 5)
    assert point.mean == pytest.approx(15.75)
    assert point.deviation == pytest.approx(0.433, abs=5e-4)
    assert point.least_mean == pytest.approx(15.2126, abs=5e-5)
    assert point.most_speed_up == pytest.approx(0.0353, abs=5e-5)


def test_another_published_point() -> None:
    point = reference_point(SECOND, 5)
    assert point.least_mean == pytest.approx(19.929, abs=5e-4)
    assert point.most_speed_up == pytest.approx(0.0412, abs=5e-5)


def test_a_submission_below_the_point_is_too_fast_and_one_above_is_not() -> None:
    assert is_too_fast([15, 15, 15, 15, 15], FIRST)
    assert not is_too_fast([16, 15, 15, 16, 15], FIRST)


def test_the_fastest_run_of_a_submission_does_not_condemn_it() -> None:
    assert not is_too_fast([2, 16, 16, 16, 16], FIRST)


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="each needs 3"):
        reference_point(FIRST, 2)


# in a report

NEEDED = count("needed", "samples", means="samples to target")
REFERENCE = ARMS[1]
SUBJECT = replace(ARMS[0], reference=REFERENCE.name)


def report(submission: Sequence[float | None], reference: Sequence[float | None]) -> Report:
    """Of so many blocks on one node, with what each arm needed in each; None: it did not reach the target."""
    session, runs = made_up(
        blocks=len(reference), cells=1, metrics=(METRICS[0], NEEDED), arms=(SUBJECT, REFERENCE), topologies=[SINGLE]
    )
    extra = {SUBJECT.name: submission, REFERENCE.name: reference}
    runs = [
        replace(
            run,
            samples=(
                *(sample for sample in run.samples if sample.metric != NEEDED.name),
                *(
                    Sample(
                        metric=NEEDED.name,
                        value=values[run.spec.block - 1],
                        reason=None if values[run.spec.block - 1] is not None else "it was not reached",
                        interval=Interval(0.0, 1.0),
                        arm=arm,
                        turn=2,
                    )
                    for arm, values in extra.items()
                    if run.spec.block <= len(values)
                ),
            ),
        )
        for run in runs
    ]
    return build(session, runs)


def the_guard(found: Report) -> Guard:
    (guard,) = found.cells[0].guards
    return guard


def told(found: Report) -> str:
    return as_text.render(found)


def test_a_training_that_needs_what_its_reference_needs_is_credible() -> None:
    found = report([16] * 9 + [15], FIRST)
    assert not the_guard(found).is_too_fast
    assert the_guard(found).needed == 16
    assert not any("not the same training" in caveat.text for caveat in found.caveats)
    assert "credible" in told(found)


def test_a_training_that_converged_too_soon_gets_no_verdict() -> None:
    found = report([15] * 10, FIRST)
    point = the_guard(found).point
    assert point is not None
    # Student's quantile of 14 degrees of freedom at 95 % is 1.7613 in every table.
    assert point.least_mean == pytest.approx(15.75 - 1.7613 * point.deviation * 0.5, abs=1e-4)
    assert [caveat.severity for caveat in found.caveats if "not the same training" in caveat.text] == ["refuses"]
    assert "TOO FAST" in told(found)


def test_one_run_may_miss_the_target_and_two_may_not() -> None:
    assert the_guard(report([*[16] * 9, None], FIRST)).needed == 16
    assert "2 runs did not reach the target" in the_guard(report([*[16] * 8, None, None], FIRST)).refusal


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ([16, 15, 14], "3 and 3 runs, and 3 and 4 are needed"),
        ([16] * 10, "use different seeds"),
        ([16] * 9 + [17], "use different seeds"),
    ],
)
def test_what_chance_does_not_show_is_not_told_and_the_reason_is(reference: list[float | None], why: str) -> None:
    found = report([15] * len(reference), reference)
    assert why in the_guard(found).refusal
    assert why in told(found)
