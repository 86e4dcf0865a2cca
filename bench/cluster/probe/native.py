"""The native libraries that a node's work runs in: which BLAS, by which of its kernels, and what their variables say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

PREFIXES = ("OMP_", "OPENBLAS_", "MKL_", "KMP_", "GOMP_", "BLIS_")
_OF_THREADPOOLCTL = "KMP_DUPLICATE_LIB_OK"  # which it sets when it is imported, here
# How many threads, which goes with the CPUs of a node: facts of their own, and no difference between two topologies.
_THREADS = ("_NUM_THREADS", "_THREAD_LIMIT")


def libraries(pools: Iterable[Mapping[str, Any]] | None = None) -> dict[str, str]:
    """The BLAS of numpy as "openblas 0.3.31 SkylakeX, pthreads"; `pools` are what threadpoolctl sees, else it is asked.

    The kernel is chosen when the library is loaded, by the CPU or by a variable: two machines of one model may differ.
    """
    if pools is None:
        import numpy as np  # noqa: F401, its BLAS is seen once it is loaded
        from threadpoolctl import threadpool_info

        pools = threadpool_info()
    found = {_described(pool) for pool in pools if pool.get("user_api") == "blas"}
    return {"BLAS": " and ".join(sorted(found))} if found else {}


def _described(pool: Mapping[str, Any]) -> str:
    named = " ".join(str(pool[key]) for key in ("internal_api", "version", "architecture") if pool.get(key))
    return f"{named}, {pool['threading_layer']}" if pool.get("threading_layer") else named


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What is set of OpenMP's and the BLAS libraries' variables, but for the numbers of threads."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(PREFIXES) and not name.endswith(_THREADS) and name != _OF_THREADPOOLCTL
    }
