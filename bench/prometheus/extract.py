"""Extracts a run's series from Prometheus, those that the boards query, into one compressed OpenMetrics file."""

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
MOST_POINTS = 400_000  # of all series together: about 40 MB as text, and 3 MB compressed
MOST_BYTES = 128 * 2**20  # as text
SLICE_SECONDS = 600.0  # time range of one request
SHOWN = ("bench_sample_value", "bench_run_samples")  # the record has the same values

Labels: TypeAlias = "tuple[tuple[str, str], ...]"
Points: TypeAlias = "Sequence[tuple[float, float]]"  # seconds and values, in order of time


def extract(url: str, spec: Spec, span: Span | None) -> tuple[Extract, bytes]:
    """The extract of an ended run from the Prometheus at `url`, and its file; or the reason why there is none."""
    if span is None:
        return _missing("Prometheus does not know this run")
    try:
        points_by_labels, every = scraped(Prometheus(url), spec, span)
    except (http_client.RequestException, TargetFailed) as error:
        return _missing(f"Prometheus did not answer: {error}")
    return packed(points_by_labels, every=every)


def _missing(reason: str) -> tuple[Extract, bytes]:
    return Extract(missing=reason), b""


def board_metrics() -> tuple[str, ...]:
    """The names of the metrics that the boards query."""
    every = {name for board in boards.load().values() for query in queries(board) for name in query.metrics}
    return tuple(sorted({*every, *SHOWN}))


def scraped(prometheus: Prometheus, spec: Spec, span: Span) -> tuple[Mapping[Labels, Points], int]:
    """Return the points of the series of the run, its session and its cluster, by labels, and n, if only every nth point is kept.

    The range ends now: the points that agree with the record may have been scraped last.
    """
    names, cluster = "|".join(board_metrics()), span.labels.get("cluster", "")
    selectors = (
        f'{{__name__=~"{names}",session="{spec.session}",run="{spec.folder}"}}',
        f'{{__name__=~"{names}",cluster="{cluster}",run="",session=~"|{spec.session}"}}',
    )
    points_by_labels: dict[Labels, Points] = {}
    every = 1
    for begin, end in _slices(span.begin, span.now):
        for selector in selectors:
            for series in prometheus.recorded(selector, begin=begin, end=end):
                labels = tuple(sorted(series.labels.items()))
                points_by_labels[labels] = (*points_by_labels.get(labels, ()), *thinned(series.points, every))
        while sum(map(len, points_by_labels.values())) > MOST_POINTS and any(
            len(points) > 1 for points in points_by_labels.values()
        ):
            every *= 2
            points_by_labels = {labels: thinned(points, 2) for labels, points in points_by_labels.items()}
    return points_by_labels, every


def _slices(begin: float, end: float) -> Iterator[tuple[float, float]]:
    while begin < end:
        yield begin, min(begin + SLICE_SECONDS, end)
        begin += SLICE_SECONDS


def thinned(points: Points, every: int) -> Points:
    """One of `every` points, including the last one, which must agree with the record."""
    return points[::-every][::-1]


def packed(points_by_labels: Mapping[Labels, Points], *, every: int) -> tuple[Extract, bytes]:
    """Write the series into a reproducible file. If there are more than MOST_SERIES, the first ones are kept."""
    from prometheus_client.utils import floatToGoString

    chosen = sorted(
        points_by_labels, key=lambda labels: (dict(labels)["__name__"] not in SHOWN, dict(labels)["__name__"], labels)
    )
    chosen = chosen[:MOST_SERIES]
    text = io.StringIO()
    family = ""
    for labels in chosen:
        series = dict(labels)
        if series["__name__"] != family:
            family = series["__name__"]
            text.write(f"# TYPE {family} unknown\n")
        name = named(series)
        text.writelines(
            f"{name} {floatToGoString(value)} {moment:.3f}\n"  # type: ignore[no-untyped-call]
            for moment, value in points_by_labels[labels]
        )
    text.write("# EOF\n")
    content = text.getvalue().encode()
    if len(content) > MOST_BYTES:
        return _missing(
            f"its {len(chosen):,} series are {len(content) / 2**20:,.0f} MiB of text, more than {MOST_BYTES / 2**20:,.0f} MiB"
        )
    file = gzip.compress(content, compresslevel=6, mtime=0)
    extract = Extract(
        series=len(chosen),
        points=sum(len(points_by_labels[labels]) for labels in chosen),
        every=every,
        left_out=len(points_by_labels) - len(chosen),
        sha256=hashlib.sha256(file).hexdigest(),
    )
    return extract, file


def check_all(folder: Path, runs: Sequence[Run]) -> None:
    """Check the extract of every run of the session in `folder`. Raises RecordDamaged."""
    for run in runs:
        check(store.run_folder(folder, run.spec) / store.SERIES, run)


def check(path: Path, run: Run) -> None:
    """Raise RecordDamaged if the extract at `path` is not that of `run`, or has other samples than its record."""
    extract, name = run.extract, f"runs/{run.spec.folder}/{path.name}"
    if extract is None or extract.missing:
        return
    try:
        file = read_plain(path)
        lines = _unpacked(file).decode().splitlines()
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise RecordDamaged(f"{name} is listed in run.json and cannot be read: {error}.") from error
    last: dict[str, str] = {}
    points = 0
    for line in lines:
        if not line.startswith("#"):
            series, _, value = line.rpartition(" ")[0].rpartition(" ")
            last[series] = value
            points += 1
    found_in_file = (hashlib.sha256(file).hexdigest(), len(last), points)
    if found_in_file != (extract.sha256, extract.series, extract.points) or lines[-1:] != ["# EOF"]:
        raise RecordDamaged(
            f"{name} differs from run.json: {len(last):,} of {extract.series:,} series, {points:,} of {extract.points:,} points."
        )
    if run.reconciled and not extract.left_out:
        page = "".join(f"{series} {value}\n" for series, value in last.items() if series.startswith(SHOWN))
        try:
            differences = reconcile.differences(run.spec, run.samples, page)
        except (ValueError, KeyError) as error:
            raise RecordDamaged(f"{name} has a series that cannot be read: {error}.") from error
        for difference in differences:
            raise RecordDamaged(f"{name} does not show the samples of its run: {difference}.")


def _unpacked(file: bytes) -> bytes:
    """The text of an extract, which may be untrusted: at most as much as raymeter writes."""
    with gzip.GzipFile(fileobj=io.BytesIO(file)) as archive:
        content = archive.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES / 2**20:.0f} MiB")
    return content


def describe(runs: Sequence[Run]) -> str:
    """Describe the extracts of a session, such as `series of 12 of 12 runs: 3,456 series, 98,765 points`."""
    extracts = [run.extract for run in runs if run.extract and not run.extract.missing]
    missing = {run.extract.missing if run.extract else "its raymeter kept none" for run in runs} - {""}
    reasons = f"; {'; '.join(sorted(missing))}" if missing else ""
    if not extracts:
        return f"no series of Prometheus{reasons}"
    counts = f"{sum(extract.series for extract in extracts):,} series, {sum(extract.points for extract in extracts):,} points"
    return f"series of Prometheus of {len(extracts)} of {len(runs)} runs: {counts}{reasons}"
