"""Fakes that satisfy the real contracts: a head with a Jobs API and the real exporter, and a target that stands it up."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiohttp import web
from builders import a_sample

from bench.cluster.exporter import application
from bench.cluster.recorder import Recorder
from bench.model import IdleLoad, Line, Session, Spec, Topology, from_json
from bench.planning.budget import Limits
from bench.planning.plan import NOTHING_KNOWN
from bench.runner.interrupts import Stop
from bench.runner.report_so_far import ReportSoFar
from bench.runner.run import SessionContext
from bench.runner.session import perform
from bench.targets import RAYS_OWN, Cluster, TargetStatus
from bench.targets.steps import SILENT, Steps

TOKEN = "a-token-of-the-tests"
Driver = Callable[[Spec, Path], str]  # gives the job's last status


def good_driver(spec: Spec, folder: Path) -> str:
    """Records one warm-up and one sample, and closes."""
    recorder = Recorder(folder, spec)
    recorder.sample(a_sample(900.0, turn=1, warmup=True))
    recorder.sample(a_sample(1000.0 + spec.block))
    recorder.digest("answers", "1234")
    recorder.close("ok", ())
    return "SUCCEEDED"


@dataclass
class FakeHead:
    """Ray's Jobs API as far as raymeter uses it. `answers` are given to the first POSTs, before one is accepted."""

    records: Path
    driver: Driver = good_driver
    answers: list[tuple[int, str]] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)
    accepted: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)  # of those jobs
    raised: list[dict[str, Any]] = field(default_factory=list)  # tasks
    log: str = "the driver's log"

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path.endswith("/stop"):
            self.jobs[path.split("/")[-2]] = "STOPPED"
            return 200, {"stopped": True}
        if self.answers:
            return self.answers.pop(0)
        job_id = body["submission_id"]
        if job_id in self.jobs:
            return 500, f"Job with submission_id {job_id} already exists"
        self.jobs[job_id] = "RUNNING"
        self.accepted.append(job_id)
        self.bodies.append(body)
        spec = from_json(shlex.split(body["entrypoint"])[-1], Spec)
        threading.Thread(target=self._drive, args=(job_id, spec), daemon=True).start()
        return 200, {"submission_id": job_id}

    def _drive(self, job_id: str, spec: Spec) -> None:
        status = self.driver(spec, self.records / spec.session / "runs" / spec.folder)
        if self.jobs[job_id] == "RUNNING":
            self.jobs[job_id] = status

    def get(self, path: str) -> tuple[int, Any]:
        if path.startswith("/api/v0/tasks?") and "job_id" in path:
            return 200, {"data": {"result": {"result": self.raised}}}
        job_id = path.removeprefix("/api/jobs/").removesuffix("/logs")
        if not job_id:
            return 200, [{"submission_id": each, "status": status} for each, status in self.jobs.items()]
        if job_id not in self.jobs:
            return 404, f"Job {job_id} does not exist"
        if path.endswith("/logs"):
            return 200, {"logs": self.log}
        metadata = next((body["metadata"] for body in self.bodies if body["submission_id"] == job_id), {})
        return 200, {
            "status": self.jobs[job_id],
            "message": "Driver exited with code 3",
            "metadata": metadata,
            "job_id": "02000000",
        }


@contextmanager
def serving(head: FakeHead) -> Iterator[str]:
    """The address of a head that answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(*self._checked(lambda: head.get(self.path)))

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            self._answer(*self._checked(lambda: head.post(self.path, body)))

        def _checked(self, work: Callable[[], tuple[int, Any]]) -> tuple[int, Any]:
            given = self.headers.get("Authorization")
            return work() if given == f"Bearer {TOKEN}" else ((401, "") if given is None else (403, ""))

        def _answer(self, status: int, body: Any) -> None:
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with running(server):
        yield f"http://127.0.0.1:{server.server_port}"


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def exporting(records: Path) -> Iterator[str]:
    """The address of a real exporter of the records in a folder."""
    # Where standard streams are closed, the loop must not get their descriptors, which raymeter opens anew.
    streams = [os.open(os.devnull, os.O_RDWR) for _ in range(3)]
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(application(records, token=TOKEN), access_log=None, shutdown_timeout=0.1)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    try:
        port = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
        for stream in streams:
            os.close(stream)
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass
class FakeTarget:
    """A target whose clusters are a fake head and the real exporter."""

    cluster: Cluster
    name: str = "local"
    ups: list[str] = field(default_factory=list)
    settings: list[dict[str, str]] = field(default_factory=list)  # of Ray, of each of `ups`
    is_up: bool = False
    befell: str = ""  # the nodes
    why_ended: str = ""  # the head
    load: IdleLoad | None = None  # of the deployment at rest
    not_started: str = ""  # why no worker starts

    def check(self, topology: Topology, steps: Steps = SILENT) -> None:
        pass

    def up(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN, steps: Steps = SILENT) -> Cluster:
        self.ups.append(topology.name)
        self.settings.append(dict(ray_settings))
        self.is_up = True
        return self.cluster

    def down(self) -> tuple[str, ...]:
        self.is_up = False
        return ()

    def status(self) -> TargetStatus:
        return TargetStatus(cluster=self.cluster if self.is_up else None)

    def trouble(self) -> str:
        return self.befell

    def ended(self) -> str:
        return self.why_ended

    def cpu_seconds(self) -> float | None:
        return None

    def idle_load(self) -> IdleLoad | None:
        return self.load

    def failed_starts(self) -> str:
        return self.not_started

    def note(self) -> str:
        return ""

    def ask_nodes(self, words: Sequence[str]) -> Mapping[str, str]:
        return {}


@contextmanager
def a_fake_target(head: FakeHead, topology: Topology) -> Iterator[FakeTarget]:
    with serving(head) as address, exporting(head.records) as exporter_url:
        yield FakeTarget(
            Cluster(
                topology=topology,
                dashboard_url=address,
                exporter_url=exporter_url,
                token=TOKEN,
                nodes=("head",),
                link="none",
            )
        )


@dataclass
class Heard:
    """A listener that remembers."""

    ended: list[tuple[str, str]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    waits: list[tuple[int, str]] = field(default_factory=list)
    silences: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)  # that have ended
    links: list[str] = field(default_factory=list)  # to dashboards

    def host_is_busy(self, block: int, what: str) -> None:
        self.waits.append((block, what))

    def cluster_wanted(self, topology: Topology, block: int) -> None:
        pass

    def cluster_step_started(self, doing: str) -> None:
        pass

    def cluster_step_finished(self, done: str, seconds: float) -> None:
        pass

    def dashboards_ready(self, link: str) -> None:
        self.links.append(link)

    def run_begun(self, spec: Spec) -> None:
        self.begun.append(spec.folder)

    def line_came(self, spec: Spec, line: Line) -> None:
        self.lines.append(line)

    def cluster_silent(self, spec: Spec, what: str) -> None:
        self.silences.append(what)

    def run_ended(self, spec: Spec, result: Any) -> None:
        self.ended.append((spec.folder, result.status))

    def block_ended(self, block: int) -> None:
        self.blocks.append(block)


def run_all(
    folder: Path,
    session: Session,
    todo: Sequence[Spec],
    target: object,
    *,
    listener: Heard | None = None,
    stop: Stop | None = None,
    enough: Callable[[Spec], str] = lambda _: "",
    so_far: ReportSoFar | None = None,
) -> str:
    """Do `todo` on a fake target, until `enough` says why not."""
    context = SessionContext(
        folder=folder,
        session=session,
        target=target,  # type: ignore[arg-type]  # a fake
        listener=listener or Heard(),
        stop=stop or Stop(),
        so_far=so_far or ReportSoFar(folder=folder, session=session),
    )
    return perform(context, todo, _Limits(session=session, todo=tuple(todo), known=NOTHING_KNOWN, wanted=enough))


@dataclass(kw_only=True)
class _Limits(Limits):
    wanted: Callable[[Spec], str]

    def enough(self, spec: Spec) -> str:
        return self.wanted(spec)
