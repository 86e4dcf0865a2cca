"""Requests of ours go where they are sent, whatever the environment says; and there is one client for all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from builders import a_spec
from fakes import TOKEN, FakeHead, running, serving
from recording_proxy import RecordingProxy, recording_proxy
from repository import ROOT

from bench import http_client
from bench.runner.jobs_api import JobsApi
from bench.targets import readiness
from bench.targets.docker import engine

CLIENTS = (
    "import requests",
    "from requests import get",
    "import urllib.request",
    "from urllib.request import urlopen",
    "import http.client",
    "import urllib3",
    "import httpx",
    "import aiohttp",
    "from ray.job_submission import JobSubmissionClient",
)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RecordingProxy]:
    """A proxy that the environment names for everything, and a .netrc with a password for this machine."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password of-another-program\n")
    netrc.chmod(0o600)
    with recording_proxy() as found:
        for name, value in found.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("NETRC", str(netrc))
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "no such file"))
        monkeypatch.setenv("CURL_CA_BUNDLE", str(tmp_path / "no such file"))
        yield found


def test_a_client_that_obeys_the_environment_would_be_seen_at_the_proxy(proxy: RecordingProxy, tmp_path: Path) -> None:
    with serving(FakeHead(tmp_path)) as address, suppress(requests.RequestException):
        requests.get(address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5)
    assert any(TOKEN.encode() in received or b"GET http://" in received for received in proxy.received)


def test_a_job_is_submitted_past_the_proxy_and_with_our_token(proxy: RecordingProxy, tmp_path: Path) -> None:
    head = FakeHead(tmp_path)
    with serving(head) as address:
        job_id = JobsApi(address, TOKEN).submit(a_spec())
        assert JobsApi(address, TOKEN).status(job_id)[0] in ("RUNNING", "SUCCEEDED")
        assert readiness.get(f"{address}/api/jobs/{job_id}", TOKEN)[0] == 200
    assert head.accepted == [job_id]
    assert proxy.received == []


def test_a_netrc_gives_no_password_to_a_node(proxy: RecordingProxy) -> None:
    heard = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get("Authorization"))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}/"
    with running(server):
        http_client.get(url, timeout_seconds=5)
        http_client.get(url, token=TOKEN, timeout_seconds=5)
    assert heard == [None, f"Bearer {TOKEN}"]
    assert proxy.received == []


def test_the_docker_engine_is_asked_past_the_proxy(proxy: RecordingProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"ApiVersion": "1.44", "Containers": []} if "version" in self.path else []).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
    with running(server):
        client = engine.connect()
        assert client.containers.list() == []
        client.close()
    assert asked[0] == "/version"
    assert asked[-1].startswith("/v1.44/containers/json")
    assert proxy.received == []


@pytest.mark.parametrize("line", CLIENTS)
def test_the_linter_refuses_another_http_client(line: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--stdin-filename",
            "bench/cluster/another.py",
            "--select",
            "TID251",
            "-",
        ],
        cwd=ROOT,
        input=f"{line}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bench.runner.jobs_api" in done.stdout or "bench.http_client" in done.stdout
