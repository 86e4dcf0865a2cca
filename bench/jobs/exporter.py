"""Inside: a process on the head that outlives jobs. It shows the record to Prometheus, and gives it to the outside.

/healthz                          open: it lives
/metrics                          open: the last values of the newest runs that it has a record of
/runs/<session>/<run>/<file>      with the token: the file, from ?offset= on; ?insist=1 even in silence
/runs/<session>/<run>/files/      with the token: what the experiment left beside its numbers, as {name: bytes}
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import re
import sys
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CONTENT_TYPE_LATEST

from bench.errors import AuthFailed
from bench.jobs.invocation import QUIET
from bench.jobs.metrics_page import MetricsPage
from bench.store import FILES

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
RUN_PATH = re.compile(rf"/runs/({NAME})/({NAME})/(spec\.json|samples\.jsonl|run\.json|files/(?:{NAME})?)")
MOST_BYTES = 8 * 2**20  # of one answer
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
        if (self.records / QUIET).exists() and query.get("insist") != ["1"]:
            return Answer(503, b"silent while an interval is timed without raymeter\n")
        if url.path == "/metrics":
            return Answer(200, self.metrics.text(), CONTENT_TYPE_LATEST)
        if match := RUN_PATH.fullmatch(url.path):
            given = authorization.removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return Answer(403 if given else 401, b"the token is missing or wrong\n")
            asked = self.records / match[1] / "runs" / match[2] / match[3]
            is_list = match[3] == f"{FILES}/"
            return self._names(asked) if is_list else self._file(asked, query.get("offset", ["0"])[-1])
        return Answer(404, b"there is /healthz, /metrics and /runs/<session>/<run>/<file>\n")

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
                answer = window.answer(self.path, authorization=self.headers.get("Authorization", ""))
            except ValueError:
                answer = Answer(400, b"that is no path\n")
            self.send_response(answer.status)
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
