"""A made-up session for the boards: two cells, two topologies, three blocks that have ended and a run in progress.

Its second block is excluded for interference, the arm `pool` is throttled in one run, and each run has loads as points of a sweep in
which nodes use other amounts than for the headline.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from made_up import ARMS, METRICS, SINGLE, a_facts, made_up

from bench import analysis
from bench.analysis import Report
from bench.analysis.report import titles
from bench.cluster.incoming import SESSION_GAUGES
from bench.cluster.recorder import Recorder
from bench.experiments.toolkit.response_times import OFFERED, RESPONSES
from bench.model import Declared, Interval, NodeUsage, Run, Sample, Session, Spec, to_json
from bench.reports import board_gauges

NAME = "20260301-100000-inference-made-up"
EXCLUDED = 2  # the block
THROTTLED = ("b03-multi-inference-c02", "pool", "head")
LEFT_SECONDS = 77.0
POINTS = {"50 % poisson": 1.0, "90 % poisson": 3.0}  # and what they take as a multiple
MS = {500: 0.010, 990: 0.040}  # response times at the first point, by per mille
LOADS = (OFFERED, RESPONSES[500], RESPONSES[990])


@dataclass(frozen=True, kw_only=True)
class BoardSession:
    """A session, its runs that have ended, and one that goes on."""

    session: Session
    ended: Sequence[Run]
    present: Run

    def write_block(self, records: Path, block: int) -> None:
        """Leave the runs of a block in the exporter's folder, and the values that the client sends after it."""
        for run in self.ended:
            if run.spec.block == block:
                write(records, run)
        self.send(records, block)

    def report(self, block: int) -> Report:
        """The report of the blocks until this one."""
        return analysis.build(self.session, [run for run in self.ended if run.spec.block <= block])

    def send(self, records: Path, block: int, *, at: int | None = None) -> None:
        """Leave the values of the session after a block, as if they were sent at the time `at`."""
        done = sum(run.spec.block <= block for run in self.ended)
        progress = board_gauges.SessionProgress(runs_done=done, blocks_done=block, left_seconds=LEFT_SECONDS)
        report = self.report(block) if block else None
        gauges = board_gauges.render(self.session, progress, report, at=1_000_000 + block if at is None else at)
        folder = records / self.session.id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SESSION_GAUGES).write_bytes(to_json(gauges))


def board_session(name: str = NAME, *, image_edge: int = 28, **shape: Any) -> BoardSession:
    """The session with this name; another seed gives other values. `image_edge`: a parameter that is the same in all of its cells."""
    session, runs = made_up(**{"cells": 2, "blocks": 4, "metrics": (*METRICS, *LOADS), **shape})
    session = replace(
        session,
        id=name,
        specs=tuple(
            replace(spec, session=name, params={**spec.params, "image_edge": image_edge}) for spec in session.specs
        ),
    )
    by_cell = titles(session)
    specs = {
        spec.id: replace(spec, cell_title=by_cell[spec.experiment, spec.cell] or "the only cell")
        for spec in session.specs
    }
    runs = [_complete(run, specs[run.spec.id]) for run in runs]
    last_block = max(spec.block for spec in session.specs)
    return BoardSession(
        session=replace(session, specs=tuple(specs.values())),
        ended=[run for run in runs if run.spec.block < last_block],
        present=next(run for run in runs if run.spec.id == f"b{last_block:02d}-multi-inference-c01"),
    )


def _complete(run: Run, spec: Spec) -> Run:
    """A run with loads as points of a sweep, and counters of throttling."""
    swapped = 2**22 if spec.block == EXCLUDED else 0
    usage = [replace(each, periods=50, throttled_periods=_throttled(run, each)) for each in run.usage]
    usage = [replace(each, swapped_bytes=swapped) if each.arm == "ray" else each for each in usage]
    samples = list(run.samples)
    for point, factor in POINTS.items():
        for row in [each for each in usage if each.arm == "ray" and not each.warmup]:
            begin = row.interval.end + 0.1 * factor  # before the next arm is timed
            usage.append(_at_point(row, point, factor, Interval(begin, begin + 0.1)))
        whole = Interval(100.0, 200.0)
        topology_factor = factor * (1.0 if spec.topology.name == SINGLE.name else 1.5)
        samples.append(_sample(OFFERED.name, 100.0 * factor, whole, point))
        for per_mille, seconds in MS.items():
            samples.append(_sample(RESPONSES[per_mille].name, seconds * topology_factor, whole, point))
    facts = a_facts(spec.topology, cpu_quota=float(spec.topology.cpus_per_node))
    return replace(run, spec=spec, facts=facts, samples=tuple(samples), usage=tuple(usage))


def _throttled(run: Run, row: NodeUsage) -> int:
    return 20 if (run.spec.id, row.arm, row.node) == THROTTLED else 0


def _at_point(row: NodeUsage, point: str, factor: float, interval: Interval) -> NodeUsage:
    return replace(
        row,
        point=point,
        interval=interval,
        cpu_seconds=(row.cpu_seconds or 0.0) * factor,
        sent_bytes=int((row.sent_bytes or 0) * 7 * factor),
        work=(row.work or 0.0) / 10,
    )


def _sample(metric: str, value: float, interval: Interval, point: str) -> Sample:
    return Sample(metric=metric, value=value, interval=interval, arm="ray", point=point)


def write(records: Path, run: Run, *, is_closed: bool = True) -> Recorder:
    """Leave a run in the exporter's folder as its driver does."""
    recorder = _begin(records, run)
    for line in _lines(run):
        _write_line(recorder, line)
    recorder.progress(3, 4)
    if is_closed:
        recorder.close(run.status, run.reasons)
    return recorder


def _begin(records: Path, run: Run) -> Recorder:
    recorder = Recorder(records / run.spec.session / "runs" / run.spec.folder, run.spec)
    recorder.declare(Declared(metrics=(*METRICS, *LOADS), arms=ARMS))
    if run.facts:
        recorder.facts(run.facts)
    return recorder


def _lines(run: Run) -> list[Sample | NodeUsage]:
    """Samples and usage in the order of time."""
    return sorted([*run.usage, *run.samples], key=lambda line: line.interval.end)


def _write_line(recorder: Recorder, line: Sample | NodeUsage) -> None:
    if isinstance(line, Sample):
        recorder.sample(line)
    else:
        recorder.usage(line)


def play(made: BoardSession, records: Path, *, run_seconds: float, present_seconds: float) -> Recorder:
    """Write the runs one after the other, line by line as time goes on, and at last the one in progress, which stays open."""
    made.send(records, 0)
    for block in sorted({run.spec.block for run in made.ended}):
        for run in [run for run in made.ended if run.spec.block == block]:
            recorder = _begin(records, run)
            _write_slowly(recorder, _lines(run), run_seconds)
            recorder.close(run.status, run.reasons)
        made.send(records, block)
    present = _begin(records, made.present)
    _write_slowly(present, _lines(made.present), present_seconds)
    return present


def _write_slowly(recorder: Recorder, lines: Sequence[Sample | NodeUsage], seconds: float) -> None:
    for number, line in enumerate(lines, start=1):
        time.sleep(seconds / len(lines))
        _write_line(recorder, line)
        recorder.progress(number, len(lines) + 1)
