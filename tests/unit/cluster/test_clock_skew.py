"""Clocks of client, head and Prometheus: how far they are apart, what is refused, and what doctor says of scrapes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import a_session, a_topology
from fakes import FakeHead, a_fake_target, run_all, running

from bench import doctor
from bench.cluster import clock_skew, exporter
from bench.doctor import monitoring
from bench.errors import TargetFailed
from bench.prometheus.client import Target, duration_seconds
from bench.prometheus.scraping import pages
from bench.record import store


@contextmanager
def a_prometheus(ahead_seconds: float) -> Iterator[str]:
    """Says what time it is, by a clock of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now = time.time() + ahead_seconds
            answer = {"status": "success", "data": {"resultType": "scalar", "result": [now, f"{now:.3f}"]}}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(server):
        yield f"http://127.0.0.1:{server.server_port}"


def head_is_ahead(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(exporter, "time", SimpleNamespace(time=lambda: time.time() + seconds))


@pytest.mark.parametrize(
    ("before", "there", "after", "expected"),
    [(10.0, 10.2, 10.5, 0.0), (10.0, 12.5, 10.5, 2.0), (10.0, 8.0, 10.5, -2.0), (10.0, 10.5, 10.5, 0.0)],
)
def test_only_what_the_asking_cannot_explain_is_an_offset(
    before: float, there: float, after: float, expected: float
) -> None:
    assert clock_skew.offset(before, there, after) == expected


@pytest.mark.parametrize("ahead", [30.0, -30.0])
def test_the_clocks_of_head_and_prometheus_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    head_is_ahead(monkeypatch, ahead)
    with a_fake_target(FakeHead(tmp_path), a_topology()) as target, a_prometheus(-ahead) as url:
        found = clock_skew.measure(replace(target.cluster, prometheus_url=url))
        without = clock_skew.measure(replace(target.cluster, prometheus_url="http://127.0.0.1:9"))
    assert found == {"head": pytest.approx(ahead, abs=5), "Prometheus": pytest.approx(-ahead, abs=5)}
    assert set(without) == {"head"}


def test_two_seconds_are_refused_with_the_fix_and_one_is_not() -> None:
    clock_skew.check({"head": 1.0, "Prometheus": -1.0})
    with pytest.raises(TargetFailed) as refused:
        clock_skew.check({"head": 0.0, "Prometheus": 2.0})
    assert str(refused.value) == (
        "Clocks are more than 1 s apart: the clock of Prometheus is 2.0 s ahead of this machine's."
        " Let all machines keep time by NTP: `timedatectl set-ntp true`, or chrony."
    )


def test_no_run_begins_with_clocks_apart_and_the_record_says_how_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYMETER_QUIET_CHECK_SECONDS", "0")
    session = a_session()
    head = FakeHead(tmp_path / "records")
    folder = store.create(tmp_path / "results", session)
    with a_fake_target(head, a_topology()) as target:
        head_is_ahead(monkeypatch, 30.0)
        with pytest.raises(TargetFailed, match=r"the clock of head is \d\d\.\d s ahead of this machine's"):
            run_all(folder, session, session.specs, target)
        assert head.accepted == []
        head_is_ahead(monkeypatch, 0.0)
        again = [replace(spec, attempt=2) for spec in session.specs]
        run_all(folder, session, again, target)
    refused, good = store.load_run(folder, session.specs[0]), store.load_run(folder, again[0])
    assert refused.status == "failed"
    assert "Clocks are more than 1 s apart" in refused.reasons[0]
    assert refused.clock_offsets_seconds["head"] == pytest.approx(30, abs=5)
    assert good.status == "ok"
    assert good.clock_offsets_seconds == {"head": 0.0}


@pytest.mark.parametrize(("text", "seconds"), [("2s", 2.0), ("1m30s", 90.0), ("500ms", 0.5), ("1h", 3600.0), ("", 0.0)])
def test_durations_are_read_as_prometheus_writes_them(text: str, seconds: float) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize(
    ("scraped_every", "shortest", "level", "words"),
    [
        (15.0, 0.25, "bad", "scraped every 15 s, and checks and boards expect 2 s"),
        (2.0, 0.25, "note", "2 s, and the shortest samples of a profile last 0.25 s"),
        (2.0, 2.0, "good", "2 s, no longer than the shortest samples"),
        (0.0, 0.25, None, ""),  # an older Prometheus does not say
    ],
)
def test_scrapes_are_compared_with_the_shortest_sample(
    scraped_every: float, shortest: float, level: str | None, words: str
) -> None:
    def target(job: str, seconds: float) -> Target:
        return Target({"job": job}, is_up=True, error="", interval_seconds=seconds)

    prometheus = SimpleNamespace(targets=lambda: (target("ray", scraped_every), target("somebody's", 60.0)))
    found = list(monitoring.intervals(prometheus, pages(("head",)), shortest))  # type: ignore[arg-type]
    assert [each.level for each in found] == ([level] if level else [])
    assert all(words in each.seen for each in found)


def test_the_shortest_sample_of_all_profiles_is_known() -> None:
    assert 0 < doctor.shortest_sample_seconds() <= 0.25
