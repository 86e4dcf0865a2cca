"""A real Prometheus, beside a real exporter and Ray's pages as they were once: what it shows, and what is kept of that."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from builders import a_sample
from fakes import running
from made_up_records import MadeUpRun, made_up_spec
from real_prometheus import NODES, RealPrometheus, a_real_prometheus, free_port

from bench.cluster.incoming import SESSION_GAUGES
from bench.doctor import monitoring
from bench.doctor.finding import Finding
from bench.errors import RecordDamaged
from bench.model import Extract, Run, to_json
from bench.prometheus import boards as committed
from bench.prometheus import extract, run_view
from bench.prometheus.board_queries import other_expressions, queries
from bench.prometheus.client import Grafana, Prometheus
from bench.prometheus.scraping import SCRAPE_SECONDS, Page
from bench.prometheus.session_gauges import SENT, Gauge

pytestmark = pytest.mark.prometheus

KILL_ALERT = 'last_over_time(ALERTS{alertname="MemoryKill"}[1h])'


@dataclass
class Watched:
    """A Prometheus that watches two nodes and an exporter."""

    real: RealPrometheus
    good: MadeUpRun
    throttled: MadeUpRun
    waiting: MadeUpRun  # for a third node, for ever
    begun: float

    @property
    def url(self) -> str:
        return self.real.url

    @property
    def pages(self) -> tuple[Page, ...]:
        return self.real.pages

    @property
    def prometheus(self) -> Prometheus:
        return self.real.prometheus


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    records, folder = tmp_path_factory.mktemp("records"), tmp_path_factory.mktemp("prometheus")
    begun = time.time()
    for topology in ("single", "multi"):
        good = MadeUpRun(records, made_up_spec(topology)).whole()
    throttled = MadeUpRun(records, made_up_spec(id="b02-single-inference-c01", block=2)).whole(throttled=40)
    spec = made_up_spec("multi", id="b03-multi-inference-c01", block=3, samples=50)
    waiting = MadeUpRun(records, replace(spec, topology=replace(spec.topology, nodes=3)))
    waiting.start_up()
    waiting.turn(1)
    waiting.turn(2)
    progress = {
        SENT: 1e9,
        "bench_session_runs_done": 3,
        "bench_session_runs_wanted": 4,
        "bench_session_left_seconds": 9,
    }
    gauges = tuple(Gauge(name=name, labels=(spec.session,), value=value) for name, value in progress.items())
    (records / spec.session / SESSION_GAUGES).write_bytes(to_json(gauges))
    with a_real_prometheus(folder, records) as real:
        watched = Watched(real, good, throttled, waiting, begun)
        real.until(real.is_scraped_often)
        real.killed.set()
        real.until(lambda: bool(real.prometheus.query(KILL_ALERT)))
        yield watched


def asked(name: str, watched: Watched, **chosen: str) -> list[str]:
    board = committed.load()[name]
    found = monitoring.empty_panels(watched.prometheus, board, chosen=chosen, begin=watched.begun - 60, end=time.time())
    return list(map(str, found))


@pytest.mark.parametrize("name", committed.NAMES)
def test_every_panel_brings_data(watched: Watched, name: str) -> None:
    assert asked(name, watched) == []


@pytest.mark.parametrize("name", committed.NAMES)
def test_prometheus_understands_annotations_and_variables_too(watched: Watched, name: str) -> None:
    for query in other_expressions(committed.load()[name]):
        watched.prometheus.query(re.sub(r"\$\w+", "x", query.expr))


def test_a_panel_without_data_is_named_with_the_metric_that_is_missing(watched: Watched) -> None:
    text = json.dumps(committed.load()["nodes-and-network"]).replace("ray_node_mem_used{", "ray_node_mem_taken{")
    found = monitoring.empty_panels(
        watched.prometheus, json.loads(text), chosen={}, begin=watched.begun - 60, end=time.time()
    )
    assert [str(each) for each in found] == [
        "raymeter 3: Nodes and network / Memory use by node, bytes as reported by Ray: Prometheus has no metric ray_node_mem_taken"
    ]


def test_a_panel_of_a_session_that_is_not_there_is_empty(watched: Watched) -> None:
    empty = asked("experiment", watched, session="of-yesterday")
    assert "raymeter 4: Experiment / Parameters of the cell: no data of bench_cell_param" in empty


def test_a_run_whose_samples_prometheus_has_is_reconciled(watched: Watched) -> None:
    seen = run_view.look(watched.url, watched.good.spec, watched.good.samples)
    assert seen.reconciled is True


def test_a_run_that_prometheus_shows_otherwise_is_not_reconciled_and_it_says_where(watched: Watched) -> None:
    more = [*watched.good.samples, a_sample(5.0, turn=4)]
    found = run_view.settled_differences(watched.prometheus, watched.good.spec, more, settle_seconds=0)
    assert len(found) == 2
    assert "the record has 5.0" in found[0]
    assert f"the record has {len(more)} samples, Prometheus {len(more) - 1}" in found[1]


def test_a_window_that_does_not_answer_is_none_and_no_failure(watched: Watched) -> None:
    seen = run_view.look(f"http://127.0.0.1:{free_port('127.0.0.1')}", watched.good.spec, watched.good.samples)
    assert seen == run_view.RunView(reconciled=None)


def test_what_prometheus_has_of_a_run_is_kept_with_its_nodes_and_agrees_with_the_record(
    watched: Watched, tmp_path: Path
) -> None:
    good = watched.good
    said, file = extract.extract(watched.url, good.spec, run_view.span_of(watched.prometheus, good.spec))
    (tmp_path / "series").write_bytes(file)
    run = Run(spec=good.spec, status="ok", samples=tuple(good.samples), reconciled=True, extract=said)
    extract.check(tmp_path / "series", run)
    with pytest.raises(RecordDamaged, match=r"the record has 5\.0"):
        extract.check(tmp_path / "series", replace(run, samples=(*run.samples, a_sample(5.0, turn=4))))
    text = gzip.decompress(file).decode()
    families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {"bench_sample_value", "bench_node_usage", "ray_node_cpu_utilization", "up"} <= families
    assert {*re.findall(r'run="([^"]*)"', text)} == {good.spec.folder}, "other runs have extracts of their own"
    assert {*re.findall(r'instance="([^"]*)"', text)} == {*NODES}


def test_a_run_that_prometheus_does_not_know_has_no_extract_and_says_so(watched: Watched) -> None:
    stranger = made_up_spec(id="of-another-day")
    said, file = extract.extract(watched.url, stranger, run_view.span_of(watched.prometheus, stranger))
    assert (said, file) == (Extract(missing="Prometheus does not know this run"), b"")
    span = run_view.span_of(watched.prometheus, watched.good.spec)
    said, _ = extract.extract(f"http://127.0.0.1:{free_port('127.0.0.1')}", watched.good.spec, span)
    assert said.missing.startswith("Prometheus did not answer: ")


def test_throttling_in_a_run_is_an_alert_of_that_run_alone(watched: Watched) -> None:
    found = alerts(watched, watched.throttled)
    assert "Throttled: head was throttled in 40.0% of its periods in a sample of ray" in found
    assert not [alert for alert in alerts(watched, watched.good) if alert.startswith("Throttled")]


def test_a_node_that_is_not_there_is_an_alert(watched: Watched) -> None:
    deadline = time.monotonic() + 60
    while not (found := [each for each in alerts(watched, watched.waiting) if each.startswith("LostNode")]):
        assert time.monotonic() < deadline
        time.sleep(1)
    assert found == ["LostNode: 1 of the cluster's nodes was not heard of while the run went on"]


@pytest.mark.parametrize(
    ("values", "for_seconds", "worst"),
    [
        ([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 10.0, 1.0),  # the second node was scraped a moment after the first
        ([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0.0, 2.0),
        ([2.0, 3.0, 2.0, 2.0, 2.0, 2.0, 1.0], 10.0, 2.0),
        ([2.0, 2.0, 1.0], 10.0, None),
    ],
)
def test_an_alert_tells_the_worst_that_lasted_and_not_a_moment(
    values: list[float], for_seconds: float, worst: float | None
) -> None:
    points = [(SCRAPE_SECONDS * place, value) for place, value in enumerate(values)]
    assert run_view.worst_that_held(points, for_seconds) == worst


def test_a_worker_that_was_killed_for_memory_is_an_alert_of_the_newest_run(watched: Watched) -> None:
    assert "MemoryKill: Ray killed 2 worker processes on worker-1 for want of memory" in alerts(
        watched, watched.waiting
    )
    assert not [alert for alert in alerts(watched, watched.throttled) if alert.startswith("MemoryKill")]
    (series,) = watched.prometheus.query(KILL_ALERT)
    spec = watched.waiting.spec
    found = {name: series.labels[name] for name in ("session", "run", "node")}
    assert found == {"session": spec.session, "run": spec.folder, "node": "worker-1"}


def alerts(watched: Watched, run: MadeUpRun) -> list[str]:
    return list(
        run_view.alerts_of(watched.prometheus, run_view.span_of(watched.prometheus, run.spec), run_view.rules())
    )


def test_prometheus_evaluates_the_same_rules_for_the_boards(watched: Watched) -> None:
    answer = requests.get(f"{watched.url}/api/v1/rules", timeout=10).json()
    found = {each["name"]: each for group in answer["data"]["groups"] for each in group["rules"]}
    assert set(found) == {rule.name for rule in run_view.rules()}
    assert [each["lastError"] for each in found.values() if each.get("lastError")] == []
    assert found["Throttled"]["state"] == "firing"


def test_the_doctor_names_a_page_that_is_not_scraped(watched: Watched) -> None:
    more = Page(job="ray", instance="worker-2", endpoint="metrics")
    found = list(monitoring.targets(watched.prometheus, (*watched.pages, more)))
    assert [(each.about, each.level) for each in found if not is_missed(each)] == [("page metrics of worker-2", "bad")]
    (good,) = [each for each in monitoring.targets(watched.prometheus, watched.pages) if not is_missed(each)]
    assert (good.level, good.seen) == ("good", "all 4 are scraped")


def is_missed(finding: Finding) -> bool:
    """Whether it is about one scrape that took too long, as on a busy machine: no fault."""
    return finding.level == "note" and finding.about.startswith("page ")


def test_the_doctor_asks_every_panel_through_grafana(watched: Watched) -> None:
    with a_grafana(watched.url, committed.load()) as url:
        every_finding = monitoring.findings(
            prometheus_url=watched.url,
            grafana_url=url,
            pages=watched.pages,
            shortest_sample_seconds=SCRAPE_SECONDS,
            chosen={},
        )
        found = [each for each in every_finding if not is_missed(each)]
        assert [each.level for each in found] == ["good", "good", "good"], found
        assert found[1].seen == "2 s, no longer than the shortest samples"
        every = [query for board in committed.load().values() for query in queries(board)]
        needed = [query for query in every if not query.may_be_empty]
        assert {query.board for query in needed} == {board["title"] for board in committed.load().values()}
        assert found[2].seen == f"all {len(needed)} queries of 5 boards that must have data have data"


def test_the_doctor_misses_a_board(watched: Watched) -> None:
    boards = {name: board for name, board in committed.load().items() if name != "live-run"}
    with a_grafana(watched.url, boards) as url:
        found = list(monitoring.boards(Grafana(url), {}))
    assert [(each.about, each.level) for each in found] == [("board live-run", "bad"), ("panels", "good")]


def test_the_doctor_says_that_a_window_does_not_answer() -> None:
    url = f"http://127.0.0.1:{free_port('127.0.0.1')}"
    (found,) = monitoring.findings(prometheus_url=url, grafana_url=None, pages=(), shortest_sample_seconds=1.0)
    assert found.level == "bad"
    assert list(monitoring.findings(prometheus_url=None, grafana_url=None, pages=(), shortest_sample_seconds=1.0)) == []


@contextmanager
def a_grafana(prometheus_url: str, boards: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Answers what the doctor asks of Grafana, and passes the data source's part on."""
    by_uid = {board["uid"]: board for board in boards.values()}
    proxy = "/api/datasources/proxy/uid/raymeter-prometheus"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith(proxy):
                body = requests.get(prometheus_url + self.path.removeprefix(proxy), timeout=10).content
            elif self.path.startswith("/api/search"):
                body = json.dumps([{"uid": uid} for uid in by_uid]).encode()
            else:
                body = json.dumps({"dashboard": by_uid[self.path.rpartition("/")[2]]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(server):
        yield f"http://127.0.0.1:{server.server_port}"
