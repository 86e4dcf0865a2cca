"""Every job is done once and counted once, wherever its input comes from and however the jobs are split."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import BadInput
from bench.experiments import clustering, load
from bench.experiments.clustering import Params, split, work
from bench.experiments.clustering import reference as reference_module
from bench.experiments.clustering.metrics import Account
from bench.experiments.clustering.params import job_of
from bench.experiments.clustering.points import RESNET18
from bench.experiments.clustering.reference import Reference
from bench.experiments.clustering.run import given_by, jobs_per_part_of
from bench.experiments.clustering.work import Job
from bench.experiments.clustering.workspace import FileServer

EMPTY = job_of(Params(job="empty"), seed=1)
SMALL = job_of(Params(points=200, dimensions=4, clusters=5, iterations=4), seed=1)


def done(job: Job, jobs: int, jobs_per_part: int) -> Account:
    account = Account()
    for part in split.parts(jobs, jobs_per_part):
        account.add(work.perform(job, part, work.vectors_of(job, part, None), say=print))
    return account


# the split


@given(st.integers(1, 30_000_000), st.integers(1, 20_000))
def test_every_job_is_in_a_layer(jobs: int, jobs_per_part: int) -> None:
    assert sum(split.jobs_by_layer(jobs)) == jobs
    assert split.count(jobs, jobs_per_part) >= jobs / jobs_per_part


@given(st.integers(1, 3_000), st.integers(1, 50))
def test_parts_are_numbered_in_order_and_hold_every_job_once(jobs: int, jobs_per_part: int) -> None:
    parts = list(split.parts(jobs, jobs_per_part))
    assert [part.number for part in parts] == list(range(split.count(jobs, jobs_per_part)))
    assert [job for part in parts for job in range(part.first, part.first + part.jobs)] == list(range(jobs))
    assert all(part.jobs <= jobs_per_part for part in parts)
    assert [part.layer for part in parts] == sorted(part.layer for part in parts)


def test_the_layers_are_those_of_resnet_18() -> None:
    # torchvision's resnet18 has 11,689,512 parameters: 9,600 of them in batch normalisation, and 1,000 biases.
    assert sum(layer.weights for layer in RESNET18) == 11_689_512 - 9_600 - 1_000


def test_a_part_lasts_a_second_fits_and_leaves_each_worker_some() -> None:
    assert split.chosen(10**6, job_seconds=0.01, job_bytes=0, workers=2) == 100
    assert split.chosen(10**6, job_seconds=0.001, job_bytes=2**20, workers=2) == 64
    assert split.chosen(48, job_seconds=0.02, job_bytes=0, workers=2) == 3
    assert split.chosen(1_500, job_seconds=0.01, job_bytes=0, workers=2) == 23
    assert split.chosen(1, job_seconds=5.0, job_bytes=0, workers=2) == 1
    assert split.chosen(8 * 10**6, job_seconds=1e-9, job_bytes=0, workers=2) == 20_000


# the work


@given(st.integers(1, 2_000), st.integers(1, 500))
def test_sums_over_all_jobs_are_known_without_doing_any(jobs: int, jobs_per_part: int) -> None:
    account = done(EMPTY, jobs, jobs_per_part)
    assert (account.jobs, account.squares, account.digest) == (jobs, work.squares_of(jobs), work.cubes_of(jobs))


def test_how_the_jobs_are_split_does_not_change_what_they_come_to() -> None:
    one, other = done(SMALL, 20, 20), done(SMALL, 20, 3)
    assert one.digest == other.digest
    order = b"".join(one.results[number] for number in sorted(one.results))
    assert order == b"".join(other.results[number] for number in sorted(other.results))


def test_a_job_that_fails_is_tried_three_times_and_set_aside_and_the_rest_is_done() -> None:
    said: list[str] = []
    part = split.Part(number=0, layer=0, first=10, jobs=4)
    failing = replace(EMPTY, failing=(12,))
    outcome = work.perform(failing, part, work.vectors_of(failing, part, None), say=said.append)
    assert outcome.jobs == 3
    assert [(each.job, each.layer) for each in outcome.aside] == [(12, "conv1")]
    assert "job 12 fails by plan" in outcome.aside[0].error
    assert len(said) == 3


def test_a_job_that_fails_once_is_done_at_the_second_try() -> None:
    part = split.Part(number=0, layer=0, first=0, jobs=2)
    left = [True]

    def vectors(number: int) -> Any:
        if number == 1 and left.pop():
            left.append(False)
            raise OSError("the disk hiccuped")
        return work.vectors_of(SMALL, part, None)(number)

    outcome = work.perform(SMALL, part, vectors, say=lambda _: None)
    assert (outcome.jobs, outcome.aside) == (2, ())


def test_input_from_a_disk_is_what_a_worker_would_make_itself(tmp_path: Path) -> None:
    part = split.Part(number=4, layer=2, first=7, jobs=3)
    assert work.write_block(tmp_path, SMALL, part) == 3 * 200 * 4 * 4
    read, made = work.vectors_of(SMALL, part, tmp_path), work.vectors_of(SMALL, part, None)
    assert all(np.array_equal(read(number), made(number)) for number in (7, 8, 9))


@pytest.mark.parametrize(
    ("vectors", "refusal"),
    [
        (np.zeros((70, 4)), "7 jobs of 10, not 8"),
        (np.full((80, 4), np.nan), "is no finite float32"),
        (np.full((80, 4), 1e300), "is no finite float32"),
        (np.zeros((80, 5)), "vectors of 5 values, not 4"),
        (np.zeros((80, 4), dtype=np.int64), "values of type int64"),
        (np.array([[{}] * 4] * 80, dtype=object), "values of type object"),
    ],
)
def test_a_file_that_will_not_do_is_refused_before_any_worker_starts(
    tmp_path: Path, vectors: Any, refusal: str
) -> None:
    np.save(tmp_path / "mine.npy", vectors)
    params = Params(jobs=8, points=10, clusters=2, dimensions=4, source="local", input=str(tmp_path / "mine.npy"))
    context: Any = SimpleNamespace(nodes=(), seed=1, data=pytest.fail)
    with pytest.raises(BadInput, match=refusal):
        next(clustering.run(params, context))


def test_two_files_of_one_name_in_two_folders_are_two_sets(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    context: Any = SimpleNamespace(data=lambda *set_: told.append(set_))
    for number, name in enumerate(("one", "two")):
        path = tmp_path / name / "mine.npy"
        path.parent.mkdir()
        np.save(path, np.full((80, 4), float(number)))
        given_by(Params(jobs=8, points=10, clusters=2, dimensions=4, source="local", input=str(path)), context)
    assert len({name for name, _ in told}) == len({digest for _, digest in told}) == 2


def test_a_node_with_another_file_under_that_path_has_not_the_one_that_was_given(tmp_path: Path) -> None:
    path = tmp_path / "mine.npy"
    np.save(path, np.zeros((8, 4)))
    there = FileServer(SMALL, node="head", folder=str(tmp_path / "depot"))
    meant = work.Given(path=str(path), sha256=sha256(path.read_bytes()).hexdigest())
    assert there.has(meant)
    np.save(path, np.ones((8, 4)))
    assert not there.has(meant)
    path.unlink()
    assert not there.has(meant)


# the reference


def test_a_wrong_result_of_any_job_shows_where_all_are_compared() -> None:
    reference = Reference(job=SMALL, jobs=9, jobs_per_part=2)
    results = done(SMALL, 9, 2).results
    assert reference.share == 1.0
    assert list(reference.wrong(results)) == []
    for number, held in results.items():
        for place in range(len(held) // 8):
            wrong = np.frombuffer(held).copy()
            wrong[place] *= 1.01
            (reason,) = reference.wrong({**results, number: wrong.tobytes()})
            assert "by float64" in reason
    del results[0]
    assert next(reference.wrong(results)).startswith("part 0 has 0 results of ")


def test_results_in_the_wrong_order_show() -> None:
    results = done(SMALL, 9, 9).results
    turned = {number: np.frombuffer(held)[::-1].tobytes() for number, held in results.items()}
    assert list(Reference(job=SMALL, jobs=9, jobs_per_part=9).wrong(turned))


@given(st.integers(1, 5_000), st.floats(0.001, 100.0))
def test_the_jobs_that_are_done_again_are_as_many_as_there_is_time_for_and_spread(jobs: int, seconds: float) -> None:
    study = job_of(Params(), seed=1)
    found = reference_module.chosen(study, jobs, seconds)
    assert min(3, jobs) <= len(found) <= max(3, seconds / 0.0384) + 1
    assert (found[0], found[-1]) == (0, jobs - 1)
    gaps = [after - before for before, after in pairwise(found)]
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_tiny_is_checked_whole() -> None:
    assert Reference(job=job_of(Params(), seed=1), jobs=48, jobs_per_part=1).share == 1.0


def test_the_index_knows_clustering_and_its_headline() -> None:
    assert load("clustering").metrics[0].name == "jobs_per_second"


# parts of a size, layers, jobs that are set aside


def test_parts_of_a_size_are_that_large_however_long_they_take() -> None:
    sizes = {}
    for part_mib in (64, 128, 256):
        params = Params(jobs=8_000_000, points=4_096, clusters=128, kernel="broadcast", part_mib=part_mib)
        sizes[part_mib] = jobs_per_part_of(params, job_of(params, seed=1), workers=2)
    assert sizes == {64: 256, 128: 512, 256: 1_024}  # of 256 KiB each


@given(st.integers(1_000, 5_000), st.integers(1, 500))
def test_jobs_of_some_layers_keep_their_numbers_and_their_sums_are_known(jobs: int, jobs_per_part: int) -> None:
    parts = list(split.parts(jobs, jobs_per_part, "layer4+fc"))
    numbers = [job for part in parts for job in range(part.first, part.first + part.jobs)]
    of_all = {
        job
        for part in split.parts(jobs, jobs_per_part)
        if part.of.name.startswith(("layer4.", "fc"))
        for job in range(part.first, part.first + part.jobs)
    }
    assert set(numbers) == of_all
    assert len(numbers) == len(of_all) == split.total(jobs, "layer4+fc")
    assert [part.number for part in parts] == list(range(split.count(jobs, jobs_per_part, "layer4+fc")))
    squares, cubes = work.sums_of(split.spans(jobs, "layer4+fc"))
    assert squares == sum((number + 1) ** 2 for number in numbers) % work.MODULUS
    assert cubes == sum((number + 1) ** 3 for number in numbers) % work.MODULUS


def test_a_layer_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="there is no layer4") as refused:
        Params(layers="fc+layer4.0.conv9")
    assert "layer4.0.conv1" in refused.value.hint
    with pytest.raises(BadInput, match="The layers conv1 have none of 2 jobs"):
        Params(jobs=2, layers="conv1")
