"""A cluster that is out of reach for a while: a proxy process between client and cluster stops, ends or answers by itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from builders import a_sample, a_session, a_spec, a_topology
from fakes import FakeHead, Heard, a_fake_target, run_all

from bench.cluster.recorder import Recorder
from bench.model import Run, Spec
from bench.record import store
from bench.runner import collect, jobs_api, quiet_check
from bench.runner import run as run_module

SPEC = a_spec(id="b01-single-inference-c01", topology=a_topology("single"), deadline_seconds=60.0)
WAIT_SECONDS = 30.0
PROXY = """
import asyncio, sys
port, to = int(sys.argv[1]), int(sys.argv[2])
PAGE = b"HTTP/1.1 404 Not Found\\r\\nContent-Length: 9\\r\\nConnection: close\\r\\n\\r\\nnot found"

async def copy(source, sink):
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()

async def serve(reader, writer):
    if to == 0:
        await reader.read(65536)
        writer.write(PAGE)
        writer.close()
        return
    upstream = await asyncio.open_connection("127.0.0.1", to)
    await asyncio.gather(copy(reader, upstream[1]), copy(upstream[0], writer))

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class Proxy:
    """A process that passes connections on to a port of this machine; `to` 0: answers 404 to everything."""

    def __init__(self, to: int) -> None:
        self.to = to
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start(to)

    def start(self, to: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROXY, str(self.port), str(to)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def stops(proxy: Proxy) -> Callable[[], None]:
    proxy.pause()
    return proxy.go_on


def ends(proxy: Proxy) -> Callable[[], None]:
    proxy.kill()
    return lambda: proxy.start(proxy.to)


def answers_404(proxy: Proxy) -> Callable[[], None]:
    proxy.kill()
    proxy.start(0)

    def back() -> None:
        proxy.kill()
        proxy.start(proxy.to)

    return back


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not what() and time.monotonic() < until:
        time.sleep(0.02)


@contextmanager
def the_way(head: FakeHead) -> Iterator[tuple[object, list[Proxy]]]:
    """A target whose cluster is reached through two proxies."""
    with a_fake_target(head, a_topology()) as target, ExitStack() as exits:
        proxies = [Proxy(port_of(url)) for url in (target.cluster.dashboard_url, target.cluster.exporter_url)]
        for proxy in proxies:
            exits.callback(proxy.kill)
        by_way = [f"http://127.0.0.1:{proxy.port}" for proxy in proxies]
        target.cluster = replace(target.cluster, dashboard_url=by_way[0], exporter_url=by_way[1])
        yield target, proxies


@pytest.mark.parametrize("breaks", [stops, ends, answers_404])
def test_a_run_is_whole_though_its_cluster_was_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: Callable[[Proxy], Callable[[], None]]
) -> None:
    for module in (jobs_api, collect):
        monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.3)
    for name, seconds in {"POLL_SECONDS": 0.02, "STATUS_SECONDS": 0.1, "SILENT_SECONDS": 0.5}.items():
        monkeypatch.setattr(run_module, name, seconds)
    monkeypatch.setattr(quiet_check, "LOOK_SECONDS", 0.01)
    may_end = threading.Event()

    def driver(spec: Spec, folder: Path) -> str:
        recorder = Recorder(folder, spec)
        recorder.sample(a_sample(1.0))
        may_end.wait(WAIT_SECONDS)
        recorder.sample(a_sample(2.0))
        recorder.close("ok", ())
        return "SUCCEEDED"

    (tmp_path / "records").mkdir()
    heard = Heard()
    with the_way(FakeHead(tmp_path / "records", driver=driver)) as (target, proxies):

        def disturb() -> None:
            wait_for(lambda: heard.lines)  # so the submission is over, and the client follows the run
            backs = [breaks(proxy) for proxy in proxies]
            wait_for(lambda: heard.silences)
            may_end.set()  # it ends while nobody reaches it
            time.sleep(0.2)
            for back in backs:
                back()

        disturber = threading.Thread(target=disturb)
        disturber.start()
        session = a_session((SPEC,))
        folder = store.create(tmp_path / "results", session)
        run_all(folder, session, session.specs, target, listener=heard)
        disturber.join(WAIT_SECONDS)
    (run,) = store.load_runs(folder, session)
    assert_whole(run, heard)


def assert_whole(run: Run, heard: Heard) -> None:
    assert (run.status, run.reasons) == ("ok", ())
    assert [sample.value for sample in run.samples] == [1.0, 2.0]
    assert heard.silences
