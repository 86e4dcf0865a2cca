"""Alert rules that held while a run went are caveats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from made_up import made_up

from bench.analysis.caveats.evidence import Caveat, Evidence
from bench.analysis.caveats.monitoring import alerts_held
from bench.analysis.rows import Question
from bench.analysis.table import Table
from bench.model import Run, Session

THROTTLED = "Throttled: head was throttled in 40.0% of its periods in a sample of ray"


def evidence(session: Session, runs: Sequence[Run]) -> Evidence:
    asked = Question(session=session, runs={}, topologies=(), margin=0.05, table=Table(runs))
    return Evidence(question=asked, attempts=tuple(runs), cells=(), topologies=())


def caveats_of(alerts: dict[int, tuple[str, ...]]) -> list[Caveat]:
    """Of a session whose runs, by their position, have these alerts."""
    session, runs = made_up(cells=1, blocks=6)
    runs = [replace(run, alerts=alerts.get(position, ())) for position, run in enumerate(runs)]
    found = evidence(session, runs)
    return list(alerts_held(found))


def test_a_session_without_alerts_brings_no_caveat() -> None:
    assert caveats_of({}) == []


def test_an_alert_is_named_with_its_run_and_what_held() -> None:
    (caveat,) = caveats_of({0: (THROTTLED,)})
    assert caveat.severity == "weakens"
    assert caveat.text.startswith("alert Throttled in 1 run (b01-")
    assert "head was throttled in 40.0% of its periods" in caveat.text


def test_the_same_alert_in_many_runs_is_one_caveat_and_two_alerts_are_two() -> None:
    many = caveats_of(dict.fromkeys(range(5), (THROTTLED, "LostNode: 1 of the cluster's nodes was not heard of")))
    assert [caveat.text.split(" (")[0] for caveat in many] == ["alert Throttled in 5 runs", "alert LostNode in 5 runs"]
    assert many[0].text.endswith("; and 3 more).")


def test_a_run_whose_numbers_are_not_used_raises_no_caveat() -> None:
    session, runs = made_up(cells=1, blocks=6)
    bad = tuple(replace(run, status="invalid", alerts=(THROTTLED,)) for run in runs)
    found = evidence(session, bad)
    assert list(alerts_held(found)) == []
