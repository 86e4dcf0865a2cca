"""What Prometheus is shown of the record: how much, under which names, and how it stands for a run that goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import a_spec
from made_up import MULTI, a_facts
from made_up_records import MadeUpRun, made_up_spec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample as Shown

from bench.cluster.incoming import SESSION_GAUGES
from bench.cluster.metrics_page import FAMILIES, MOST_RUNS, PHASES, STATUSES, MetricsPage
from bench.cluster.recorder import Recorder
from bench.context import Measured
from bench.experiments import inference, tune
from bench.experiments.tune.run import Searches
from bench.metrics import seconds
from bench.model import Arm, Declared, Interval, NodeUsage, Sample, to_json
from bench.prometheus import reconcile
from bench.prometheus.session_gauges import SENT, Gauge

LABELS = {
    *(
        "session",
        "run",
        "experiment",
        "topology",
        "cell",
        "arm",
        "metric",
        "unit",
        "node",
        "point",
        "resource",
        "status",
    ),
    *("phase", "better", "headline", "title", "choice", "role", "param", "value", "parameters", "block"),
    *(
        "severity",
        "about",
        "text",
        "reason",
        "verdict",
        "why",
        "estimate",
        "part",
        "quantity",
        "distribution",
        "percentile",
    ),
}
MOST_SERIES = 150  # of one run of inference, which has seven arms and makes no points, on two nodes


def shown(page: MetricsPage) -> list[Shown]:
    families = text_string_to_metric_families(page.text().decode())
    return [sample for family in families for sample in family.samples if "process" not in sample.name]


def values(page: MetricsPage, name: str, label: str = "run") -> dict[str, float]:
    return {sample.labels[label]: sample.value for sample in shown(page) if sample.name == name}


def test_ten_times_the_turns_make_no_more_series(tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    MadeUpRun(few, made_up_spec("multi", samples=5)).whole()
    MadeUpRun(many, made_up_spec("multi", samples=50)).whole()
    assert len(shown(MetricsPage(few))) == len(shown(MetricsPage(many)))


def a_search(records: Path, trials: int) -> list[Sample]:
    """Samples that a search of so many trials leaves: rows of the table of trials, and their curves as it goes."""
    spec = made_up_spec(experiment="tune", cell="c01")
    recorder = Recorder(records / spec.session / "runs" / spec.folder, spec)
    samples: list[Sample] = []
    context = SimpleNamespace(record=samples.append)
    said = SimpleNamespace(training_accuracy=0.5, held_out_accuracy=0.4, iteration=1)
    for number in range(1, trials + 1):
        search = SimpleNamespace(context=context, begin=0.0)
        Searches.reported(search, number, said)  # type: ignore[arg-type]
        trial = Measured[None](
            results=(), interval=Interval(0.0, 9.0), arm="ray", turn=1, warmup=False, point=f"trial-{number:02d}"
        )
        samples += [trial.sample(metric, float(number)) for metric in tune.METRICS if metric.table]
    for each in samples:
        recorder.sample(each)
    recorder.close("ok", ())
    return samples


def test_ten_times_the_trials_make_no_more_series_and_the_window_agrees_with_the_record(tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    a_search(few, 5)
    samples = a_search(many, 50)
    page = MetricsPage(many)
    assert len(shown(MetricsPage(few))) == len(shown(page))
    curves = [series for series in shown(page) if series.name == "bench_sample_value"]
    assert {series.labels["metric"] for series in curves} == {"training_accuracy", "held_out_accuracy"}
    assert len(curves) == 2
    spec = made_up_spec(experiment="tune", cell="c01")
    assert reconcile.differences(spec, samples, page.text().decode()) == []
    assert reconcile.differences(spec, samples[:-1], page.text().decode()), "one is missing, and it is not seen"


def test_a_run_has_no_more_series_than_its_budget(tmp_path: Path) -> None:
    MadeUpRun(tmp_path, made_up_spec("multi")).whole()
    assert len(shown(MetricsPage(tmp_path))) <= MOST_SERIES


def test_a_long_session_makes_no_more_series_than_its_newest_runs(tmp_path: Path) -> None:
    page = MetricsPage(tmp_path)
    for block in range(1, MOST_RUNS + 4):
        MadeUpRun(tmp_path, made_up_spec(id=f"b{block:02d}-single-inference-c01", block=block)).whole()
        assert f"b{block:02d}-single-inference-c01" in values(page, "bench_run_turn")
    assert len(values(page, "bench_run_turn")) == MOST_RUNS


def test_every_label_is_one_of_the_few_that_are_bounded(tmp_path: Path) -> None:
    MadeUpRun(tmp_path, made_up_spec("multi")).whole()
    assert {label for sample in shown(MetricsPage(tmp_path)) for label in sample.labels} <= LABELS
    assert {label for _, labels in FAMILIES.values() for label in labels} == LABELS


def test_a_run_goes_through_its_phases_and_ends(tmp_path: Path) -> None:
    page = MetricsPage(tmp_path)
    run = MadeUpRun(tmp_path, made_up_spec(warmups=1, samples=1))

    def stands() -> tuple[str, list[str]]:
        phases = [name for name, value in values(page, "bench_run_phase", "phase").items() if value]
        (status,) = [name for name, value in values(page, "bench_run_status", "status").items() if value]
        return status, phases

    assert stands() == ("running", ["start-up"])
    run.start_up()
    assert stands() == ("running", ["start-up"])
    run.turn(1)
    assert stands() == ("running", ["warm-up"])
    run.turn(2)
    assert stands() == ("running", ["steady"])
    assert not values(page, "bench_run_ended_timestamp_seconds")
    run.close("invalid")
    assert stands() == ("invalid", [])
    assert values(page, "bench_run_ended_timestamp_seconds")
    assert set(values(page, "bench_run_phase", "phase")) == set(PHASES)
    assert set(values(page, "bench_run_status", "status")) == set(STATUSES)


def test_what_was_read_and_what_the_run_says_it_wrote_are_both_shown(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path, made_up_spec())
    page = MetricsPage(tmp_path)
    run.turn(1)
    assert not values(page, "bench_run_lines_closed")
    run.close()
    assert values(page, "bench_run_lines") == values(page, "bench_run_lines_closed")


def test_what_the_experiment_declares_is_shown_with_its_headline_and_subject_marked(tmp_path: Path) -> None:
    MadeUpRun(tmp_path, made_up_spec()).whole()
    found = shown(MetricsPage(tmp_path))
    metrics = {s.labels["metric"]: s.labels for s in found if s.name == "bench_metric_info"}
    assert set(metrics) == {metric.name for metric in inference.METRICS}
    assert [name for name, labels in metrics.items() if labels["headline"] == "yes"] == [inference.METRICS[0].name]
    assert {s.labels["role"] for s in found if s.labels.get("arm") == "ray" and "role" in s.labels} == {"subject"}


def test_what_a_driver_declares_is_shown_of_an_experiment_that_the_exporter_has_no_module_of(tmp_path: Path) -> None:
    declared = Declared(metrics=(seconds("nap_seconds"),), arms=(Arm(name="sleeper", help="", role="subject"),))
    MadeUpRun(tmp_path, a_spec(experiment="of-tomorrow"), declared).turn(2)
    page = MetricsPage(tmp_path)
    assert values(page, "bench_run_turn")
    assert list(values(page, "bench_metric_info", "metric")) == ["nap_seconds"]
    assert list(values(page, "bench_arm_info", "arm")) == ["sleeper"]


def test_a_run_that_has_declared_nothing_yet_is_shown_all_the_same(tmp_path: Path) -> None:
    spec = made_up_spec()
    page = MetricsPage(tmp_path)
    recorder = Recorder(tmp_path / spec.session / "runs" / spec.folder, spec)
    assert values(page, "bench_run_turn")
    assert not values(page, "bench_metric_info", "metric")
    recorder.declare(Declared(metrics=inference.METRICS, arms=inference.ARMS))
    assert values(page, "bench_metric_info", "metric")


@pytest.mark.parametrize("what", ["cpu_seconds_total", "resident_memory_bytes"])
def test_the_exporter_shows_what_it_takes_itself(tmp_path: Path, what: str) -> None:
    assert f"bench_exporter_process_{what} ".encode() in MetricsPage(tmp_path).text()


def test_a_page_is_made_anew_only_when_the_record_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = MadeUpRun(tmp_path, made_up_spec())
    page = MetricsPage(tmp_path)
    made = []
    collect = page._records.collect
    monkeypatch.setattr(page._records, "collect", lambda: made.append(1) or collect())
    for _ in range(3):
        page.text()
    assert len(made) == 1
    run.turn(1)
    page.text()
    assert len(made) == 2


def test_the_value_of_a_run_is_of_all_samples_that_count_as_in_the_report(tmp_path: Path) -> None:
    spec = made_up_spec()
    recorder = Recorder(tmp_path / spec.session / "runs" / spec.folder, spec)
    recorder.declare(Declared(metrics=inference.METRICS, arms=inference.ARMS))
    rate, wait = inference.METRICS[0].name, "startup_seconds"
    for turn, value, lasted in ((1, 7.0, 1.0), (2, 100.0, 1.0), (3, 200.0, 3.0)):
        interval, warmup = Interval(10.0 * turn, 10.0 * turn + lasted), turn == 1
        for metric in (rate, wait):
            recorder.sample(Sample(metric=metric, value=value, interval=interval, arm="ray", turn=turn, warmup=warmup))
    found = [sample for sample in shown(MetricsPage(tmp_path)) if sample.name == "bench_run_value"]
    assert {sample.labels["metric"]: sample.value for sample in found} == {
        rate: (100.0 * 1 + 200.0 * 3) / 4,  # work by time
        wait: 150.0,
    }


def usage_at(point: str, begin: float, cpu_seconds: float) -> NodeUsage:
    return NodeUsage(
        node="head",
        arm="ray",
        turn=2,
        warmup=False,
        interval=Interval(begin, begin + 1),
        point=point,
        cpu_seconds=cpu_seconds,
    )


def cpu_seconds(records: Path) -> dict[str, float]:
    """By point."""
    found = [s for s in shown(MetricsPage(records)) if s.labels.get("resource") == "cpu_seconds"]
    return {sample.labels.get("point", ""): sample.value for sample in found}


def test_the_memory_of_nodes_that_are_limited_is_shown(tmp_path: Path) -> None:
    spec = made_up_spec("multi")
    recorder = Recorder(tmp_path / spec.session / "runs" / spec.folder, spec)
    page = MetricsPage(tmp_path)
    assert values(page, "bench_node_memory_limit_bytes", "node") == {}
    facts = a_facts(MULTI)
    head, worker = facts.nodes
    recorder.facts(replace(facts, nodes=(head, replace(worker, memory_limit_bytes=None))))
    assert values(page, "bench_node_memory_limit_bytes", "node") == {"head": MULTI.memory_bytes_per_node}


def test_usage_of_the_headline_is_told_from_that_at_points_of_a_sweep(tmp_path: Path) -> None:
    spec = made_up_spec()
    recorder = Recorder(tmp_path / spec.session / "runs" / spec.folder, spec)
    recorder.declare(Declared(metrics=inference.METRICS, arms=inference.ARMS))
    recorder.usage(usage_at("90 %", 0.0, 5.0))
    assert cpu_seconds(tmp_path) == {"90 %": 5.0, "": 5.0}, "while no row of the headline is known, the last one"
    recorder.usage(usage_at("", 10.0, 1.0))
    recorder.usage(usage_at("90 %", 20.0, 6.0))
    assert cpu_seconds(tmp_path) == {"90 %": 6.0, "": 1.0}


def test_a_headline_that_was_timed_at_a_point_has_the_usage_of_that_point(tmp_path: Path) -> None:
    spec = made_up_spec()
    recorder = Recorder(tmp_path / spec.session / "runs" / spec.folder, spec)
    recorder.declare(Declared(metrics=inference.METRICS, arms=inference.ARMS))
    for point, begin, used in (("small", 0.0, 1.0), ("large", 10.0, 2.0), ("huge", 20.0, 3.0)):
        recorder.usage(usage_at(point, begin, used))
    headline = inference.METRICS[0].name
    recorder.sample(Sample(metric=headline, value=1.0, interval=Interval(10.0, 11.0), arm="ray", turn=2))
    assert cpu_seconds(tmp_path) == {"small": 1.0, "large": 2.0, "huge": 3.0, "": 2.0}


def test_a_cell_is_named_by_its_parameters_and_by_its_name_in_older_plans(tmp_path: Path) -> None:
    MadeUpRun(tmp_path, made_up_spec(cell_title="batch=1, by value"))
    MadeUpRun(tmp_path, made_up_spec("multi", cell="c02"))
    found = [sample.labels for sample in shown(MetricsPage(tmp_path)) if sample.name == "bench_run_turn"]
    assert {(labels["topology"], labels["parameters"], labels["block"]) for labels in found} == {
        ("single", "batch=1, by value", "01"),
        ("multi", "c02", "01"),
    }


def test_metrics_have_titles_in_words_with_unit_and_direction(tmp_path: Path) -> None:
    MadeUpRun(tmp_path, made_up_spec())
    found = [sample.labels for sample in shown(MetricsPage(tmp_path)) if sample.name == "bench_metric_info"]
    assert found[0]["title"] == "throughput (inputs/s, higher is better)"
    assert found[0]["choice"] == "01 throughput (inputs/s, higher is better)"
    assert sorted(labels["choice"] for labels in found) == [labels["choice"] for labels in found]


def test_values_of_a_session_are_shown_until_others_are_sent(tmp_path: Path) -> None:
    page = MetricsPage(tmp_path)
    MadeUpRun(tmp_path, made_up_spec())
    session = made_up_spec().session
    for sent in (1.0, 2.0):
        gauges = (
            Gauge(name=SENT, labels=(session,), value=sent),
            Gauge(name="bench_caveat", labels=(session, "note", "session", f"text {sent}"), value=sent),
        )
        (tmp_path / session / SESSION_GAUGES).write_bytes(to_json(gauges))
        assert values(page, SENT, "session") == {session: sent}
        assert values(page, "bench_caveat", "text") == {f"text {sent}": sent}
