"""What other tools read: MLPerf's log, OpenMetrics, Ray's perf_metrics, JUnit."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from made_up import made_up
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from bench import analysis
from bench.metrics import ratio
from bench.model import Run
from bench.reports import FORMATS, render
from bench.reports.interop.wall_clock import created_seconds, offsets

MLLOG = re.compile(r"^:::MLLOG (\{.*\})$")
CREATED = 1767607200.0  # 2026-01-05T10:00:00Z


def rendered(format, change=lambda runs: runs, **shape):
    session, runs = made_up(**shape)
    runs = change(runs)
    report = analysis.build(session, runs)
    return report, runs, render(format, report, runs)


def with_one_broken(runs: list[Run]) -> list[Run]:
    return [replace(runs[0], status="invalid", reasons=('worker-1 <was> "lost"\x00 & gone',)), *runs[1:]]


# Time


def test_the_first_sample_begins_when_the_session_was_made_and_a_new_clock_goes_on_where_the_old_one_ended():
    _, runs = made_up(cells=1, blocks=1)
    facts = runs[1].facts
    rebooted = replace(runs[1], facts=replace(facts, nodes=tuple(replace(n, boot_id="boot-2") for n in facts.nodes)))
    moments = [[m for s in run.samples for m in (s.interval.begin, s.interval.end)] for run in runs]
    found = offsets("2026-01-05T10:00:00+00:00", [runs[0], rebooted])
    assert created_seconds("2026-01-05T10:00:00+00:00") == CREATED
    assert min(moments[0]) + found[runs[0].spec.folder] == CREATED
    assert min(moments[1]) + found[rebooted.spec.folder] == max(moments[0]) + found[runs[0].spec.folder]


@pytest.mark.parametrize("format", ["mllog", "openmetrics", "perf-metrics", "junit"])
def test_no_tool_gets_numbers_without_their_stamps(format):
    session, runs = made_up(cells=1)
    for stamps in (("emulated multi-node", "unequal"), ()):
        text = render(format, replace(analysis.build(session, runs), stamps=stamps), runs)
        assert ("emulated multi-node" in text, "unequal" in text) == (bool(stamps), bool(stamps))


# MLPerf


def test_every_line_for_mlperf_has_what_mlperf_logging_writes():
    text = rendered("mllog", with_one_broken, cells=1, blocks=2)[2]
    lines = [json.loads(MLLOG.match(line)[1]) for line in text.splitlines()]
    for line in lines:
        assert list(line) == ["namespace", "time_ms", "event_type", "key", "value", "metadata"]
        assert type(line["time_ms"]) is int
        assert {"file", "lineno"} <= line["metadata"].keys()
    keys = {line["key"] for line in lines}
    assert keys <= {
        *("submission_benchmark", "submission_platform", "seed"),
        *("run_start", "run_stop", "tracked_stats", "eval_accuracy"),
    }


def test_every_run_for_mlperf_starts_has_its_values_and_stops_in_order_of_time():
    _, runs, text = rendered("mllog", with_one_broken, cells=1, blocks=2)
    lines = [json.loads(MLLOG.match(line)[1]) for line in text.splitlines()]
    for run in runs:
        own = [line for line in lines if line["namespace"] == run.spec.folder]
        assert [own[0]["key"], own[0]["event_type"]] == ["run_start", "INTERVAL_START"]
        assert [own[-1]["key"], own[-1]["event_type"]] == ["run_stop", "INTERVAL_END"]
        assert own[-1]["metadata"]["status"] == ("success" if run.status == "ok" else "aborted")
        times = [line["time_ms"] for line in own]
        assert times == sorted(times)
        assert times[0] >= CREATED * 1000
        values = [
            v
            for line in own[1:-1]
            for v in (line["value"].values() if type(line["value"]) is dict else [line["value"]])
        ]
        assert sorted(values) == sorted(sample.value for sample in run.samples if sample.value is not None)


def test_what_means_accuracy_is_what_mlperf_calls_so_whatever_its_name():
    session, runs = made_up(cells=1, blocks=1)
    right = ratio("share_of_images", "1", better="higher", means="accuracy")
    run = replace(runs[0], samples=(replace(runs[0].samples[0], metric=right.name, value=0.97, step=None),))
    session = replace(session, metrics={name: (*those, right) for name, those in session.metrics.items()})
    lines = render("mllog", analysis.build(session, [run]), [run]).splitlines()
    said = [json.loads(MLLOG.match(line)[1]) for line in lines]
    assert [line["value"] for line in said if line["key"] == "eval_accuracy"] == [0.97]


# OpenMetrics


def test_openmetrics_has_the_numbers_of_the_report_with_their_moments():
    report, runs, text = rendered("openmetrics", with_one_broken, cells=2)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = [sample for family in families.values() for sample in family.samples]
    assert all(float(sample.timestamp) >= CREATED for sample in samples)
    for cell in report.cells:
        row = cell.headline
        where = {"cell": cell.cell, "metric": row.metric.name, "arm": row.arm, "point": row.point}

        def of(name, where=where):
            return [s for s in families[name].samples if where.items() <= s.labels.items()]

        medians = {sample.labels["topology"]: sample.value for sample in of("bench_median")}
        assert medians == {name: side.estimate.value for name, side in row.sides.items()}
        (ratio,) = of("bench_ratio")
        assert (ratio.value, ratio.labels["verdict"]) == (row.comparison.ratio.value, row.comparison.verdict or "none")
        values = {(s.labels["topology"], int(s.labels["block"])): s.value for s in of("bench_invocation_value")}
        assert values == {(name, block): v for name, side in row.sides.items() for block, v in side.values.items()}
    endings = {sample.labels["status"]: sample.value for sample in families["bench_session_runs"].samples}
    assert endings == {"invalid": 1, "ok": len(runs) - 1}


def test_no_series_of_openmetrics_is_there_twice():
    _, _, text = rendered("openmetrics", cells=2)
    series = [line.rsplit(" ", 2)[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(set(series)) == len(series) > 100


# Cost


def test_what_it_cost_is_for_other_tools_what_it_is_in_the_report():
    session, runs = made_up(cells=2)
    report = analysis.build(replace(session, price_per_cpu_hour="0.04 EUR"), runs)
    wanted = {(cost.cell, cost.topology): cost.per_million for cost in report.costs}
    assert len(wanted) == 4
    families = {f.name: f for f in text_string_to_metric_families(render("openmetrics", report, runs))}
    for name, end in (("bench_cost", "value"), ("bench_cost_low", "low"), ("bench_cost_high", "high")):
        found = {(s.labels["cell"], s.labels["topology"]): s.value for s in families[name].samples}
        assert found == {key: getattr(estimate, end) for key, estimate in wanted.items()}
    about = families["bench_cost"].samples[0].labels
    assert (about["metric"], about["unit"], about["price_per_cpu_hour"]) == (
        *("cost_of_a_million_inputs", "EUR"),
        "0.04 EUR",
    )
    lines = [json.loads(MLLOG.match(line)[1]) for line in render("mllog", report, runs).splitlines()]
    said = [line for line in lines if line["metadata"].get("price_per_cpu_hour")]
    assert {(line["metadata"]["cell"], line["metadata"]["topology"]): line["value"] for line in said} == {
        key: {"cost_of_a_million_inputs": estimate.value} for key, estimate in wanted.items()
    }
    csv = [line for line in render("csv", report, runs).splitlines() if ",cost_of_a_million_inputs," in line]
    assert len(csv) == 4
    assert all(any(str(estimate.value) in line for line in csv) for estimate in wanted.values())


# Ray


def test_perf_metrics_are_the_medians_in_the_shape_of_rays_release_tests():
    report, _, text = rendered("perf-metrics", cells=1)
    said = json.loads(text)
    assert said["success"] == "1"
    for each in said["perf_metrics"]:
        assert sorted(each) == ["perf_metric_name", "perf_metric_type", "perf_metric_value"]
        assert each["perf_metric_type"] in {"THROUGHPUT", "LATENCY", "MEMORY"}
    names = [each["perf_metric_name"] for each in said["perf_metrics"]]
    assert len(set(names)) == len(names)
    row = report.cells[0].headline
    values = {each["perf_metric_name"]: each["perf_metric_value"] for each in said["perf_metrics"]}
    assert values[f"inference_c01_multi_{row.arm}_{row.metric.name}"] == row.sides["multi"].estimate.value


def test_perf_metrics_of_a_session_with_a_run_that_broke_are_no_success():
    assert json.loads(rendered("perf-metrics", with_one_broken, cells=1)[2])["success"] == "0"


# JUnit

JUNIT = {  # of the schema that Jenkins' xUnit plugin has (junit-10.xsd): attributes, those that must be there, children
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package"},
        {"name", "tests", "failures", "errors"},
        {"testcase", "testsuite", "properties", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, {"name", "value"}, set()),
    "testcase": (
        {"name", "assertions", "time", "timestamp", "classname", "status", "class", "file", "line", "log", "group"},
        {"name"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set(), set()),
    "error": ({"type", "message"}, set(), set()),
    "skipped": ({"type", "message"}, set(), set()),
}


def cases(text):
    root = ET.fromstring(text)  # noqa: S314, our own
    assert root.tag == "testsuites"
    for element in root.iter():
        allowed, needed, children = JUNIT[element.tag]
        assert needed <= set(element.attrib) <= allowed
        assert {child.tag for child in element} <= children
    (suite,) = root
    tests = suite.findall("testcase")
    outcomes = [child.tag for case in tests for child in case]
    assert int(suite.get("tests")) == len(tests)
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(name)) == outcomes.count(tag)
    return {
        (case.get("classname"), case.get("name")): (case[0].tag, case[0].get("message"))
        if len(case)
        else ("passed", "")
        for case in tests
    }


def test_what_is_slower_fails_and_what_is_faster_passes():
    for speed, verdict, outcome in ((0.5, "slower", "failure"), (2.0, "faster", "passed")):
        report, _, text = rendered("junit", cells=1, multi=speed)
        row = report.cells[0].headline
        assert row.comparison.verdict == verdict
        found = cases(text)
        (headline,) = (name for name in found if name[1].startswith(f"{row.metric.name} "))
        assert found[headline][0] == outcome
        assert ("multi/single is 0.4949" in found[headline][1]) == (outcome == "failure")


def test_each_comparison_is_one_test_and_one_without_a_verdict_is_skipped_with_the_reason():
    report, _, text = rendered("junit", cells=2, blocks=3)
    rows = [row for cell in report.cells for row in (*cell.rows, *cell.sweeps) if row.comparison]
    found = cases(text)
    assert len(found) == len(rows) > 2
    assert all(outcome == "skipped" and why for outcome, why in found.values())


def test_a_run_that_is_not_ok_is_an_error_with_its_reason_unless_a_later_attempt_is_ok():
    _, runs, text = rendered("junit", with_one_broken, cells=1)
    name = ("inference.c01", f"run {runs[0].spec.folder}")
    assert cases(text)[name] == ("error", 'invalid: worker-1 <was> "lost" & gone')

    def again(runs):
        return [*with_one_broken(runs), replace(runs[0], spec=replace(runs[0].spec, attempt=2))]

    assert not [each for each in cases(rendered("junit", again, cells=1)[2]) if each[1].startswith("run ")]


@pytest.mark.parametrize("format", ["mllog", "openmetrics", "perf-metrics", "junit"])
def test_a_session_of_which_nothing_was_run_has_a_whole_file_too(format):
    session, _ = made_up(cells=1, blocks=1)
    report = analysis.build(session, [])
    text = FORMATS[format](report)
    assert text == "# EOF\n" if format == "openmetrics" else session.id in text
