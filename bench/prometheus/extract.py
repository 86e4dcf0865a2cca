"""Keeps what Prometheus had of a run: the series that the boards ask for, while it went, as OpenMetrics in one small file."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench import http_client
from bench.errors import RecordDamaged, TargetFailed
from bench.model import Extract, Run, Spec
from bench.prometheus import boards, reconcile
from bench.prometheus.board_queries import queries
from bench.prometheus.client import Prometheus
from bench.prometheus.run_view import Span, named
from bench.record import store
from bench.record.files import read_plain

if TYPE_CHECKING:
    from typing import TypeAlias

MOST_SERIES = 5_000
MOST_POINTS = 400_000  # of all series together: some 40 MB as text, and 3 MB as it is kept
MOST_BYTES = 128 * 2**20  # as text
SLICE_SECONDS = 600.0  # asked for at once
SHOWN = ("bench_sample_value", "bench_run_samples")  # of these the record says the same

Labels: TypeAlias = "tuple[tuple[str, str], ...]"
Points: TypeAlias = "Sequence[tuple[float, float]]"  # seconds and values, in order of time


def extract(url: str, spec: Spec, span: Span | None) -> tuple[Extract, bytes]:
    """What the Prometheus at `url` has of a run that has ended, and the file that holds it; nothing, and why, where it has none."""
    if span is None:
        return _missing("Prometheus does not know this run")
    try:
        found, every = scraped(Prometheus(url), spec, span)
    except (http_client.RequestException, TargetFailed) as error:
        return _missing(f"Prometheus could not be asked: {error}")
    return packed(found, every=every)


def _missing(why: str) -> tuple[Extract, bytes]:
    return Extract(missing=why), b""


def board_metrics() -> tuple[str, ...]:
    """The names of the metrics that the boards ask for."""
    every = {name for board in boards.load().values() for query in queries(board) for name in query.metrics}
    return tuple(sorted({*every, *SHOWN}))


def scraped(prometheus: Prometheus, spec: Spec, span: Span) -> tuple[Mapping[Labels, Points], int]:
    """The points of the run's own series and of its cluster's, by labels; and of how many points one is kept.

    They go on until now: what agrees with the record may have been scraped at the last moment.
    """
    names, cluster = "|".join(board_metrics()), span.labels.get("cluster", "")
    selectors = (
        f'{{__name__=~"{names}",session="{spec.session}",run="{spec.folder}"}}',
        f'{{__name__=~"{names}",cluster="{cluster}",run=""}}',
    )
    found: dict[Labels, Points] = {}
    every = 1
    for begin, end in _slices(span.begin, span.now):
        for selector in selectors:
            for series in prometheus.recorded(selector, begin=begin, end=end):
                labels = tuple(sorted(series.labels.items()))
                found[labels] = (*found.get(labels, ()), *thinned(series.points, every))
        while sum(map(len, found.values())) > MOST_POINTS and any(len(points) > 1 for points in found.values()):
            every *= 2
            found = {labels: thinned(points, 2) for labels, points in found.items()}
    return found, every


def _slices(begin: float, end: float) -> Iterator[tuple[float, float]]:
    while begin < end:
        yield begin, min(begin + SLICE_SECONDS, end)
        begin += SLICE_SECONDS


def thinned(points: Points, every: int) -> Points:
    """One of `every` points, the last one among them: it is what the record must agree with."""
    return points[::-every][::-1]


def packed(found: Mapping[Labels, Points], *, every: int) -> tuple[Extract, bytes]:
    """`found` as the file that is kept: the same bytes whenever it is packed. Of too many series the first are kept."""
    from prometheus_client.utils import floatToGoString

    kept = sorted(found, key=lambda labels: (dict(labels)["__name__"] not in SHOWN, dict(labels)["__name__"], labels))
    kept = kept[:MOST_SERIES]
    text = io.StringIO()
    family = ""
    for labels in kept:
        series = dict(labels)
        if series["__name__"] != family:
            family = series["__name__"]
            text.write(f"# TYPE {family} unknown\n")
        name = named(series)
        text.writelines(
            f"{name} {floatToGoString(value)} {moment:.3f}\n"  # type: ignore[no-untyped-call]
            for moment, value in found[labels]
        )
    text.write("# EOF\n")
    content = text.getvalue().encode()
    if len(content) > MOST_BYTES:
        return _missing(f"its {len(kept):,} series are {len(content) / 2**20:,.0f} MiB of text, and that is too much")
    file = gzip.compress(content, compresslevel=6, mtime=0)
    said = Extract(
        series=len(kept),
        points=sum(len(found[labels]) for labels in kept),
        every=every,
        left_out=len(found) - len(kept),
        sha256=hashlib.sha256(file).hexdigest(),
    )
    return said, file


def check_all(folder: Path, runs: Sequence[Run]) -> None:
    """Check the extract of every run of the session in `folder`. Raises RecordDamaged."""
    for run in runs:
        check(store.run_folder(folder, run.spec) / store.SERIES, run)


def check(path: Path, run: Run) -> None:
    """Raise RecordDamaged where the extract at `path` is not the one of `run`, or shows other samples than its record."""
    said, name = run.extract, f"runs/{run.spec.folder}/{path.name}"
    if said is None or said.missing:
        return
    try:
        file = read_plain(path)
        lines = _unpacked(file).decode().splitlines()
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise RecordDamaged(f"{name} cannot be read, and run.json says that it is there: {error}.") from error
    last: dict[str, str] = {}
    points = 0
    for line in lines:
        if not line.startswith("#"):
            series, _, value = line.rpartition(" ")[0].rpartition(" ")
            last[series] = value
            points += 1
    found = (hashlib.sha256(file).hexdigest(), len(last), points)
    if found != (said.sha256, said.series, said.points) or lines[-1:] != ["# EOF"]:
        raise RecordDamaged(
            f"{name} is not what run.json says: {len(last):,} of {said.series:,} series, {points:,} of {said.points:,} points."
        )
    if run.reconciled and not said.left_out:
        page = "".join(f"{series} {value}\n" for series, value in last.items() if series.startswith(SHOWN))
        try:
            differences = reconcile.differences(run.spec, run.samples, page)
        except (ValueError, KeyError) as error:
            raise RecordDamaged(f"{name} has a series that cannot be read: {error}.") from error
        for difference in differences:
            raise RecordDamaged(f"{name} does not show the samples of its run: {difference}.")


def _unpacked(file: bytes) -> bytes:
    """The text of an extract, which may be a stranger's: no more of it than raymeter writes."""
    with gzip.GzipFile(fileobj=io.BytesIO(file)) as whole:
        content = whole.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES / 2**20:.0f} MiB")
    return content


def describe(runs: Sequence[Run]) -> str:
    """What there is of Prometheus in a session: `series of 12 of 12 runs: 3,456 series, 98,765 points`."""
    kept = [run.extract for run in runs if run.extract and not run.extract.missing]
    lacking = {run.extract.missing if run.extract else "its raymeter kept none" for run in runs} - {""}
    why = f"; {'; '.join(sorted(lacking))}" if lacking else ""
    if not kept:
        return f"no series of Prometheus{why}"
    counts = f"{sum(each.series for each in kept):,} series, {sum(each.points for each in kept):,} points"
    return f"series of Prometheus of {len(kept)} of {len(runs)} runs: {counts}{why}"
