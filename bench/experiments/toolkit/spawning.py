"""New processes of a peer's own: what they inherit, and what they do not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables that new processes inherit, set for a while."""
    kept = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


@contextmanager
def without_main_script() -> Iterator[None]:
    """Keep new processes from running this one's main script first: it is Ray's worker, and takes a second to import."""
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    main.__file__ = None
    try:
        yield
    finally:
        main.__file__ = script
