"""What a session is about is named beforehand, is at most five comparisons, and is what the record says."""

from __future__ import annotations

import pytest

from bench.errors import BadInput
from bench.model import Session, from_json, to_json
from bench.options import RunRequest
from bench.planning import plan

SIX = ("batch=1,2,3,4,5,6",)


def a_session(primary: str, *experiments: str) -> Session:
    return plan.make(RunRequest(experiments=experiments or ("inference",), sets=SIX, cpus=2, primary=primary))


def test_cells_are_named_as_the_plan_lists_them() -> None:
    session = a_session("c03, inference:c01,c03")
    assert session.primary_cells == ("inference c03", "inference c01")
    assert from_json(to_json(session), Session) == session
    assert a_session("").primary_cells == ()


def test_a_sixth_is_refused_before_anything_runs() -> None:
    assert len(a_session("c01,c02,c03,c04,c05").primary_cells) == 5
    with pytest.raises(BadInput, match="must name at most 5 comparisons, got 6"):
        a_session("c01,c02,c03,c04,c05,c06")


def test_a_cell_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadInput, match=r"unknown cell.*c01 to c12"):
        a_session("c99")


def test_a_cell_of_two_experiments_needs_its_experiments_name() -> None:
    with pytest.raises(BadInput, match="does not name the experiment"):
        plan.make(RunRequest(experiments=("inference", "network"), cpus=2, primary="c01"))
    named = plan.make(RunRequest(experiments=("inference", "network"), cpus=2, primary="network:c01"))
    assert named.primary_cells == ("network c01",)
