"""Checks a capsule without Ray: every file by its checksum, every number of its report by computing it again from raw samples."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bench import identity
from bench.capsules.packing import PAGE, REPORT, Manifest, damaged
from bench.capsules.reading import unpack
from bench.errors import RecordDamaged
from bench.model import Run, Session, to_json
from bench.prometheus import extract
from bench.record import store
from bench.sanitize import clean_value

if TYPE_CHECKING:
    from bench.analysis import Report

CLOSE = 1e-9  # relative tolerance: another processor may round the last digits differently
_WORDS = ("answer", "caveats", "why", "question", "estimator", "randomised")  # fields of a report that contain text
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A capsule that passed all checks."""

    manifest: Manifest
    session: Session
    report: Report  # computed again
    runs: int
    samples: int
    numbers: int  # of the report, each computed again
    damaged: tuple[str, ...]  # runs whose record cannot be read, with the reason; the report leaves them out
    extract: str  # describes its extract of Prometheus
    same_code: bool  # whether the HTML page was made again too, and is the same


def verify(path: Path) -> Verified:
    """Check the whole capsule at `path`. Raises RecordDamaged for the first file or number that differs."""
    from bench.reports import as_html

    with tempfile.TemporaryDirectory(prefix="raymeter-capsule-") as place:
        manifest = unpack(path, Path(place))
        session, runs = load(Path(place))
        extract.check_all(Path(place), runs)
        same_code = (manifest.code_hash, manifest.look) == (identity.code_hash(), as_html.look())
        report = _check_report(Path(place), session, runs, same_code=same_code)
        if same_code:
            _check_page(Path(place), report, runs)
    return Verified(
        manifest=manifest,
        session=session,
        report=report,
        runs=len(runs),
        samples=sum(len(run.samples) for run in runs),
        numbers=_count(msgspec.json.decode(to_json(report))),
        damaged=damaged(runs),
        extract=extract.describe(runs),
        same_code=same_code,
    )


def load(folder: Path) -> tuple[Session, list[Run]]:
    """The session in the folder of a capsule. Raises RecordDamaged; no name in it may lead elsewhere."""
    session = store.load_session(folder)
    for name in (session.id, *(spec.folder for spec in session.specs)):
        if not _PLAIN.fullmatch(name):
            raise RecordDamaged(f"session.json names a run {name!r}, which is no name of a folder.")
    return session, store.load_runs(folder, session)


def _check_report(folder: Path, session: Session, runs: list[Run], *, same_code: bool) -> Report:
    from bench import analysis

    try:
        recorded = clean_value(msgspec.json.decode((folder / REPORT).read_bytes()))
        margin = float(recorded["margin"])
    except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
        raise RecordDamaged(f"{REPORT} is no report: {error}.") from error
    try:
        report = analysis.build(session, runs, margin=margin)
    except (ArithmeticError, ValueError) as error:
        raise RecordDamaged(f"The samples of {session.id} cannot be summed up: {error}.") from error
    for difference in _differences(recorded, msgspec.json.decode(to_json(report)), "", other_code=not same_code):
        why = "".join(f" {each}." for each in damaged(runs)[:1])
        raise RecordDamaged(f"{REPORT} does not follow from the samples: {difference}.{why}")
    return report


def _differences(recorded: Any, computed: Any, place: str, *, other_code: bool) -> Iterator[str]:
    """Describe where two JSON values differ; numbers need not be equal to the last digit.

    `other_code`: the capsule is of another raymeter. What this one says besides is no contradiction, and neither are other words.
    """
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for name in (*computed, *(name for name in recorded if name not in computed)):
            where = f"{place}.{name}".removeprefix(".")
            if other_code and (name not in recorded or name in _WORDS):
                continue
            if name not in recorded or name not in computed:
                yield f"{where} is in one of them only"
            else:
                yield from _differences(recorded[name], computed[name], where, other_code=other_code)
    elif isinstance(recorded, list) and isinstance(computed, list) and len(recorded) == len(computed):
        for number, (one, other) in enumerate(zip(recorded, computed, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]", other_code=other_code)
    elif not _equal(recorded, computed):
        yield f"{place} is {recorded!r:.80}, and from the samples {computed!r:.80}"


def _equal(recorded: Any, computed: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (recorded, computed))
    return math.isclose(recorded, computed, rel_tol=CLOSE, abs_tol=1e-300) if numbers else bool(recorded == computed)


def _count(found: Any) -> int:
    if isinstance(found, dict):
        return sum(_count(each) for each in found.values())
    if isinstance(found, list):
        return sum(_count(each) for each in found)
    return isinstance(found, int | float) and not isinstance(found, bool)


def _check_page(folder: Path, report: Report, runs: list[Run]) -> None:
    from bench import reports
    from bench.history.timelines import with_timelines

    page = folder / PAGE
    if page.is_file() and page.read_text() != reports.render("html", report, with_timelines(folder, report, runs)):
        raise RecordDamaged(f"{PAGE} is not the page that this report makes.", f"Trust {REPORT}, and not the page.")
