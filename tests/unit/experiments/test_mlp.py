"""The network's arithmetic is exact, so every way of doing it gives the same answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from bench.experiments.inference import mlp

SOURCES = ("mnist", "random")
SEEDS = (0, 1, 7, 2026)


def test_the_network_has_425130_parameters() -> None:
    layers = mlp.make_layers(1, "float64")
    assert [weights.shape for weights, _ in layers] == [(784, 448), (448, 160), (160, 10)]
    assert sum(weights.size + biases.size for weights, biases in layers) == 425_130


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("source", SOURCES)
def test_no_partial_sum_reaches_what_float32_cannot_hold(source: str, seed: int) -> None:
    rows = mlp.make_vectors(source, seed, "float64")  # type: ignore[arg-type]
    for weights, biases in mlp.make_layers(seed, "float64"):
        assert np.array_equal(weights, np.round(weights))
        # The sum of absolute values bounds every partial sum, in whatever order a kernel adds.
        assert (np.abs(rows) @ np.abs(weights) + np.abs(biases)).max() < 2**24
        rows = np.maximum(rows @ weights + biases, 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("source", SOURCES)
def test_answers_are_spread_over_the_classes(source: str, seed: int) -> None:
    answers = mlp.answer(mlp.make_layers(seed, "float64"), mlp.make_vectors(source, seed, "float64"))  # type: ignore[arg-type]
    counts = np.bincount(answers, minlength=10)
    assert counts.max() < 0.5 * len(answers)
    assert np.count_nonzero(counts) >= 8


@pytest.fixture(scope="module")
def expected() -> bytes:
    return mlp.answer(mlp.make_layers(7, "float64"), mlp.make_vectors("mnist", 7, "float64"))[:1_500].tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("batch", [1, 10, 17, 1_000, 5_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_dtype_batch_and_threads_do_not_change_an_answer(
    dtype: mlp.Dtype, batch: int, threads: int, expected: bytes
) -> None:
    with threadpool_limits(threads, user_api="blas"):
        found = mlp.answer_all(mlp.make_layers(7, dtype), mlp.make_vectors("mnist", 7, dtype), 0, 1_500, batch)
    assert found == expected


def test_the_same_seed_gives_the_same_weights_in_both_dtypes_and_another_seed_others() -> None:
    one, same, other = (
        mlp.fingerprint(mlp.make_layers(seed, dtype))  # type: ignore[arg-type]
        for seed, dtype in ((3, "float64"), (3, "float32"), (4, "float64"))
    )
    assert one == same
    assert one != other


@settings(max_examples=50, deadline=None)
@given(start=st.integers(0, 40), count=st.integers(0, 40), vectors=st.integers(1, 12))
def test_input_i_is_vector_i_counted_on_from_the_first_after_the_last(start: int, count: int, vectors: int) -> None:
    table = np.arange(vectors, dtype=np.float64)[:, None]
    found = mlp.rows_of(table, start, start + count)[:, 0]
    assert found.tolist() == [index % vectors for index in range(start, start + count)]


def test_neither_layers_nor_rows_are_written_to() -> None:
    layers, rows = mlp.make_layers(1, "float32"), mlp.make_vectors("random", 1, "float32")[:50]
    before, kept = mlp.fingerprint(layers), rows.copy()
    for weights, biases in layers:
        weights.flags.writeable = biases.flags.writeable = False
    mlp.answer(layers, rows)
    assert mlp.fingerprint(layers) == before
    assert np.array_equal(rows, kept)
