"""Writes every run as lines of MLPerf's log, `:::MLLOG {...}`, with the keys of mlperf_logging."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from bench.analysis import Report
from bench.meanings import Meaning
from bench.model import Run, Value
from bench.reports.interop.wall_clock import created_seconds, offsets

Event = Literal["POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"]


def render(report: Report, runs: Sequence[Run] = ()) -> str:
    """Write what was measured on what; then, for every run, its start, its values in order of time, and its end.

    The namespace of a line is its run. The lines have MLPerf's format, but are not a submission to MLPerf.
    """
    return "\n".join(_lines(report, runs)) + "\n"


def _lines(report: Report, runs: Sequence[Run]) -> Iterator[str]:
    created = created_seconds(report.created)
    about = {
        "session": report.session,
        "profile": report.profile,
        "command": report.command,
        "stamps": list(report.stamps),
    }
    yield _line(created, "submission_benchmark", ", ".join(report.common_params), about)
    yield _line(created, "submission_platform", report.target, {"session": report.session})
    yield _line(created, "seed", report.seed, {"session": report.session})
    for cost in report.costs:
        where = {"experiment": cost.experiment, "cell": cost.cell, "topology": cost.topology, "unit": cost.currency}
        about = {"session": report.session, **where, "price_per_cpu_hour": report.price_per_cpu_hour}
        yield _line(created, "tracked_stats", {cost.metric: cost.per_million.value}, about)
    offset_by_run = offsets(report.created, runs)
    for run in runs:
        yield from _of_run(run, offset_by_run[run.spec.folder], report.meanings.get(run.spec.experiment, {}))


def _of_run(run: Run, offset: float, meanings: Mapping[str, Meaning]) -> Iterator[str]:
    folder = run.spec.folder
    moments = [moment for sample in run.samples for moment in (sample.interval.begin, sample.interval.end)]
    begin, end = min(moments, default=0.0) + offset, max(moments, default=0.0) + offset
    params = {"experiment": run.spec.experiment, "topology": run.spec.topology.name, **run.spec.params}
    yield _line(begin, "run_start", None, params, event="INTERVAL_START", run_folder=folder)
    for sample in sorted(run.samples, key=lambda sample: sample.interval.end):
        if sample.value is None:
            continue
        is_accuracy = meanings.get(sample.metric) == "accuracy"
        key, value = (
            ("eval_accuracy", sample.value) if is_accuracy else ("tracked_stats", {sample.metric: sample.value})
        )
        about = {
            "metric": sample.metric,
            "arm": sample.arm,
            "unit": sample.unit,
            "turn": sample.turn,
            "warmup": sample.warmup,
            "duration_seconds": sample.interval.seconds,
        }
        more = {
            name: detail for name in ("node", "point", "step") if (detail := getattr(sample, name)) not in (None, "")
        }
        yield _line(sample.interval.end + offset, key, value, {**about, **more}, run_folder=folder)
    ended = {"status": "success" if run.status == "ok" else "aborted", "reasons": list(run.reasons)}
    yield _line(end, "run_stop", None, ended, event="INTERVAL_END", run_folder=folder)


def _line(
    moment: float,
    key: str,
    value: Value | Mapping[str, float] | None,
    metadata: Mapping[str, object],
    *,
    event: Event = "POINT_IN_TIME",
    run_folder: str = "",
) -> str:
    """Return one line. `moment` is in Unix seconds; `run_folder` is the folder of the run's samples.jsonl."""
    source = {"file": f"runs/{run_folder}/samples.jsonl" if run_folder else "session.json", "lineno": 1}
    content = {
        "namespace": run_folder,
        "time_ms": round(moment * 1000),
        "event_type": event,
        "key": key,
        "value": value,
        "metadata": {**source, **metadata},
    }
    return f":::MLLOG {json.dumps(content)}"
