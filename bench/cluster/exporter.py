"""Serves the records over HTTP, to Prometheus and to the client: a process on the head that outlives jobs.

GET /healthz                          no token: the exporter is up
GET /metrics                          no token: the last values of the newest runs on record
GET /runs/<session>/<run>/<file>      with the token: the file or a Range of it; ?insist=1 also during silence
GET /runs/<session>/<run>/files/      with the token: the files that the experiment wrote beside its samples, as {name: bytes}
HEAD /data/<name>.<SHA-256>.npz       with the token: whether the data set is here
PUT /data/<name>.<SHA-256>.npz        with the token: stores a data set
PUT /runs/.../files/done.jsonl        with the token: stores the items that an earlier attempt at a run has done
PUT /sessions/<session>/gauges.json   with the token: stores what the page shows of a whole session: progress, report so far
"""

from __future__ import annotations

import argparse
import asyncio
import hmac
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from bench.cluster import EXPORTER_HEADER, TIME_HEADER, driver_lock, incoming
from bench.cluster.invocation import QUIET
from bench.cluster.metrics_page import MetricsPage
from bench.errors import AuthFailed
from bench.record.store import DONE, FILES

NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"
RUN = f"/runs/{{session:{NAME}}}/{{run:{NAME}}}"
SESSION = f"/sessions/{{session:{NAME}}}"
KEEP_ALIVE_SECONDS = 10.0
SHUTDOWN_SECONDS = 1.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Exporter:
    """Answers HTTP requests for the records in one folder."""

    records: Path
    token: str = field(repr=False)
    metrics: MetricsPage

    def application(self) -> web.Application:
        """Return the application with all routes, which checks the token and keeps the silence that a run may ask for."""
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get(f"{RUN}/{FILES}/", self._list_files)
        app.router.add_get(f"{RUN}/{{file:spec\\.json|samples\\.jsonl|run\\.json|{FILES}/{NAME}}}", self._file)
        app.router.add_put(f"{RUN}/{FILES}/{DONE}", self._take_done)
        app.router.add_put(f"{SESSION}/{incoming.SESSION_GAUGES}", self._take_gauges)
        app.router.add_head("/data/{name}", self._has_data)
        app.router.add_put("/data/{name}", self._take_data)
        app.on_response_prepare.append(_sign)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        is_health = request.path == "/healthz"
        if request.method == "GET" and not is_health and request.query.get("insist") != "1" and self._is_silent():
            return web.Response(status=503, text="silent while an interval is timed without raymeter\n")
        if request.path.startswith(("/runs/", "/sessions/", "/data/")) and (refused := self._refused(request)):
            return web.Response(status=refused, text="the token is missing or wrong\n")
        return await handler(request)

    def _is_silent(self) -> bool:
        """Whether a driver asks for silence, and still runs."""
        try:
            run = (self.records / QUIET).read_text()
        except OSError:
            return False
        return not (run and driver_lock.has_ended(self.records / run))

    def _refused(self, request: web.Request) -> int:
        """Return the HTTP status if the token is missing or wrong; 0 if it is right."""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(given.encode(errors="replace"), self.token.encode()):
            return 0
        return 403 if given else 401

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _metrics(self, _request: web.Request) -> web.Response:
        page = await asyncio.to_thread(self.metrics.text)
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _run(self, request: web.Request) -> Path:
        return self.records / request.match_info["session"] / "runs" / request.match_info["run"]

    async def _list_files(self, request: web.Request) -> web.Response:
        folder = self._run(request) / FILES
        if not folder.is_dir():
            raise web.HTTPNotFound
        sizes = {
            path.name: path.stat().st_size
            for path in sorted(folder.iterdir())
            if path.is_file() and not path.is_symlink() and re.fullmatch(NAME, path.name)
        }
        return web.json_response(sizes)

    async def _file(self, request: web.Request) -> web.FileResponse:
        path = self._run(request) / request.match_info["file"]
        if not path.is_file() or not path.resolve().is_relative_to(self.records.resolve()):
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _has_data(self, request: web.Request) -> web.Response:
        is_here = (self.records / incoming.FOLDER / request.match_info["name"]).is_file()
        return web.Response(status=200 if is_here else 404)

    async def _take_data(self, request: web.Request) -> web.Response:
        return await _respond(incoming.take(self.records, request.match_info["name"], _body(request)))

    async def _take_gauges(self, request: web.Request) -> web.Response:
        return await _respond(incoming.take_gauges(self.records, request.match_info["session"], _body(request)))

    async def _take_done(self, request: web.Request) -> web.Response:
        return await _respond(incoming.take_done(self._run(request), _body(request)))


def _body(request: web.Request) -> incoming.Body:
    return incoming.Body(request.content.iter_chunked(incoming.CHUNK_BYTES), request.content_length or 0)


async def _respond(storing: Awaitable[None]) -> web.Response:
    """Return the response to a PUT: stored, or the reason why not."""
    try:
        await storing
    except incoming.Refused as error:
        return web.Response(status=error.status, text=f"{error}\n")
    except OSError as error:
        return web.Response(status=507, text=f"it cannot be written here ({error.strerror})\n")
    return web.Response(status=201, text="taken\n")


async def _sign(_request: web.Request, response: web.StreamResponse) -> None:
    """Mark every response as the exporter's, with the present time of this machine."""
    response.headers[EXPORTER_HEADER] = "1"
    response.headers[TIME_HEADER] = f"{time.time():.3f}"


def application(records: Path, *, token: str) -> web.Application:
    """Return the application that serves the records in a folder."""
    return Exporter(records, token, MetricsPage(records)).application()


def main() -> int:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8090)
    options = parser.parse_args()
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    token = Path(path).read_text().strip() if path else os.environ.get("RAY_AUTH_TOKEN", "")
    if not token:
        sys.stderr.write("No token: set RAY_AUTH_TOKEN_PATH or RAY_AUTH_TOKEN.\n")
        return AuthFailed.exit_code
    web.run_app(
        application(options.records, token=token),
        host=options.host,
        port=options.port,
        access_log=None,
        print=None,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
