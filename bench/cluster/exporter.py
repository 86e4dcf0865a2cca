"""Inside: a process on the head that outlives jobs. It shows the record to Prometheus, and gives it to the outside.

/healthz                          open: it lives
/metrics                          open: the last values of the newest runs that it has a record of
/runs/<session>/<run>/<file>      with the token: the file, from ?offset= on; ?insist=1 even in silence
/runs/<session>/<run>/files/      with the token: what the experiment left beside its numbers, as {name: bytes}
/data/<name>.<SHA-256>.npz        with the token: HEAD, whether a data set is here; PUT, takes it
/runs/.../files/done.jsonl        with the token: PUT, takes what an earlier attempt at a run had done
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CONTENT_TYPE_LATEST

from bench.cluster import EXPORTER_HEADER, TIME_HEADER, driver_lock, incoming
from bench.cluster.invocation import QUIET
from bench.cluster.metrics_page import MetricsPage
from bench.errors import AuthFailed
from bench.record.store import DONE, FILES

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
RUN_PATH = re.compile(rf"/runs/({NAME})/({NAME})/(spec\.json|samples\.jsonl|run\.json|files/(?:{NAME})?)")
MOST_BYTES = 8 * 2**20  # of one answer
DATA_PATH = "/data/"
DONE_PATH = re.compile(rf"/runs/({NAME})/({NAME})/{FILES}/{re.escape(DONE)}")
MOST_DIGITS = 19  # of an offset: more than a file position can have


@dataclass(frozen=True)
class Answer:
    """What an asker gets."""

    status: int
    body: bytes
    kind: str = "text/plain"


@dataclass(frozen=True)
class Window:
    """What is answered to whom."""

    records: Path
    token: str = field(repr=False)
    metrics: MetricsPage

    def answer(self, path: str, *, authorization: str) -> Answer:
        """The answer to a GET of `path`."""
        url = urlsplit(path)
        query = parse_qs(url.query)
        if url.path == "/healthz":
            return Answer(200, b"ok\n")
        if self._is_silent() and query.get("insist") != ["1"]:
            return Answer(503, b"silent while an interval is timed without raymeter\n")
        if url.path == "/metrics":
            return Answer(200, self.metrics.text(), CONTENT_TYPE_LATEST)
        if match := RUN_PATH.fullmatch(url.path):
            if refusal := self._refusal(authorization):
                return refusal
            asked = self.records / match[1] / "runs" / match[2] / match[3]
            is_list = match[3] == f"{FILES}/"
            return self._names(asked) if is_list else self._file(asked, query.get("offset", ["0"])[-1])
        return Answer(404, b"there is /healthz, /metrics and /runs/<session>/<run>/<file>\n")

    def has(self, path: str, *, authorization: str) -> Answer:
        """The answer to a HEAD of `path`: whether that data set is here."""
        if refusal := self._refusal(authorization):
            return refusal
        is_here = path.startswith(DATA_PATH) and (self.records / incoming.FOLDER / Path(path).name).is_file()
        return Answer(200 if is_here else 404, b"")

    def take(self, path: str, *, authorization: str, content: BufferedIOBase, length: str) -> Answer:
        """The answer to a PUT of `path`: it is kept, or why it is not."""
        if refusal := self._refusal(authorization):
            return refusal
        try:
            size = int(length) if length.isascii() and length.isdigit() and len(length) < MOST_DIGITS else 0
            if match := DONE_PATH.fullmatch(path):
                incoming.take_done(self.records / match[1] / "runs" / match[2], content, size)
            else:
                incoming.take(self.records, path.removeprefix(DATA_PATH), content, size)
        except incoming.Refused as error:
            return Answer(error.status, f"{error}\n".encode())
        except OSError as error:
            return Answer(507, f"it cannot be written here ({error.strerror})\n".encode())
        return Answer(201, b"taken\n")

    def _is_silent(self) -> bool:
        """Whether a driver asks for silence. One that was killed meanwhile needs none."""
        try:
            run = (self.records / QUIET).read_text()
        except OSError:
            return False
        return not (run and driver_lock.has_ended(self.records / run))

    def _refusal(self, authorization: str) -> Answer | None:
        given = authorization.removeprefix("Bearer ")
        if hmac.compare_digest(given.encode(), self.token.encode()):
            return None
        return Answer(403 if given else 401, b"the token is missing or wrong\n")

    def _names(self, folder: Path) -> Answer:
        if not folder.is_dir():
            return Answer(404, b"no such folder\n")
        sizes = {
            path.name: path.stat().st_size
            for path in sorted(folder.iterdir())
            if path.is_file() and not path.is_symlink() and re.fullmatch(NAME, path.name)
        }
        return Answer(200, json.dumps(sizes).encode(), "application/json")

    def _file(self, path: Path, offset: str) -> Answer:
        if not (offset.isascii() and offset.isdigit() and len(offset) < MOST_DIGITS):
            return Answer(400, b"offset is a number of bytes\n")
        if not path.is_file() or not path.resolve().is_relative_to(self.records.resolve()):
            return Answer(404, b"no such file\n")
        with path.open("rb") as file:
            file.seek(int(offset))
            return Answer(200, file.read(MOST_BYTES), "application/octet-stream")


def serve(records: Path, *, host: str, port: int, token: str) -> ThreadingHTTPServer:
    """The server, bound and not yet serving."""
    window = Window(records, token, MetricsPage(records))

    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # seconds that an asker may take to ask

        def do_GET(self) -> None:
            """Answer whatever is asked for."""
            try:
                answer = window.answer(self.path, authorization=self._authorization)
            except ValueError:
                answer = Answer(400, b"that is no path\n")
            self._send(answer)

        def do_HEAD(self) -> None:
            """Say whether a data set is here."""
            self._send(window.has(self.path, authorization=self._authorization))

        def do_PUT(self) -> None:
            """Take what is sent. What was not read of it goes with the connection."""
            length = self.headers.get("Content-Length", "")
            self._send(window.take(self.path, authorization=self._authorization, content=self.rfile, length=length))

        @property
        def _authorization(self) -> str:
            return self.headers.get("Authorization", "")

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header(EXPORTER_HEADER, "1")
            self.send_header(TIME_HEADER, f"{time.time():.3f}")
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a line for each scrape tells nobody anything."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    return server


def main() -> int:
    """Serve until ended."""
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
    serve(options.records, host=options.host, port=options.port, token=token).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
