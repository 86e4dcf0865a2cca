"""Work that failed at every try is in no rate: a caveat says how much."""

from __future__ import annotations

from dataclasses import replace

from default_sessions import default_session

from bench import analysis


def test_work_that_was_set_aside_is_named_where_there_is_any() -> None:
    session, runs = default_session("clustering")
    assert "set aside" not in " ".join(each.text for each in analysis.build(session, runs).caveats)
    runs[0] = replace(
        runs[0],
        samples=[replace(each, value=2.0) if each.metric == "jobs_set_aside" else each for each in runs[0].samples],
    )
    (caveat,) = [each for each in analysis.build(session, runs).caveats if "set aside" in each.text]
    where = runs[0].spec.topology.name
    assert caveat.severity == "note"
    assert caveat.text == f"jobs failed at every try and were set aside, at most: 2 on {where}; no rate has them."
