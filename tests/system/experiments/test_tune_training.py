"""A trial learns, comes to the same wherever it is done, goes on from where it was, and keeps to its threads."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest

from bench.data.images import Images
from bench.errors import RunInvalid
from bench.experiments.tune.training import (
    Config,
    Training,
    TrainingSettings,
    check_threads,
    first_weights,
    seed_everything,
    train,
)

pytestmark = pytest.mark.timeout(180)

TRAINING = TrainingSettings(
    batch=50, iteration_samples=1_000, max_iterations=12, target=0.99, judged_by="training", threads=1, seed=7
)
CONFIG = Config(lr=0.05, momentum=0.8, hidden=40)


@pytest.fixture(scope="module")
def some_images() -> Images:
    """Ten patterns with little noise: learnt within a few iterations."""
    random = np.random.default_rng(1)
    patterns = random.integers(0, 200, (10, 784))
    labels = np.arange(600) % 10
    rows = (patterns[labels] + random.integers(0, 55, (600, 784))).astype(np.uint8)
    return Images(train_x=rows[:500], train_y=labels[:500], test_x=rows[500:], test_y=labels[500:])


def test_a_trial_learns_and_ends_at_its_target(some_images: Images) -> None:
    reports = train(CONFIG, some_images, TRAINING)
    assert [report.iteration for report in reports] == list(range(1, len(reports) + 1))
    assert reports[0].training_accuracy < 0.99 <= reports[-1].training_accuracy
    assert reports[-1].held_out_accuracy > 0.95
    assert reports[-1].loss < reports[0].loss
    assert all(before.end <= after.begin for before, after in itertools.pairwise(reports))
    assert reports[-1].peak_memory_bytes > 50e6


def test_a_trial_that_learns_nothing_ends_at_its_last_iteration(some_images: Images) -> None:
    lame = train(dataclasses.replace(CONFIG, lr=1e-9), some_images, dataclasses.replace(TRAINING, max_iterations=3))
    assert len(lame) == 3
    assert lame[-1].training_accuracy < 0.5


def test_the_target_can_be_set_for_the_held_out_part(some_images: Images) -> None:
    reports = train(CONFIG, some_images, dataclasses.replace(TRAINING, judged_by="held-out", target=0.9))
    assert reports[-1].held_out_accuracy >= 0.9
    assert all(report.held_out_accuracy < 0.9 for report in reports[:-1])


def test_the_arithmetic_is_that_of_numpy(some_images: Images) -> None:
    course = dataclasses.replace(TRAINING, batch=250, iteration_samples=500)
    training = Training(CONFIG, some_images, course)
    report = training.iterate()
    random = seed_everything(CONFIG.seed(course.seed))
    weights = [array.astype(np.float64) for array in first_weights(CONFIG.hidden, random)]
    velocities, right = [0 * array for array in weights], 0
    for batch in random.permutation(500).reshape(2, 250):
        rows, labels = some_images.train_x[batch] / 255, some_images.train_y[batch]
        hidden = np.maximum(rows @ weights[0] + weights[1], 0)
        scores = hidden @ weights[2] + weights[3]
        right += int((scores.argmax(axis=1) == labels).sum())
        slope = np.exp(scores - scores.max(axis=1, keepdims=True))
        slope /= slope.sum(axis=1, keepdims=True)
        slope[np.arange(250), labels] -= 1
        slope /= 250
        back = slope @ weights[2].T * (hidden > 0)
        slopes = [rows.T @ back, back.sum(axis=0), hidden.T @ slope, slope.sum(axis=0)]
        velocities = [CONFIG.momentum * v - CONFIG.lr * s for v, s in zip(velocities, slopes, strict=True)]
        weights = [w + v for w, v in zip(weights, velocities, strict=True)]
    for ours, theirs in zip(training.state()["weights"], weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert report.training_accuracy == right / 500


def test_a_trial_that_goes_on_elsewhere_comes_to_the_same(some_images: Images) -> None:
    whole = Training(CONFIG, some_images, TRAINING)
    reports = [whole.iterate() for _ in range(4)]
    begun = Training(CONFIG, some_images, TRAINING)
    for _ in range(2):
        begun.iterate()
    taken_up = Training(dataclasses.replace(CONFIG), some_images, TRAINING)
    taken_up.go_on_from(pickle.loads(pickle.dumps(begun.state())))  # noqa: S301, our own
    rest = [taken_up.iterate() for _ in range(2)]
    for ours, theirs in zip(rest, reports[2:], strict=True):
        assert (ours.iteration, ours.training_accuracy, ours.loss) == (
            theirs.iteration,
            theirs.training_accuracy,
            theirs.loss,
        )


def test_another_process_comes_to_the_same_and_has_the_threads_it_was_given(some_images: Images) -> None:
    here = [report.training_accuracy for report in train(CONFIG, some_images, TRAINING)]
    script = (
        "import sys, pickle; from bench.experiments.tune.training import train; import tensorflow as tf\n"
        "reports = train(*pickle.load(sys.stdin.buffer)); t = tf.config.threading\n"
        "print([r.training_accuracy for r in reports], t.get_intra_op_parallelism_threads(),"
        " t.get_inter_op_parallelism_threads())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps((CONFIG, some_images, TRAINING)),
        capture_output=True,
        check=True,
        timeout=150,
    )
    assert done.stdout.decode().strip().splitlines()[-1] == f"{here} 1 1"


def test_other_threads_than_the_process_has_are_refused(some_images: Images) -> None:
    train(CONFIG, some_images, dataclasses.replace(TRAINING, max_iterations=1))
    with pytest.raises((RunInvalid, RuntimeError)):
        Training(CONFIG, some_images, dataclasses.replace(TRAINING, threads=3))


def test_a_trial_that_used_more_cpus_than_its_threads_is_invalid() -> None:
    check_threads(seconds=2.0, cpu_seconds=2.2, threads=1)
    check_threads(seconds=0.1, cpu_seconds=0.9, threads=1)  # too short to tell
    with pytest.raises(RunInvalid, match=r"used 1.9 CPUs"):
        check_threads(seconds=2.0, cpu_seconds=3.8, threads=1)
    check_threads(seconds=2.0, cpu_seconds=3.8, threads=2)


def test_each_configuration_has_a_seed_of_its_own_in_each_run() -> None:
    other = dataclasses.replace(CONFIG, hidden=41)
    assert len({CONFIG.seed(1), CONFIG.seed(2), other.seed(1)}) == 3
    assert CONFIG.seed(1) == Config(lr=0.05, momentum=0.8, hidden=40).seed(1)
