"""Whole sessions on a disk, as `bench run` leaves them, with numbers made up."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from made_up import ARMS, METRICS, SessionShape, made_up

from bench.cluster.recorder import Recorder
from bench.model import Run, Session, to_json
from bench.record import store

FEW = {"metrics": (*METRICS[:2], METRICS[-1]), "arms": (ARMS[0], ARMS[2])}


def a_session_on_disk(out: Path, name: str = "20260105-100000-inference-lab-0001", **shape: Any) -> Path:
    """The folder of a session in which every run is ok."""
    pattern = _pattern(name, SessionShape(**{"cells": 1, "blocks": 2, **FEW, **shape}))
    return Path(shutil.copytree(pattern, out / name))


_PATTERNS = tempfile.TemporaryDirectory()


@cache  # many tests take the same one
def _pattern(name: str, shape: SessionShape) -> Path:
    created = f"{name[:4]}-{name[4:6]}-{name[6:8]}T10:00:00+00:00"
    session, runs = made_up(shape)
    session = replace(
        session, id=name, created=created, specs=tuple(replace(spec, session=name) for spec in session.specs)
    )
    folder = store.create(Path(tempfile.mkdtemp(dir=_PATTERNS.name)), session)
    for run in runs:
        write_run(folder, session, run)
    return folder


def many_sessions_on_disk(out: Path, count: int) -> None:
    """`count` closed sessions, one a minute from the first of 2020 on: plans of their own, and the runs of one."""
    pattern = a_session_on_disk(out)
    session, runs = store.load_session(pattern), sorted((pattern / "runs").iterdir())
    first = datetime(2020, 1, 1, tzinfo=UTC)
    for number in range(count):
        created = first + timedelta(minutes=number)
        name = f"{created:%Y%m%d-%H%M%S}-inference-lab-{number:04x}"
        folder = out / name
        for run in runs:
            (folder / "runs" / run.name).mkdir(parents=True)
            for file in run.iterdir():
                if file.is_file():
                    (folder / "runs" / run.name / file.name).hardlink_to(file)
        own = replace(
            session, id=name, created=created.isoformat(), specs=tuple(replace(s, session=name) for s in session.specs)
        )
        (folder / "session.json").write_bytes(to_json(own))
    shutil.rmtree(pattern)


def write_run(folder: Path, session: Session, run: Run, *, is_closed: bool = True) -> None:
    spec = replace(run.spec, session=session.id)
    recorder = Recorder(store.run_folder(folder, spec), spec)
    if run.facts:
        recorder.facts(run.facts)
    for sample in run.samples:
        recorder.sample(sample)
    for usage in run.usage:
        recorder.usage(usage)
    if is_closed:
        recorder.close(run.status, run.reasons)
