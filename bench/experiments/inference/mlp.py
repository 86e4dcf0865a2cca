"""The network of the inference experiment: 784-448-160-10, ReLU, with weights that make its arithmetic exact.

Weights are -1, 0 or 1, biases and inputs small integers. No partial sum reaches 2**24, so float32 and float64, every
batch size, every number of threads and every BLAS kernel give the same bits, and so the same answers.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from bench.data import digits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]
    Layers = tuple[tuple[Array, Array], ...]

Dtype = Literal["float64", "float32"]

SHAPE = (784, 448, 160, 10)
BLOCK = 1_000  # rows: more of them at once are not faster


def make_layers(seed: int, dtype: Dtype, shape: tuple[int, ...] = SHAPE) -> Layers:
    """Weights and biases of each layer, the same ones for the same seed."""
    import numpy as np

    random = np.random.Generator(np.random.PCG64([seed, len(shape)]))
    layers = []
    for rows, columns in pairwise(shape):
        # As many -1 as 1 in each column: else the columns' sums alone would choose the class, and nearly always one.
        column = np.repeat([-1, 1, 0], [rows // 3, rows // 3, rows - 2 * (rows // 3)])
        weights = random.permuted(np.tile(column[:, None], columns), axis=0)
        layers.append((weights.astype(dtype), random.integers(-8, 9, columns).astype(dtype)))
    return tuple(layers)


def answer(layers: Layers, rows: Array) -> NDArray[np.uint8]:
    """The class of each row. Writes neither to the layers nor to the rows."""
    import numpy as np

    for weights, biases in layers[:-1]:
        rows = rows @ weights
        rows += biases
        np.maximum(rows, 0, out=rows)
    weights, biases = layers[-1]
    scores = rows @ weights
    scores += biases
    classes: NDArray[np.uint8] = scores.argmax(axis=1).astype(np.uint8)
    return classes


def answer_all(layers: Layers, vectors: Array, start: int, stop: int, batch: int) -> bytes:
    """The classes of inputs `start` to `stop`, `batch` at a time, in this process."""
    return b"".join(
        answer(layers, rows_of(vectors, begin, min(begin + batch, stop))).tobytes()
        for begin in range(start, stop, batch)
    )


def rows_of(vectors: Array, start: int, stop: int) -> Array:
    """Inputs `start` to `stop`: input i is vector i, counted on from the first after the last."""
    import numpy as np

    first = start % len(vectors)
    if first + stop - start <= len(vectors):
        return vectors[first : first + stop - start]
    return vectors[np.arange(start, stop) % len(vectors)]


def make_vectors(source: digits.Source, seed: int, dtype: Dtype) -> Array:
    """The distinct input vectors, as numbers that the network takes."""
    return digits.vectors(source, seed).astype(dtype)


def fingerprint(layers: Layers) -> str:
    """A checksum of all weights and biases, the same one in both dtypes."""
    import numpy as np

    total = sha256()
    for weights, biases in layers:
        total.update(weights.astype(np.int8).tobytes())
        total.update(biases.astype(np.int8).tobytes())
    return total.hexdigest()


def native_threads() -> int:
    """How many threads the BLAS in this process uses now."""
    from threadpoolctl import threadpool_info

    return max((int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
