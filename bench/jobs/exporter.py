"""Inside: a process on the head that outlives jobs. It shows the record to Prometheus, and gives it to the outside.

/healthz                          open: it lives
/metrics                          open: the samples of every run that it has a record of
/runs/<session>/<run>/<file>      with the token: the file, from ?offset= on
"""

from __future__ import annotations

import argparse
import hmac
import os
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bench.errors import AuthFailed
from bench.jobs.invocation import QUIET
from bench.model import Closing, Line, NodeUsage, Sample, Spec, from_json
from bench.store import SAMPLES

RUN_PATH = re.compile(
    r"/runs/([A-Za-z0-9][A-Za-z0-9._-]*)/([A-Za-z0-9][A-Za-z0-9._-]*)/(spec\.json|samples\.jsonl|run\.json)"
)
MOST_BYTES = 8 * 2**20  # of one answer
MOST_DIGITS = 20  # of an offset
RUN_LABELS = ("session", "run", "experiment", "topology", "cell")
USAGE_FIELDS = tuple(
    name for name in NodeUsage.__dataclass_fields__ if name not in ("node", "arm", "turn", "warmup", "interval")
)


@dataclass
class Followed:
    """What has been read of one run so far: the last value of each series, and how many lines."""

    spec: Spec
    folder: Path
    offset: int = 0
    lines: int = 0
    samples: int = 0
    last_turn: int = 0
    values: dict[tuple[str, str, str], Sample] = field(default_factory=dict)  # by metric, arm, node
    usage: dict[tuple[str, str], NodeUsage] = field(default_factory=dict)  # by arm, node
    closing: Closing | None = None

    def read_on(self) -> None:
        """Take in the lines that are new."""
        path = self.folder / SAMPLES
        if path.exists():
            with path.open("rb") as file:
                file.seek(self.offset)
                content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self.offset += len(whole)
            for text in whole.splitlines():
                self._take_in(from_json(text, Line))
        ended = self.folder / "run.json"
        if self.closing is None and ended.exists():
            self.closing = from_json(ended.read_bytes(), Closing)

    def _take_in(self, line: Line) -> None:
        self.lines += 1
        if line.usage and not line.usage.warmup:
            self.usage[line.usage.arm, line.usage.node] = line.usage
        if line.sample:
            self.samples += 1
            self.last_turn = max(self.last_turn, line.sample.turn)
            if not line.sample.warmup and line.sample.value is not None:
                self.values[line.sample.metric, line.sample.arm, line.sample.node or ""] = line.sample


class Records(Collector):
    """The window on the record: every gauge is read from the files, so that nothing expires and nothing is made up."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._runs: dict[Path, Followed] = {}
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            yield from self._families()

    def _families(self) -> Iterator[Metric]:
        value = GaugeMetricFamily(
            "bench_sample_value",
            "Last value of a metric that a run has measured, warm-ups left out.",
            labels=(*RUN_LABELS, "arm", "metric", "unit", "node"),
        )
        used = GaugeMetricFamily(
            "bench_node_usage",
            "What a node used in the last interval of an arm.",
            labels=(*RUN_LABELS, "arm", "node", "resource"),
        )
        counts = GaugeMetricFamily(
            "bench_run_samples", "Samples that a run has recorded, warm-ups with them.", labels=RUN_LABELS
        )
        turns = GaugeMetricFamily("bench_run_turn", "The turn that a run is in.", labels=RUN_LABELS)
        wanted = GaugeMetricFamily("bench_run_turns_wanted", "The turns that a run will have.", labels=RUN_LABELS)
        status = GaugeMetricFamily(
            "bench_run_status", "1 for the status that a run is in.", labels=(*RUN_LABELS, "status")
        )
        for run in self._followed():
            spec = run.spec
            labels = (spec.session, spec.folder, spec.experiment, spec.topology.name, spec.cell)
            for (metric, arm, node), sample in run.values.items():
                value.add_metric((*labels, arm, metric, sample.unit, node), cast(float, sample.value))
            for (arm, node), usage in run.usage.items():
                for name in USAGE_FIELDS:
                    amount = getattr(usage, name)
                    if amount is not None:
                        used.add_metric((*labels, arm, node, name), amount)
            counts.add_metric(labels, run.samples)
            turns.add_metric(labels, run.last_turn)
            wanted.add_metric(labels, spec.warmups + spec.samples)
            status.add_metric((*labels, run.closing.status if run.closing else "running"), 1)
        yield from (value, used, counts, turns, wanted, status)

    def _followed(self) -> list[Followed]:
        for path in sorted(self._root.glob("*/runs/*/spec.json")):
            if path.parent not in self._runs:
                self._runs[path.parent] = Followed(from_json(path.read_bytes(), Spec), path.parent)
        for run in self._runs.values():
            run.read_on()
        return list(self._runs.values())


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
    registry: CollectorRegistry

    def answer(self, path: str, *, authorization: str) -> Answer:
        """The answer to a GET of `path`."""
        url = urlsplit(path)
        if url.path == "/healthz":
            return Answer(200, b"ok\n")
        if (self.records / QUIET).exists():
            return Answer(503, b"silent while an interval is timed without raymeter\n")
        if url.path == "/metrics":
            return Answer(200, generate_latest(self.registry), CONTENT_TYPE_LATEST)
        if match := RUN_PATH.fullmatch(url.path):
            given = authorization.removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return Answer(403 if given else 401, b"the token is missing or wrong\n")
            offset = parse_qs(url.query).get("offset", ["0"])[-1]
            return self._file(self.records / match[1] / "runs" / match[2] / match[3], offset)
        return Answer(404, b"there is /healthz, /metrics and /runs/<session>/<run>/<file>\n")

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
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Records(records))
    window = Window(records, token, registry)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer whatever is asked for."""
            answer = window.answer(self.path, authorization=self.headers.get("Authorization", ""))
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
