"""Where the dashboards of a session are: told at its start and end, by `bench status` and in the HTML report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from builders import a_sample, a_session, a_spec, a_topology
from fakes import FakeHead, FakeTarget, Heard, a_fake_target, run_all

from bench.commands import status
from bench.errors import TargetFailed
from bench.model import Run
from bench.prometheus import session_links
from bench.record import store
from bench.runner import dashboards, measure, quiet_check, session_lock
from bench.runner import run as run_module
from bench.runner.result import SessionResult, announce
from bench.runner.session import remaining
from bench.targets import TargetStatus

GRAFANA = "http://127.0.0.1:3000"
SPECS = tuple(a_spec(id=f"b0{block}-single-inference-c01", block=block, topology=a_topology()) for block in (1, 2))


@pytest.fixture(autouse=True)
def _quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(run_module, "STATUS_SECONDS", 0.1)
    monkeypatch.setattr(quiet_check, "LOOK_SECONDS", 0.01)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[FakeTarget]:
    (tmp_path / "records").mkdir()
    with a_fake_target(FakeHead(tmp_path / "records"), a_topology()) as fake:
        yield fake


@pytest.fixture
def with_grafana(target: FakeTarget, monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    """A target with a Grafana, and a Prometheus that has the session s1."""
    target.cluster = replace(target.cluster, prometheus_url="http://127.0.0.1:9", grafana_url=GRAFANA)
    monkeypatch.setattr(session_links, "newest", lambda _: "s1")
    monkeypatch.setattr(session_links, "side_by_side", lambda _, grafana_url: f"{grafana_url}/several")
    monkeypatch.setattr(
        session_links,
        "find",
        lambda _, grafana_url, session, *, is_running: f"{grafana_url}/{session}/{is_running}",
    )
    return target


def listened(tmp_path: Path, target: FakeTarget) -> Heard:
    session = a_session(SPECS)
    folder, heard = store.create(tmp_path / "results", session), Heard()
    run_all(folder, session, remaining(folder, session).todo, target, listener=heard)
    return heard


def test_a_session_says_once_where_it_can_be_watched(tmp_path: Path, target: FakeTarget) -> None:
    target.cluster = replace(target.cluster, grafana_url=GRAFANA)
    heard = listened(tmp_path, target)
    assert len(heard.begun) == len(SPECS)
    (link,) = heard.links
    assert link.startswith(f"{GRAFANA}/d/raymeter-live-run?var-session={SPECS[0].session}&var-experiment=inference&")


def test_a_session_without_grafana_says_nothing_of_dashboards(tmp_path: Path, target: FakeTarget) -> None:
    assert listened(tmp_path, target).links == []


@pytest.mark.parametrize("was_up", [True, False])
def test_at_the_end_there_is_a_link_only_if_the_deployment_stays_up(
    tmp_path: Path, with_grafana: FakeTarget, *, was_up: bool
) -> None:
    with_grafana.is_up = was_up
    session = a_session(SPECS[:1])
    work = remaining(store.create(tmp_path / "results", session), session)
    link = measure.measure(work, with_grafana).dashboards  # type: ignore[arg-type]  # a fake
    assert link == (f"{GRAFANA}/{session.id}/False" if was_up else "")
    assert with_grafana.is_up == was_up


@pytest.mark.parametrize("link", [f"{GRAFANA}/d/x?a=1&b=2", ""])
def test_the_end_of_a_session_and_its_page_have_the_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], link: str
) -> None:
    folder = store.create(tmp_path, a_session())
    run = Run(spec=a_spec(), status="ok", samples=(a_sample(),))
    announce(SessionResult(folder=folder, session=a_session(), runs=[run], dashboards=link), as_json=False)
    page, said = (folder / "report.html").read_text(), capsys.readouterr().err
    assert ('href="http://127.0.0.1:3000/d/x?a=1&amp;b=2"' in page) == bool(link)
    assert (f"Dashboards of this session, until `bench down`: {link}" in said) == bool(link)


def test_status_leads_to_the_newest_session(with_grafana: FakeTarget) -> None:
    lines = status._lines("docker", TargetStatus(cluster=with_grafana.cluster))
    assert lines[-3:] == [
        f"  Grafana   {GRAFANA}",
        f"  session s1: {GRAFANA}/s1/False",
        f"  sessions side by side: {GRAFANA}/several",
    ]


def test_status_as_json_has_the_same_links(with_grafana: FakeTarget) -> None:
    found = status._public("docker", TargetStatus(cluster=with_grafana.cluster))
    links = ("session", "dashboards", "sessions_side_by_side")
    assert [found[name] for name in links] == ["s1", f"{GRAFANA}/s1/False", f"{GRAFANA}/several"]
    nothing = status._public("docker", TargetStatus(cluster=None))
    assert [nothing[name] for name in links] == [None, None, None]


def test_status_follows_a_session_that_is_running(tmp_path: Path, with_grafana: FakeTarget) -> None:
    session = replace(a_session(), id="s1")
    with session_lock.alone(session, tmp_path, "bench run inference"):
        assert dashboards.of_newest(with_grafana.cluster) == ("s1", f"{GRAFANA}/s1/True")


def test_status_has_no_link_without_grafana_or_session(
    with_grafana: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dashboards.of_newest(replace(with_grafana.cluster, grafana_url=None)) == ("", "")
    assert dashboards.side_by_side(replace(with_grafana.cluster, grafana_url=None)) == ""
    monkeypatch.setattr(session_links, "newest", lambda _: "")
    assert dashboards.of_newest(with_grafana.cluster) == ("", "")


def test_a_deployment_that_is_down_or_cannot_be_asked_has_no_link(
    with_grafana: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target: object = with_grafana
    assert dashboards.of_target(target, "s1", is_running=False) == ""  # type: ignore[arg-type]  # a fake
    with_grafana.is_up = True
    assert dashboards.of_target(target, "s1", is_running=False)  # type: ignore[arg-type]

    def failed() -> TargetStatus:
        raise TargetFailed("It does not answer.")

    monkeypatch.setattr(with_grafana, "status", failed)
    assert dashboards.of_target(target, "s1", is_running=False) == ""  # type: ignore[arg-type]
