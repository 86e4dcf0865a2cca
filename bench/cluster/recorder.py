"""Inside: writes a run's lines, numbered and flushed to the disk one by one, and run.json last, by rename."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import timeline
from bench.cluster import driver_lock
from bench.model import Declared, Facts, Line, NodeUsage, RunResult, Sample, Spec, Status, to_json
from bench.record import line_format
from bench.record.store import FILES, SAMPLES, TIMELINE, write_whole
from bench.sanitize import clean_reason, to_clean_json
from bench.timeline import Timeline

DECLARED = "declared.json"


class Recorder:
    """The record of one run. A folder that has one already is refused."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        folder.mkdir(parents=True)
        self._driver_lock = driver_lock.hold(folder)  # before there is a record to be seen
        write_whole(folder / "spec.json", to_json(spec))
        self.files = folder / FILES
        self.files.mkdir()
        self._folder = folder
        self._lock = threading.Lock()  # long work reports from threads of its own
        self._file = (folder / SAMPLES).open("xb")
        self._seq = 0
        self._sha256 = hashlib.sha256()
        self.metrics: set[str] = set()  # names of those that samples were recorded of

    def declare(self, declared: Declared) -> None:
        """Keep what the experiment declares, before its first sample: the exporter shows it."""
        write_whole(self._folder / DECLARED, to_json(declared))

    def facts(self, facts: Facts) -> None:
        self._write(facts=facts)

    def sample(self, sample: Sample) -> None:
        self.metrics.add(sample.metric)
        self._write(sample=replace(sample, reason=clean_reason(sample.reason)) if sample.reason else sample)

    def usage(self, usage: NodeUsage) -> None:
        self._write(usage=usage)

    def digest(self, name: str, digest: str) -> None:
        self._write(digest=(name, digest))

    def progress(self, done: float, total: float) -> None:
        self._write(progress=(done, total))

    def timelines(self, timelines: Sequence[Timeline]) -> None:
        """Keep what each node used over the time of the run, in a file of its own."""
        write_whole(self.files / TIMELINE, timeline.encode(timelines))

    def close(self, status: Status, reasons: tuple[str, ...]) -> None:
        """Say how the run ended, and what the lines must be for it to be whole."""
        self._file.close()
        clean = tuple(clean_reason(reason) for reason in reasons)
        result = RunResult(status=status, reasons=clean, lines=self._seq, sha256=self._sha256.hexdigest())
        write_whole(self._folder / "run.json", to_clean_json(result))
        (self._folder / driver_lock.LOCK).unlink(missing_ok=True)  # the record says how it ended
        self._driver_lock.close()

    def _write(self, **what: Any) -> None:
        with self._lock:
            text = line_format.encode(Line(seq=self._seq + 1, **what))
            line_format.decode(text)  # raises here what would make the record unreadable: JSON turns NaN into null
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._seq += 1
            self._sha256.update(text)
