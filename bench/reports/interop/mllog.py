"""Writes every run as lines of MLPerf's log: `:::MLLOG {...}`, with the names of mlperf_logging."""

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
    """What was measured on what, then of every run its start, its values in order of time, and its end.

    A run is the namespace of its lines. These are the lines of MLPerf, and no submission to it.
    """
    return "\n".join(_lines(report, runs)) + "\n"


def _lines(report: Report, runs: Sequence[Run]) -> Iterator[str]:
    made = created_seconds(report.created)
    about = {
        "session": report.session,
        "profile": report.profile,
        "command": report.command,
        "stamps": list(report.stamps),
    }
    yield _line(made, "submission_benchmark", ", ".join(report.common_params), about)
    yield _line(made, "submission_platform", report.target, {"session": report.session})
    yield _line(made, "seed", report.seed, {"session": report.session})
    for cost in report.costs:
        where = {"experiment": cost.experiment, "cell": cost.cell, "topology": cost.topology, "unit": cost.currency}
        about = {"session": report.session, **where, "price_per_cpu_hour": report.price_per_cpu_hour}
        yield _line(made, "tracked_stats", {cost.metric: cost.per_million.value}, about)
    places = offsets(report.created, runs)
    for run in runs:
        yield from _of_run(run, places[run.spec.folder], report.meanings.get(run.spec.experiment, {}))


def _of_run(run: Run, offset: float, meanings: Mapping[str, Meaning]) -> Iterator[str]:
    place = run.spec.folder
    moments = [each for sample in run.samples for each in (sample.interval.begin, sample.interval.end)]
    begin, end = min(moments, default=0.0) + offset, max(moments, default=0.0) + offset
    params = {"experiment": run.spec.experiment, "topology": run.spec.topology.name, **run.spec.params}
    yield _line(begin, "run_start", None, params, event="INTERVAL_START", place=place)
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
        more = {name: each for name in ("node", "point", "step") if (each := getattr(sample, name)) not in (None, "")}
        yield _line(sample.interval.end + offset, key, value, {**about, **more}, place=place)
    ended = {"status": "success" if run.status == "ok" else "aborted", "reasons": list(run.reasons)}
    yield _line(end, "run_stop", None, ended, event="INTERVAL_END", place=place)


def _line(
    moment: float,
    key: str,
    value: Value | Mapping[str, float] | None,
    metadata: Mapping[str, object],
    *,
    event: Event = "POINT_IN_TIME",
    place: str = "",
) -> str:
    """One line. `moment` is in Unix seconds; `place` the folder of the run, in which its samples.jsonl is."""
    source = {"file": f"runs/{place}/samples.jsonl" if place else "session.json", "lineno": 1}
    content = {
        "namespace": place,
        "time_ms": round(moment * 1000),
        "event_type": event,
        "key": key,
        "value": value,
        "metadata": {**source, **metadata},
    }
    return f":::MLLOG {json.dumps(content)}"
