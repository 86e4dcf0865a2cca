"""What Prometheus had of a run is kept small and whole, and held against the record."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import a_sample, a_spec
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from bench.errors import RecordDamaged
from bench.model import Extract, Run
from bench.prometheus import extract
from bench.prometheus.client import Prometheus, Series
from bench.prometheus.run_view import Span

SPEC = a_spec()
OF_RUN = {"session": SPEC.session, "run": SPEC.folder, "cluster": "c"}
SAMPLES = (a_sample(1.0, turn=1), a_sample(2.5, turn=2))
SHOWN = {**OF_RUN, "__name__": "bench_sample_value", "metric": SAMPLES[0].metric, "arm": SAMPLES[0].arm}


class FakePrometheus(Prometheus):
    """Has one point a second of every series, whatever is asked for; its value is its second."""

    def __init__(self, *series: Mapping[str, str]) -> None:
        super().__init__("http://nowhere")
        self.__dict__.update(series=series, asked=[])

    def recorded(self, selector: str, *, begin: float, end: float) -> tuple[Series, ...]:
        self.__dict__["asked"].append((begin, end))
        moments = [(float(second), float(second)) for second in range(int(begin) + 1, int(end) + 1)]
        found = [each for each in self.__dict__["series"] if ("run" in each) == ('run=""' not in selector)]
        return tuple(Series(labels, tuple(moments)) for labels in found if moments)


def scraped(*series: Mapping[str, str], seconds: float) -> tuple[Any, int]:
    span = Span(begin=0.0, end=seconds - 5, now=seconds, labels=OF_RUN)
    return extract.scraped(FakePrometheus(*series), SPEC, span)


def a_run(tmp_path: Path, found: Mapping[Any, Any], **changes: Any) -> tuple[Path, Run]:
    said, file = extract.packed(found, every=1)
    path = tmp_path / "prometheus.om.gz"
    path.write_bytes(file)
    run = Run(spec=SPEC, status="ok", samples=SAMPLES, reconciled=True, extract=said)
    return path, replace(run, **changes)


def as_shown(**changes: Any) -> dict[Any, Any]:
    count = {**OF_RUN, "__name__": "bench_run_samples"}
    points = {"value": [(10.0, 1.0), (12.0, 2.5)], "count": [(10.0, 1.0), (12.0, 2.0)], **changes}
    return {tuple(sorted(SHOWN.items())): points["value"], tuple(sorted(count.items())): points["count"]}


def test_a_long_run_is_asked_for_in_slices_and_no_point_is_lost_or_twice_there() -> None:
    found, every = scraped(SHOWN, {"__name__": "up", "cluster": "c"}, seconds=1500)
    assert every == 1
    assert [[moment for moment, _ in points] for points in found.values()] == [list(range(1, 1501))] * 2


def test_too_many_points_are_thinned_evenly_and_the_last_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MOST_POINTS", 300)
    found, every = scraped(SHOWN, seconds=1800)
    (points,) = found.values()
    moments = [moment for moment, _ in points]
    assert every == 8
    assert len(points) <= 300
    assert moments[-1] == 1800
    assert {later - earlier for earlier, later in itertools.pairwise(moments)} == {8}


def test_of_too_many_series_those_of_the_samples_are_kept_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extract, "MOST_SERIES", 2)
    more = {(("__name__", name), ("cluster", "c")): [(1.0, 1.0)] for name in ("a", "ray_tasks")}
    said, file = extract.packed({**more, **as_shown()}, every=1)
    assert (said.series, said.points, said.left_out) == (2, 4, 2)
    assert b"ray_tasks" not in gzip.decompress(file)


def test_what_would_be_too_large_is_not_kept_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MOST_BYTES", 100)
    said, file = extract.packed(as_shown(), every=1)
    assert file == b""
    assert "of text, more than" in said.missing


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=8)
SETS = st.dictionaries(
    st.tuples(st.sampled_from(["bench_sample_value", "ray_tasks", "up"]), TEXTS),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4),
    max_size=6,
)


@given(SETS)
def test_a_file_is_openmetrics_and_has_every_point(made: dict[tuple[str, str], list[float]]) -> None:
    found = {
        (("__name__", name), ("node", node)): [
            (1700000000.125 + 2 * place, value) for place, value in enumerate(values)
        ]
        for (name, node), values in made.items()
    }
    said, file = extract.packed(found, every=1)
    read: dict[Any, list[tuple[float, float]]] = {}
    for family in text_string_to_metric_families(gzip.decompress(file).decode()):
        for sample in family.samples:
            key = (("__name__", sample.name), ("node", sample.labels["node"]))
            read.setdefault(key, []).append((float(sample.timestamp), sample.value))
    assert read == found
    assert (said.series, said.points) == (len(found), sum(map(len, found.values())))
    assert extract.packed(dict(reversed(found.items())), every=1)[1] == file, "in whatever order they came"


def test_an_extract_that_shows_what_the_record_has_is_good(tmp_path: Path) -> None:
    extract.check(*a_run(tmp_path, as_shown()))


def test_a_run_without_an_extract_has_nothing_to_check(tmp_path: Path) -> None:
    path, run = a_run(tmp_path, as_shown())
    path.unlink()
    extract.check(path, replace(run, extract=None))
    extract.check(path, replace(run, extract=Extract(missing="there was none")))
    with pytest.raises(RecordDamaged, match=r"prometheus.om.gz is listed in run.json and cannot be read"):
        extract.check(path, run)


def test_an_extract_of_other_samples_is_named_with_what_differs(tmp_path: Path) -> None:
    path, run = a_run(tmp_path, as_shown(value=[(12.0, 2.6)]))
    with pytest.raises(RecordDamaged, match=r"the record has 2\.5, Prometheus 2\.6"):
        extract.check(path, run)
    extract.check(path, replace(run, reconciled=False))  # the run says so itself
    path, run = a_run(tmp_path, as_shown(count=[(12.0, 3.0)]))
    with pytest.raises(RecordDamaged, match="the record has 2 samples, Prometheus 3"):
        extract.check(path, run)


def test_an_extract_that_was_changed_or_cut_off_is_found(tmp_path: Path) -> None:
    path, run = a_run(tmp_path, as_shown())
    whole = path.read_bytes()
    path.write_bytes(gzip.compress(gzip.decompress(whole).replace(b" 1.0 ", b" 1.5 "), mtime=0))
    with pytest.raises(RecordDamaged, match=r"differs from run\.json"):
        extract.check(path, run)
    path.write_bytes(whole[:-20])
    with pytest.raises(RecordDamaged, match="cannot be read"):
        extract.check(path, run)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, run = a_run(tmp_path, as_shown())
    monkeypatch.setattr(extract, "MOST_BYTES", 1000)
    path.write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(RecordDamaged, match="unpacks to more"):
        extract.check(path, run)


def test_a_session_says_what_it_has_of_prometheus_and_why_the_rest_is_lacking() -> None:
    kept = Run(spec=SPEC, status="ok", extract=Extract(series=3, points=1200, sha256="0"))
    none = replace(kept, extract=Extract(missing="there is no Prometheus beside this cluster"))
    assert extract.describe([kept, kept]) == "series of Prometheus of 2 of 2 runs: 6 series, 2,400 points"
    assert extract.describe([none]) == "no series of Prometheus; there is no Prometheus beside this cluster"
    assert "of 1 of 2 runs" in extract.describe([kept, replace(none, extract=None)])
    assert "its raymeter kept none" in extract.describe([kept, replace(none, extract=None)])
