"""What parts of a clustering come to, made up."""

from __future__ import annotations

from bench.experiments.clustering.work import Outcome


def an_outcome(part: int, jobs: int = 3) -> Outcome:
    return Outcome(part=part, jobs=jobs, squares=5, digest=7, results=b"12345678", busy_seconds=0.1, cpu_seconds=0.1)
