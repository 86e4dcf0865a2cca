"""Links to boards: a session is selected, over its time as Prometheus has it."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import pytest

from bench.prometheus import boards, session_links
from bench.prometheus.client import Prometheus, Series

GRAFANA = "http://127.0.0.1:3000"
NOWHERE = "http://127.0.0.1:9"


def series(run: str, experiment: str, seconds: float) -> Series:
    return Series({"session": "s1", "run": run, "experiment": experiment}, ((2000.0, seconds),))


BEGUN = (series("b01", "inference", 1000.0), series("b02", "network", 1100.0))
ENDED = (series("b01", "inference", 1090.0), series("b02", "network", 1200.0))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Series, ...]]:
    """What Prometheus answers, by the part of the metric's name that says which moment it is."""
    answers = {"begun": BEGUN, "ended": ENDED}

    def query(_: Prometheus, expr: str) -> tuple[Series, ...]:
        assert 'session="s1"' in expr
        return next(found for moment, found in answers.items() if f"bench_run_{moment}_timestamp_seconds" in expr)

    monkeypatch.setattr(Prometheus, "query", query)
    return answers


def parts(link: str) -> tuple[str, dict[str, list[str]]]:
    address = urlsplit(link)
    return address.path, parse_qs(address.query)


def test_a_link_to_a_finished_session_covers_its_first_run_to_its_last(known: object) -> None:
    path, query = parts(session_links.find("", GRAFANA, "s1", is_running=False))
    assert path == f"/d/{boards.uid(boards.HOME)}"
    assert query["var-session"] == ["s1"]
    assert query["from"] == [f"{1000 * (1000 - session_links.MARGIN_SECONDS):.0f}"]
    assert query["to"] == [f"{1000 * (1200 + session_links.SETTLE_SECONDS):.0f}"]


def test_a_link_to_a_running_session_follows_it_with_its_newest_experiment(known: object) -> None:
    path, query = parts(session_links.find("", GRAFANA, "s1", is_running=True))
    assert path == f"/d/{boards.uid(boards.LIVE)}"
    assert (query["to"], query["var-experiment"]) == (["now"], ["network"])


def test_a_run_whose_driver_never_ended_is_in_the_link_from_its_begin(known: dict[str, tuple[Series, ...]]) -> None:
    known["ended"] = ()
    _, query = parts(session_links.find("", GRAFANA, "s1", is_running=False))
    assert query["to"] == [f"{1000 * (1100 + session_links.SETTLE_SECONDS):.0f}"]


def test_there_is_no_link_to_a_session_that_prometheus_does_not_have(known: dict[str, tuple[Series, ...]]) -> None:
    known["begun"] = ()
    assert session_links.find("", GRAFANA, "s1", is_running=False) == ""


def test_there_is_no_link_where_prometheus_does_not_answer() -> None:
    assert session_links.newest(NOWHERE) == ""
    assert session_links.find(NOWHERE, GRAFANA, "s1", is_running=False) == ""
    assert session_links.side_by_side(NOWHERE, GRAFANA) == ""


def of_sessions(*begun: tuple[str, str, float]) -> tuple[Series, ...]:
    """When runs began: of a session, of an experiment, when."""
    return tuple(
        Series({"session": session, "experiment": experiment}, ((2000.0, seconds),))
        for session, experiment, seconds in begun
    )


SEVERAL = of_sessions(
    ("s2", "inference", 1500.0),
    ("s1", "inference", 1100.0),
    ("s1", "inference", 1000.0),
    ("s0", "network", 900.0),
    ("s1", "network", 1010.0),
)


def test_the_link_to_several_sessions_has_those_of_the_newest_experiment_the_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Prometheus, "query", lambda *_: SEVERAL)
    path, query = parts(session_links.side_by_side("", GRAFANA))
    assert path == f"/d/{boards.uid(boards.SIDE_BY_SIDE)}"
    assert query == {
        "var-session": ["s1", "s2"],
        "var-experiment": ["inference"],
        "from": [f"{1000 * (1000 - session_links.MARGIN_SECONDS):.0f}"],
        "to": ["now"],
    }


def test_the_link_to_very_many_sessions_has_the_newest_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    many = of_sessions(*((f"s{number:02d}", "inference", 1000.0 + number) for number in range(30)))
    monkeypatch.setattr(Prometheus, "query", lambda *_: many)
    _, query = parts(session_links.side_by_side("", GRAFANA))
    assert query["var-session"] == [f"s{number}" for number in range(10, 30)]


@pytest.mark.parametrize("begun", [(), SEVERAL[3:4]])
def test_one_session_is_not_beside_another(monkeypatch: pytest.MonkeyPatch, begun: tuple[Series, ...]) -> None:
    monkeypatch.setattr(Prometheus, "query", lambda *_: begun)
    assert session_links.side_by_side("", GRAFANA) == ""


def test_a_session_that_begins_is_followed_from_now_on() -> None:
    now = time.time()
    path, query = parts(session_links.following(GRAFANA, "s1", "inference"))
    assert path == f"/d/{boards.uid(boards.LIVE)}"
    assert query["to"] == ["now"]
    assert query["var-experiment"] == ["inference"]
    assert int(query["from"][0]) < 1000 * now


def test_the_boards_that_links_lead_to_are_committed() -> None:
    assert {boards.HOME, boards.LIVE, boards.SIDE_BY_SIDE} <= set(boards.NAMES) == set(boards.load())
