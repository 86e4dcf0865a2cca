"""Writes the record of a run: its lines, numbered and synced to disk one by one, and at last run.json, by a rename."""

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
    """Writes the record of one run. Refuses a folder that has a record."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        folder.mkdir(parents=True)
        self._driver_lock = driver_lock.hold(folder)  # before any other file of the record appears
        write_whole(folder / "spec.json", to_json(spec))
        self.files = folder / FILES
        self.files.mkdir()
        self._folder = folder
        self._lock = threading.Lock()  # long work reports progress from its own threads
        self._file = (folder / SAMPLES).open("xb")
        self._seq = 0
        self._sha256 = hashlib.sha256()
        self.metrics: set[str] = set()  # names of the metrics that have samples

    def declare(self, declared: Declared) -> None:
        """Write the metrics and arms that the experiment declares, before its first sample: the exporter shows them."""
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
        """Write how the run ended, with the number and checksum of its lines."""
        self._file.close()
        clean = tuple(clean_reason(reason) for reason in reasons)
        result = RunResult(status=status, reasons=clean, lines=self._seq, sha256=self._sha256.hexdigest())
        write_whole(self._folder / "run.json", to_clean_json(result))
        (self._folder / driver_lock.LOCK).unlink(missing_ok=True)  # run.json replaces it
        self._driver_lock.close()

    def _write(self, **content: Any) -> None:
        with self._lock:
            text = line_format.encode(Line(seq=self._seq + 1, **content))
            line_format.decode(text)  # raises if the record would be unreadable: JSON turns NaN into null
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._seq += 1
            self._sha256.update(text)
