"""The search does every trial once, by every arm to the same end, and says what became of each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tune_trials import NODES, TRAINING, a_trial

from bench import params as parameters
from bench.context import Measured
from bench.errors import BadInput, DoesNotFit
from bench.experiments import load, tune
from bench.experiments.toolkit.journal import Journal
from bench.experiments.tune import Params, arms, metrics
from bench.experiments.tune.params import ALONE_SECONDS
from bench.experiments.tune.peers import deal
from bench.experiments.tune.run import describe_work
from bench.experiments.tune.search import SearchResult
from bench.experiments.tune.space import configurations
from bench.experiments.tune.training import Config
from bench.experiments.tune.trials import TrialRun
from bench.model import Interval, Sample, Topology
from bench.record.store import DONE


def values(samples: Sequence[Sample], metric: str, arm: str = "ray", point: str = "") -> list[float | None]:
    return [s.value for s in samples if (s.metric, s.arm, s.point) == (metric, arm, point)]


def reason(samples: Sequence[Sample], metric: str, point: str = "") -> str:
    (found,) = [s for s in samples if (s.metric, s.point) == (metric, point)]
    assert found.value is None
    return found.reason or ""


def measured(result: SearchResult, seconds: float = 10.0) -> Measured[SearchResult]:
    return Measured(results=[result], interval=Interval(0.0, seconds), arm="ray", turn=1, warmup=False)


def of(*trials: TrialRun, **said: Any) -> list[Sample]:
    found = SearchResult(trials=list(trials), begin=0.0, **said)
    return list(metrics.of_search(measured(found), TRAINING, NODES, cpus_per_trial=1))


# declarations


def test_the_index_knows_tune_and_its_headline() -> None:
    experiment = load("tune")
    assert experiment.metrics[0].name == "search_seconds"
    assert experiment.arms[0].role == "subject"
    assert len({metric.name for metric in experiment.metrics}) == len(experiment.metrics)


def test_lab_has_the_scaling_series_of_the_study() -> None:
    cells = [
        dict(zip(grid, chosen, strict=True))
        for grid in tune.PROFILES["lab"].grids
        for chosen in itertools.product(*grid.values())
    ]
    assert [(cell["trials"], cell["cpus_per_trial"]) for cell in cells] == [(10, 1), (16, 1), (16, 2)]
    assert Params().target_accuracy == 0.99


@pytest.mark.parametrize("name", ["tiny", "lab", "full"])
def test_every_cell_of_a_profile_can_be_run(name: str) -> None:
    for grid in tune.PROFILES[name].grids:
        for chosen in itertools.product(*grid.values()):
            Params(**parameters.complete(Params, dict(zip(grid, chosen, strict=True))))  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", ["trials=0", "search=bayes", "target_accuracy=2", "data=cifar10", "threads=-1"])
def test_bad_params_are_refused(setting: str) -> None:
    with pytest.raises(BadInput):
        parameters.settings(Params, [setting])


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(BadInput, match="does not fit"):
        Params(batch=1_000, iteration_samples=500)
    with pytest.raises(BadInput, match="PBT"):
        Params(search="optuna", scheduler="pbt")


def test_threads_follow_the_cpus_of_a_trial_unless_they_are_named() -> None:
    assert Params(cpus_per_trial=2).threads_per_trial == 2
    assert Params(cpus_per_trial=1, threads=2).threads_per_trial == 2


def test_a_trial_that_asks_for_more_than_a_node_has_is_refused_with_the_numbers_while_it_is_planned() -> None:
    small = Topology(
        name="multi",
        nodes=2,
        cpus_per_node=1,
        memory_bytes_per_node=2**31,
        object_store_bytes_per_node=2**29,
        threads_per_node=1,
    )
    with pytest.raises(DoesNotFit, match="needs 2 CPUs on one node, and a node of multi has 1"):
        tune.check_fits(Params(cpus_per_trial=2), small)
    tune.check_fits(Params(cpus_per_trial=2), replace(small, cpus_per_node=2))


def test_a_pool_is_dealt_what_optuna_chose_and_so_comes_after_the_search_that_it_chose_in() -> None:
    drawn = [arms.POOL, arms.SEQUENTIAL, arms.RAY, arms.EMPTY_TRIALS]
    assert arms.order(drawn, "random") == drawn
    assert arms.order(drawn, "optuna") == [arms.RAY, arms.SEQUENTIAL, arms.POOL, arms.EMPTY_TRIALS]
    after = [arms.RAY, arms.SEQUENTIAL, arms.POOL]
    assert arms.order(after, "optuna") == after
    assert arms.order([arms.RAY], "optuna") == [arms.RAY]


# what the trials come to


def test_five_measures_of_the_study_come_of_the_trials() -> None:
    samples = of(
        a_trial(0, 0.5, 0.95),
        a_trial(1, 0.5, 0.6, 0.7, 0.91, node="worker-1"),
        starts={("head", 1): 102.5, ("worker-1", 1): 3.0},
        clock_offsets={"head": -100.0, "worker-1": 0.5},
        reached_at=5.0,
        results=6,
        result_bytes=600,
    )
    assert values(samples, "search_seconds") == [10.0]
    assert values(samples, "time_to_target_seconds") == [5.0]
    assert values(samples, "startup_seconds") == [2.5]
    assert values(samples, "trial_seconds") == [pytest.approx((2 + 4) / 2)]
    assert values(samples, "search_to_ideal_ratio") == [pytest.approx(10.0 / (3.0 / 2))]
    assert values(samples, "started_search_to_ideal_ratio") == [pytest.approx((10.0 - 3.0) / (3.0 / 2))]
    beyond = {s.point: s.value for s in samples if s.metric == "beyond_ideal_ratio"}
    assert 1 + sum(value or 0 for value in beyond.values()) == pytest.approx(10.0 / (3.0 / 2))
    assert beyond["start-up"] == pytest.approx((2.5 + 3.5) / 3.0)
    assert values(samples, "trial_peak_memory_bytes") == [101]
    assert values(samples, "trial_peak_memory_bytes", point="trial-00") == [100]
    assert values(samples, "payload_bytes_per_result") == [100]
    assert values(samples, "cpu_fairness_jain") == [pytest.approx(9 / (2 * 5))]
    assert values(samples, "trial_fairness_jain") == [1.0]
    assert {s.point: s.value for s in samples if s.metric == "node_cpu_share"} == pytest.approx(
        {"head": 1 / 3, "worker-1": 2 / 3}
    )
    assert {s.node: s.value for s in samples if s.metric == "busy_seconds"} == pytest.approx({"head": 2, "worker-1": 4})
    assert values(samples, "tuning_effect_max_min") == [2.0]
    assert values(samples, "tuning_effect_p90_p10") == [2.0]
    assert values(samples, "success_ratio") == [1.0]


def test_censored_trials_are_counted_and_shown_and_take_the_effect_with_them() -> None:
    samples = of(a_trial(0, 0.5, 0.95), a_trial(1, 0.5, 0.6, 0.7), reached_at=2.0, results=1)
    assert values(samples, "cpus_each") == [1]
    assert values(samples, "trials_at_once") == [2]
    assert values(samples, "censored_trials") == [1]
    assert values(samples, "success_ratio") == [0.5]
    assert values(samples, "median_iterations_to_target") == [2]
    assert reason(samples, "tuning_effect_max_min") == "1 of 2 trials never reached the target"
    assert values(samples, "iterations_to_target", point="trial-00") == [2]
    assert reason(samples, "iterations_to_target", point="trial-01") == "it was at 0.700 after its last iteration, 3"
    curve = {s.step: s.value for s in samples if s.metric == "best_of_trials_high"}
    assert curve == {}  # of two draws one in four has the censored trial alone
    assert {s.step: s.value for s in samples if s.metric == "best_of_trials_median"} == {1: 2, 2: 2}


def test_a_search_that_no_trial_finished_has_no_time_to_the_target() -> None:
    samples = of(a_trial(0, 0.1), a_trial(1, 0.2), results=1)
    assert reason(samples, "time_to_target_seconds") == "none of 2 trials reached the target"
    assert "2 of 2 trials never reached" in reason(samples, "median_iterations_to_target")


def test_the_table_of_trials_begins_with_the_best() -> None:
    samples = of(a_trial(0, 0.1), a_trial(1, 0.5, 0.95), a_trial(2, 0.99), results=1)
    assert [s.point for s in samples if s.metric == "iterations_to_target"] == ["trial-02", "trial-01", "trial-00"]


def test_a_search_with_trials_of_an_earlier_attempt_has_no_time_of_its_own() -> None:
    samples = of(a_trial(0, 0.95), a_trial(1, 0.95), reused=frozenset({1}), results=1)
    for metric in ("search_seconds", "started_search_to_ideal_ratio", "overhead_per_trial_seconds"):
        assert reason(samples, metric) == "1 of 2 trials is reused from an earlier attempt at this run"
    assert values(samples, "success_ratio") == [1.0]


def test_of_processes_that_take_turns_as_many_are_start_up_as_train_at_once() -> None:
    places = {("head", process): 2.0 * process for process in range(1, 5)}  # a new one for each trial
    samples = of(
        *(a_trial(number, 0.5, 0.95) for number in range(4)), starts=places, clock_offsets={"head": 0.0}, results=1
    )
    beyond = {s.point: s.value for s in samples if s.metric == "beyond_ideal_ratio"}
    assert beyond["start-up"] == pytest.approx((2.0 + 4.0) / 4.0)
    assert values(samples, "startup_seconds") == [2.0]


def test_a_pool_is_held_against_the_ideal_of_all_cpus_as_the_search_is() -> None:
    found = SearchResult(
        trials=[a_trial(0, 0.5, 0.95)], begin=0.0, starts={("head", 1): 2.0}, clock_offsets={"head": 0.0}
    )
    pool = list(metrics.of_pool(replace(measured(found, seconds=5.0), arm="pool"), NODES, cpus_per_trial=1))
    assert values(pool, "search_to_ideal_ratio", "pool") == [pytest.approx(5.0 / 0.5)]
    assert values(pool, "started_search_to_ideal_ratio", "pool") == [pytest.approx((5.0 - 2.0 / 2) / 0.5)]


def test_trials_are_dealt_to_nodes_by_their_slots() -> None:
    config = Config(lr=0.1, momentum=0.5, hidden=32)
    items = [(number, config) for number in range(7)]
    assert [[number for number, _ in part] for part in deal(items, [1, 2])] == [[0, 3, 6], [1, 2, 4, 5]]
    assert [len(part) for part in deal(items, [0, 2])] == [0, 7]


@pytest.mark.parametrize(
    ("how", "is_silent"), [({}, True), ({"scheduler": "asha"}, False), ({"checkpoint_every": 2}, False)]
)
def test_a_trial_says_each_iteration_where_something_is_decided_or_kept_by_it(
    how: dict[str, Any], is_silent: bool
) -> None:
    assert Params(**how).is_silent is is_silent


# trials that an earlier attempt did


def a_journal(folder: Path, *earlier: Path, work: str = "some") -> Journal[TrialRun]:
    folder.mkdir(exist_ok=True)
    return Journal(folder, earlier, work=work, item=TrialRun, identity=lambda trial: trial.number)


def test_a_trial_that_diverged_is_reused_too_and_not_done_again(tmp_path: Path) -> None:
    trial = a_trial(0, 0.5)
    trial.reports = [replace(report, loss=None) for report in trial.reports]
    with a_journal(tmp_path / "1") as journal:
        journal.append("1/1", [trial, a_trial(1, 0.5)])
    with a_journal(tmp_path / "2", tmp_path / "1" / DONE) as journal:
        assert list(journal.done("1/1")) == [trial, a_trial(1, 0.5)]
        assert list(journal.done("2/1")) == []


def test_other_settings_and_other_configurations_are_other_work() -> None:
    configs = configurations("random", 6, seed=1, hidden_below=64)
    works = [
        describe_work(settings, chosen)
        for settings, chosen in (
            (TRAINING, configs),
            (replace(TRAINING, seed=2), configs),
            (replace(TRAINING, max_iterations=6), configs),
            (replace(TRAINING, threads=2), configs),
            (TRAINING, configs[1:]),
        )
    ]
    assert len(set(works)) == len(works)


def test_a_trial_on_all_of_mnist_is_guessed_to_take_as_many_images_as_those_of_the_study_did() -> None:
    few, many = (
        tune.guess_pass_seconds(Params(data=data, max_iterations=400, iteration_samples=60_000))[arms.SEQUENTIAL.name][
            0
        ]
        for data in ("mnist-small", "mnist")
    )
    assert 3 < (many - ALONE_SECONDS) / (few - ALONE_SECONDS) < 6
