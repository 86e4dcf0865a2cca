"""Prometheus and Grafana are waited for, and what is wrong with their pods is told at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from fakes import running
from kubernetes_objects import a_container, a_pod

from bench.errors import TargetFailed
from bench.targets.k8s import monitoring as k8s_monitoring


class Pods:
    """kubectl, for these pods of the windows."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = list(pods)
        self.asked: list[str] = []

    def get(self, *arguments: str) -> list[dict[str, Any]]:
        self.asked.append(arguments[-1])
        return self.pods


@contextmanager
def answering(*paths: str, after: threading.Event | None = None) -> Iterator[str]:
    """A server with these pages, which answers 503 until `after` is set."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_ready = after is None or after.is_set()
            self.send_response(200 if is_ready and self.path in paths else 503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(server):
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k8s_monitoring, "POLL_SECONDS", 0.02)


def wait(pods: Pods, url: str) -> None:
    k8s_monitoring.wait(pods, "a", prometheus_url=url, grafana_url=url)  # type: ignore[arg-type]


def test_it_returns_when_both_answer_and_not_before() -> None:
    is_ready = threading.Event()
    threading.Timer(0.3, is_ready.set).start()
    with answering("/-/ready", "/api/health", after=is_ready) as url:
        wait(Pods(), url)
    assert is_ready.is_set()


def test_a_window_whose_image_cannot_be_had_is_named_long_before_the_deadline() -> None:
    unpullable = a_container("grafana", image="grafana/grafana:0", state={"waiting": {"reason": "ImagePullBackOff"}})
    pods = Pods(a_pod("grafana", node="w1", containerStatuses=[unpullable]))
    with (
        answering("/-/ready") as url,
        pytest.raises(TargetFailed, match=r"image grafana/grafana:0 cannot be pulled on w1"),
    ):
        wait(pods, url)
    assert pods.asked == ["app.kubernetes.io/name in (grafana)"]


def test_at_the_deadline_the_late_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k8s_monitoring, "READY_SECONDS", 0.3)
    with answering("/api/health") as url, pytest.raises(TargetFailed, match="prometheus did not answer within"):
        wait(Pods(), url)
