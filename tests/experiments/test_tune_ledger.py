"""What has ended is written down, and only the same trial of the same turn is taken for done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.experiments.tune.ledger import NAME, Ledger
from bench.experiments.tune.numbers import TrialRun
from bench.experiments.tune.space import configurations
from bench.experiments.tune.training import Course, Report
from bench.record.store import DONE

COURSE = Course(
    batch=128, iteration_samples=1_000, max_iterations=5, target=0.9, judged_by="training", threads=1, seed=1
)
CONFIGS = configurations("random", 6, seed=1, hidden_below=64)
REPORT = Report(
    iteration=1,
    training_accuracy=0.5,
    held_out_accuracy=0.4,
    loss=1.0,
    cpu_seconds=1.0,
    begin=0.0,
    end=1.0,
    peak_memory_bytes=1,
    setup_seconds=0.0,
    node="head",
)


def a_ledger(folder: Path, *earlier: Path, course: Course = COURSE) -> Ledger:
    folder.mkdir(exist_ok=True)
    return Ledger(folder=folder, earlier=earlier, course=course)


def a_trial(number: int) -> TrialRun:
    return TrialRun(number=number, config=CONFIGS[number], reports=[REPORT])


def test_the_name_is_the_one_that_is_given_back() -> None:
    assert NAME == DONE


def test_trials_of_earlier_attempts_are_kept_once_each_in_order(tmp_path: Path) -> None:
    first, second = a_ledger(tmp_path / "1"), a_ledger(tmp_path / "2")
    for ledger, number in ((first, 4), (first, 0), (second, 2), (second, 4)):
        ledger.write(1, a_trial(number))
    third = a_ledger(tmp_path / "3", tmp_path / "1" / NAME, tmp_path / "2" / NAME)
    assert third.kept(1, CONFIGS) == [a_trial(0), a_trial(2), a_trial(4)]
    assert third.kept(2, CONFIGS) == []


def test_a_trial_that_diverged_is_kept_too_and_not_done_again(tmp_path: Path) -> None:
    trial = TrialRun(number=0, config=CONFIGS[0], reports=[replace(REPORT, loss=None)])
    a_ledger(tmp_path / "1").write(1, trial)
    assert a_ledger(tmp_path / "2", tmp_path / "1" / NAME).kept(1, CONFIGS) == [trial]


def test_a_trial_of_another_course_or_configuration_is_not_kept(tmp_path: Path) -> None:
    a_ledger(tmp_path / "1").write(1, a_trial(0))
    path = tmp_path / "1" / NAME
    for course in (replace(COURSE, seed=2), replace(COURSE, max_iterations=6), replace(COURSE, threads=2)):
        assert a_ledger(tmp_path / "2", path, course=course).kept(1, CONFIGS) == []
    assert a_ledger(tmp_path / "2", path).kept(1, CONFIGS[1:]) == []


def test_a_line_that_was_cut_short_or_damaged_is_a_trial_to_do_again(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path / "1")
    for number in range(3):
        ledger.write(1, a_trial(number))
    path = tmp_path / "1" / NAME
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], b'{"turn": "damaged"', lines[2][:-20]]))
    assert [trial.number for trial in a_ledger(tmp_path / "2", path).kept(1, CONFIGS)] == [0]
