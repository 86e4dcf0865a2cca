"""Times this machine for a few seconds against the one on which the experiments' guesses were made."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from math import prod
from time import perf_counter

REPEATS = 5  # of each kernel: the fastest counts, so that what disturbs one does not matter

# Of one pass of each kernel on the machine of the guesses: two cores of an AMD EPYC at 2.6 GHz, Python 3.11, numpy 2.4.6.
REFERENCE_SECONDS: Mapping[str, float] = {
    "Python loop": 0.028,
    "matrix product": 0.024,
    "pickle": 0.043,
    "process start": 0.036,
}


def slowness() -> float:
    """How many times as long the same work takes here: the geometric mean over all kernels."""
    return mean_ratio({name: fastest_seconds(kernel) for name, kernel in KERNELS.items()}, REFERENCE_SECONDS)


def mean_ratio(here: Mapping[str, float], there: Mapping[str, float]) -> float:
    """The geometric mean of the ratios of seconds, by the name of the kernel."""
    return float(prod(here[name] / there[name] for name in there) ** (1 / len(there)))


def fastest_seconds(kernel: Callable[[], object]) -> float:
    """Of some passes, after one that is not timed: it imports, and fills caches."""
    kernel()
    return min(_seconds(kernel) for _ in range(REPEATS))


def _seconds(kernel: Callable[[], object]) -> float:
    begin = perf_counter()
    kernel()
    return perf_counter() - begin


def _loop() -> int:
    """Python by itself, as between two calls of Ray."""
    total = 0
    for number in range(1_000_000):
        total += number
    return total


def _product() -> object:
    """What numpy does on one thread."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    matrix = np.ones((600, 600))
    with threadpool_limits(1, user_api="blas"):
        return matrix @ matrix @ matrix


def _pickled() -> object:
    """What is done to arguments and answers."""
    return pickle.loads(pickle.dumps([{"number": number, "text": str(number)} for number in range(50_000)]))  # noqa: S301, written here


def _process() -> None:
    """What a job, a worker or a peer begins with."""
    subprocess.run([sys.executable, "-c", "import json, logging, socket"], check=True, stdin=subprocess.DEVNULL)


KERNELS: Mapping[str, Callable[[], object]] = {
    "Python loop": _loop,
    "matrix product": _product,
    "pickle": _pickled,
    "process start": _process,
}
