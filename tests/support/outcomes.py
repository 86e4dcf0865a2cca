"""What parts of a clustering come to, made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.experiments.clustering.work import Outcome
from bench.experiments.toolkit.journal import Journal


def an_outcome(part: int, jobs: int = 3) -> Outcome:
    return Outcome(part=part, jobs=jobs, squares=5, digest=7, results=b"12345678", busy_seconds=0.1, cpu_seconds=0.1)


def a_journal(folder: Path, earlier: Sequence[Path] = (), *, work: str = "work") -> Journal[Outcome]:
    return Journal(folder, earlier, work=work, item=Outcome, identity=lambda outcome: outcome.part)
