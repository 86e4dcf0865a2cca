"""The page for Prometheus, and the transfer of results."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from builders import a_sample, a_spec
from fakes import TOKEN, exporting

from bench.cluster.invocation import QUIET
from bench.cluster.recorder import Recorder
from bench.errors import RecordDamaged
from bench.model import Interval, NodeUsage
from bench.prometheus import reconcile
from bench.record.store import FILES, SAMPLES
from bench.runner.collect import Collector

SPEC = a_spec()
SAMPLES_OF_RUN = [
    a_sample(900.0, turn=1, warmup=True),
    a_sample(1000.0),
    a_sample(1100.0, turn=3),
    a_sample(None, turn=3),
]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "records"


@pytest.fixture
def url(records: Path) -> Iterator[str]:
    records.mkdir()
    with exporting(records) as url:
        yield url


@pytest.fixture
def recorder(records: Path, url: str) -> Recorder:
    recorder = Recorder(records / SPEC.session / "runs" / SPEC.folder, SPEC)
    for sample in SAMPLES_OF_RUN:
        recorder.sample(sample)
    return recorder


def test_metrics_show_the_last_value_that_is_no_warm_up(recorder: Recorder, url: str) -> None:
    page = requests.get(f"{url}/metrics", timeout=5).text
    (line,) = [line for line in page.splitlines() if line.startswith("bench_sample_value{")]
    assert line.endswith(" 1100.0")
    for label in ('session="s1"', 'topology="single"', 'arm="ray"', 'unit="inputs/s"'):
        assert label in line


def test_a_window_that_shows_the_record_is_reconciled_and_another_is_not(recorder: Recorder, url: str) -> None:
    page = requests.get(f"{url}/metrics", timeout=5).text
    assert reconcile.differences(SPEC, SAMPLES_OF_RUN, page) == []
    assert reconcile.differences(SPEC, [*SAMPLES_OF_RUN, a_sample(5.0, turn=4)], page)
    assert reconcile.differences(SPEC, SAMPLES_OF_RUN, page.replace("1100.0", "1101.0"))
    assert reconcile.differences(replace(SPEC, session="s2"), SAMPLES_OF_RUN, page)


def test_node_usage_is_shown_and_what_was_not_counted_is_left_out(recorder: Recorder, url: str) -> None:
    recorder.usage(NodeUsage(node="head", arm="ray", turn=2, warmup=False, interval=Interval(1, 2), sent_bytes=77))
    page = requests.get(f"{url}/metrics", timeout=5).text
    lines = [line for line in page.splitlines() if line.startswith("bench_node_usage{")]
    resources = {line.partition('resource="')[2].partition('"')[0]: float(line.split()[-1]) for line in lines}
    assert resources == {"seconds": 1.0, "cpus": SPEC.topology.cpus_per_node, "sent_bytes": 77.0}


def test_lines_are_fetched_once_by_offset(recorder: Recorder, url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    collector = Collector(exporter_url=url, token=TOKEN, spec=SPEC, path=home)
    assert collector.fetch_new().count(b"\n") == len(SAMPLES_OF_RUN)
    assert collector.fetch_new() == b""
    recorder.sample(a_sample(1200.0, turn=4))
    assert collector.fetch_new().count(b"\n") == 1
    assert collector.fetch_result() is None
    recorder.close("ok", ())
    result = collector.fetch_result()
    assert result is not None
    assert result.lines == len(SAMPLES_OF_RUN) + 1


def test_half_a_line_stays_where_it_is(recorder: Recorder, url: str, tmp_path: Path, records: Path) -> None:
    with (records / SPEC.session / "runs" / SPEC.folder / SAMPLES).open("ab") as file:
        file.write(b'{"seq":')
    collector = Collector(exporter_url=url, token=TOKEN, spec=SPEC, path=tmp_path)
    assert collector.fetch_new().endswith(b"}\n")
    assert requests.get(f"{url}/metrics", timeout=5).status_code == 200


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("wrong", 403), (TOKEN, 200)])
def test_files_need_the_token(recorder: Recorder, url: str, token: str | None, status: int) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    path = f"/runs/{SPEC.session}/{SPEC.folder}/{SAMPLES}"
    assert requests.get(url + path, headers=headers, timeout=5).status_code == status


def test_a_token_that_is_no_text_is_wrong(recorder: Recorder, url: str) -> None:
    path = f"/runs/{SPEC.session}/{SPEC.folder}/{SAMPLES}"
    answer = requests.get(url + path, headers={"Authorization": b"Bearer \xff\xfe"}, timeout=5)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/runs/../secret/samples.jsonl", 404),
        ("/runs/s1/%2e%2e/samples.jsonl", 404),
        ("/runs/s1/../../samples.jsonl", 404),
        ("/runs/s1/b01-single-inference-c01/token", 404),
        ("/anything", 404),
    ],
)
def test_nothing_but_the_files_of_runs_is_given(recorder: Recorder, url: str, path: str, status: int) -> None:
    request = requests.Request("GET", url, headers={"Authorization": f"Bearer {TOKEN}"}).prepare()
    request.url = url + path  # as it is: requests would tidy the dots away
    assert requests.Session().send(request, timeout=5).status_code == status


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("bytes=0-", 206),
        ("bytes=10-19", 206),
        ("bytes=99999999-", 416),
        ("bytes=9999999999999999999-", 416),
        ("bytes=x-", 416),
        ("lines=1-2", 416),
    ],
)
def test_a_range_of_a_file_is_given_and_one_beyond_its_end_is_refused(
    recorder: Recorder, url: str, records: Path, asked: str, status: int
) -> None:
    path = f"runs/{SPEC.session}/{SPEC.folder}/{SAMPLES}"
    headers = {"Authorization": f"Bearer {TOKEN}", "Range": asked}
    answer = requests.get(f"{url}/{path}", headers=headers, timeout=5)
    assert answer.status_code == status
    if status == 206:
        first, _, last = asked.removeprefix("bytes=").partition("-")
        whole = (records / SPEC.session / "runs" / SPEC.folder / SAMPLES).read_bytes()
        assert answer.content == whole[int(first) : int(last) + 1 if last else None]


def test_a_link_out_of_the_records_is_not_followed(recorder: Recorder, url: str, records: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (records / SPEC.session / "runs" / "b02").mkdir()
    (records / SPEC.session / "runs" / "b02" / SAMPLES).symlink_to(secret)
    answer = requests.get(
        f"{url}/runs/{SPEC.session}/b02/{SAMPLES}", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5
    )
    assert answer.status_code == 404


def test_it_is_silent_while_a_run_asks_for_it(recorder: Recorder, url: str, records: Path) -> None:
    (records / QUIET).touch()
    assert requests.get(f"{url}/metrics", timeout=5).status_code == 503
    assert requests.get(f"{url}/healthz", timeout=5).status_code == 200
    headers = {"Authorization": f"Bearer {TOKEN}"}
    insisted = f"{url}/runs/{SPEC.session}/{SPEC.folder}/{SAMPLES}?insist=1"
    assert requests.get(insisted, headers=headers, timeout=5).status_code == 200
    (records / QUIET).unlink()
    assert requests.get(f"{url}/metrics", timeout=5).status_code == 200


def test_a_path_that_is_none_is_refused(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(b"GET http://[x HTTP/1.0\r\n\r\n")
        assert b" 400 " in connection.recv(1000)


def test_files_that_grow_come_home_as_they_grow(recorder: Recorder, url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    collector = Collector(exporter_url=url, token=TOKEN, spec=SPEC, path=home)
    collector.fetch_files()
    assert not (home / FILES).exists()
    ledger = recorder.files / "ledger.jsonl"
    for content in (b"one\n", b"two\n", b"three\n" * 3_000_000):  # the last in several answers
        with ledger.open("ab") as file:
            file.write(content)
        collector.fetch_files()
        assert (home / FILES / "ledger.jsonl").read_bytes() == ledger.read_bytes()


def test_only_plain_files_are_listed(recorder: Recorder, url: str, tmp_path: Path) -> None:
    (recorder.files / "profile.html").write_text("<p>")
    (recorder.files / ".hidden").write_text("x")
    (recorder.files / "folder").mkdir()
    (recorder.files / "link").symlink_to("/etc/passwd")
    answer = requests.get(
        f"{url}/runs/s1/{SPEC.folder}/files/", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5
    )
    assert answer.json() == {"profile.html": 3}
    assert requests.get(f"{url}/runs/s1/{SPEC.folder}/files/", timeout=5).status_code == 401


@pytest.mark.parametrize(
    ("listing", "why"),
    [
        (b'{"../run.json": 3}', "outside"),
        (b'{"a/b": 3}', "outside"),
        (b"[1]", "not valid"),
        (b'{"large": 99999999999}', "at most"),
        (b"{" + b",".join(b'"f%d": 1' % number for number in range(65)) + b"}", "at most"),
    ],
)
def test_a_list_of_files_is_not_believed(
    listing: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Collector, "_get", lambda *_, **__: listing)
    collector = Collector(exporter_url="", token="", spec=SPEC, path=tmp_path)
    with pytest.raises(RecordDamaged, match=why):
        collector.fetch_files()
    assert list(tmp_path.iterdir()) == []


def test_the_last_value_of_each_point_is_shown_and_reconciled(recorder: Recorder, url: str) -> None:
    swept = [a_sample(value, turn=3, point=point) for point, value in (("64 KiB", 5.0), ("1 MiB", 6.0))]
    for sample in swept:
        recorder.sample(sample)
    page = requests.get(f"{url}/metrics", timeout=5).text
    assert 'point="64 KiB"' in page
    assert reconcile.differences(SPEC, [*SAMPLES_OF_RUN, *swept], page) == []
    without = "\n".join(line for line in page.splitlines() if 'point="64 KiB"' not in line)
    assert reconcile.differences(SPEC, [*SAMPLES_OF_RUN, *swept], without)


def test_work_in_hand_is_shown(recorder: Recorder, url: str) -> None:
    recorder.progress(25.0, 100.0)
    page = requests.get(f"{url}/metrics", timeout=5).text
    assert [line.split()[-1] for line in page.splitlines() if line.startswith("bench_run_work_")] == ["25.0", "100.0"]
