"""A real Prometheus, which scrapes a real exporter and Ray's pages as they were once."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import requests
from fakes import exporting, running
from repository import ROOT

from bench.errors import TargetFailed
from bench.prometheus.client import Prometheus
from bench.prometheus.scraping import Page, pages, rules, static_config

RAY_PAGE = (ROOT / "tests/unit/golden/ray-2.60.0-head-metrics.txt").read_bytes()
KILLS = b'ray_memory_manager_worker_eviction_total{Type="MemoryManager.TaskEviction"} 2\n'
NODES = ("head", "worker-1")


@dataclass(frozen=True, kw_only=True)
class RealPrometheus:
    """A Prometheus at `url`, which watches two nodes and the exporter of `records`."""

    url: str
    records: Path
    pages: tuple[Page, ...]
    child: subprocess.Popen[bytes]
    log: Path
    killed: threading.Event = field(default_factory=threading.Event)  # once set, the page of worker-1 shows KILLS

    @property
    def prometheus(self) -> Prometheus:
        return Prometheus(self.url)

    def until(self, is_so: Callable[[], bool], *, seconds: float = 60) -> None:
        """Wait until something is so. Fails with Prometheus' log if it ends or the time is over."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if is_so():
                    return
            except (requests.RequestException, TargetFailed):
                pass  # it does not listen yet, or refuses while it starts
            assert self.child.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.2)

    def is_scraped_often(self) -> bool:
        """Whether each page was scraped four times: two are not enough for a rate over 8 s."""
        counts = [series.last for series in self.prometheus.query("count_over_time(up[1m]) and up == 1")]
        return len(counts) == len(self.pages) + 1 and min(counts) >= 4


@contextmanager
def a_real_prometheus(folder: Path, records: Path) -> Iterator[RealPrometheus]:
    """A Prometheus with its files in `folder`, with raymeter's own scrape configuration and rules."""
    killed = threading.Event()
    servers = {name: _page_of_ray(name, killed) for name in ("head", "worker-1", "dash-metrics")}
    port = free_port("127.0.0.1")
    (folder / "rules.yml").write_bytes(rules())
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with all_running(servers.values()), exporting(records) as exporter_url, (folder / "log").open("wb") as log:
        addresses = {name: f"127.0.0.1:{server.server_port}" for name, server in servers.items()}
        addresses["bench-metrics"] = exporter_url.removeprefix("http://")
        found = tuple(replace(page, address=addresses[_server(page)]) for page in pages(NODES))
        config = static_config(found, cluster="made-up").replace("localhost:9090", f"127.0.0.1:{port}")
        (folder / "prometheus.yml").write_text(config)
        child = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            yield RealPrometheus(
                url=f"http://127.0.0.1:{port}",
                records=records,
                pages=found,
                child=child,
                log=folder / "log",
                killed=killed,
            )
        finally:
            child.terminate()
            child.wait(timeout=30)


def _server(page: Page) -> str:
    return page.instance if page.endpoint == "metrics" else page.endpoint


def _page_of_ray(name: str, killed: threading.Event) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = RAY_PAGE + (KILLS if name == "worker-1" and killed.is_set() else b"")
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@contextmanager
def all_running(servers: Iterable[ThreadingHTTPServer]) -> Iterator[None]:
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(running(server))
        yield


def free_port(host: str) -> int:
    with socket.create_server((host, 0)) as bound:
        port: int = bound.getsockname()[1]
        return port
