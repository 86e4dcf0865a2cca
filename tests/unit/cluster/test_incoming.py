"""A seeded set gets to the head once, whole, and only for those who have the token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import requests
from builders import a_spec, a_topology
from fakes import TOKEN, exporting

from bench.cluster import incoming
from bench.cluster.recorder import Recorder
from bench.errors import AuthFailed, TargetFailed
from bench.prometheus.session_gauges import SENT, Gauge
from bench.record.store import DONE, FILES
from bench.runner.deliver import deliver, send_done_work, send_gauges
from bench.targets import Cluster

CONTENT = bytes(range(256)) * 10_000
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def name_of(content: bytes, name: str = "mnist") -> str:
    return f"{name}.{sha256(content).hexdigest()}.npz"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    (tmp_path / "records").mkdir()
    return tmp_path / "records"


@pytest.fixture
def cluster(records: Path) -> Iterator[Cluster]:
    with exporting(records) as url:
        yield a_cluster(url)


def a_cluster(url: str, token: str = TOKEN) -> Cluster:
    return Cluster(topology=a_topology(), dashboard_url="", exporter_url=url, token=token, nodes=("head",), link="none")


def a_body(content: bytes, length: int) -> incoming.Body:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    return incoming.Body(chunks(), length)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / name_of(CONTENT)
    path.write_bytes(CONTENT)
    return path


def test_a_set_is_sent_once_and_arrives_whole(cluster: Cluster, records: Path, file: Path) -> None:
    assert deliver(file, cluster)
    assert (records / "data" / file.name).read_bytes() == CONTENT
    assert not deliver(file, cluster)
    assert [path.name for path in (records / "data").iterdir()] == [file.name]


def test_another_set_of_the_name_takes_its_place(cluster: Cluster, records: Path, file: Path, tmp_path: Path) -> None:
    deliver(file, cluster)
    other = tmp_path / name_of(b"other")
    other.write_bytes(b"other")
    assert deliver(other, cluster)
    assert [path.name for path in (records / "data").iterdir()] == [other.name]


def test_bytes_that_are_not_those_of_the_name_are_refused_and_not_kept(
    cluster: Cluster, records: Path, file: Path
) -> None:
    file.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(TargetFailed, match="another SHA-256"):
        deliver(file, cluster)
    assert list((records / "data").iterdir()) == []


@pytest.mark.parametrize(("headers", "status"), [({}, 401), ({"Authorization": "Bearer wrong"}, 403)])
def test_without_the_token_nothing_is_taken_or_told(
    cluster: Cluster, records: Path, file: Path, headers: dict[str, str], status: int
) -> None:
    url = f"{cluster.exporter_url}/data/{file.name}"
    assert requests.put(url, data=CONTENT, headers=headers, timeout=5).status_code == status
    assert requests.head(url, headers=headers, timeout=5).status_code == status
    assert not (records / "data").exists()


def test_a_wrong_token_of_ours_is_said_to_be_one(cluster: Cluster, file: Path) -> None:
    with pytest.raises(AuthFailed):
        deliver(file, a_cluster(cluster.exporter_url, token="wrong"))


@pytest.mark.parametrize(
    "name", ["../../escape.npz", "mnist.npz", name_of(CONTENT, "imagenet"), name_of(CONTENT) + ".x"]
)
def test_other_names_are_refused(cluster: Cluster, records: Path, name: str) -> None:
    answer = requests.put(f"{cluster.exporter_url}/data/{name}", data=CONTENT, headers=HEADERS, timeout=5)
    assert answer.status_code == 404
    assert list(records.rglob("*.npz")) == []


@pytest.mark.parametrize("length", [0, 2**40])
def test_a_length_that_no_set_has_is_refused_unread(records: Path, length: int) -> None:
    async def unread() -> AsyncIterator[bytes]:
        pytest.fail("it was read")
        yield b""

    with pytest.raises(incoming.Refused) as caught:
        asyncio.run(incoming.take(records, name_of(CONTENT), incoming.Body(unread(), length)))
    assert caught.value.status == 413


def test_a_set_that_ends_early_is_not_kept(records: Path) -> None:
    with pytest.raises(incoming.Refused, match="another SHA-256"):
        asyncio.run(incoming.take(records, name_of(CONTENT), a_body(CONTENT[:1000], len(CONTENT))))
    assert list((records / "data").iterdir()) == []


def test_a_head_that_does_not_answer_is_a_target_that_failed(file: Path) -> None:
    with pytest.raises(TargetFailed, match="could not be sent"):
        deliver(file, a_cluster("http://127.0.0.1:9"))


# what earlier attempts had done


def test_what_an_earlier_attempt_had_done_is_put_back_where_it_was(
    cluster: Cluster, records: Path, tmp_path: Path
) -> None:
    done = tmp_path / DONE
    done.write_bytes(b"{}\n")
    spec = a_spec()
    send_done_work(done, spec, cluster)
    send_done_work(done, spec, cluster)
    assert (records / spec.session / "runs" / spec.folder / FILES / DONE).read_bytes() == b"{}\n"


def test_the_record_of_a_run_that_is_here_is_never_written_to(cluster: Cluster, records: Path, tmp_path: Path) -> None:
    spec = a_spec()
    recorder = Recorder(records / spec.session / "runs" / spec.folder, spec)
    done = tmp_path / DONE
    done.write_bytes(b"{}\n")
    send_done_work(done, spec, cluster)  # the head has it: no failure
    assert not (recorder.files / DONE).exists()


@pytest.mark.parametrize("path", ["runs/s/r/files/other.txt", "runs/s/../r/files/done.jsonl", "runs/s/r/samples.jsonl"])
def test_nothing_else_of_a_run_can_be_written(cluster: Cluster, records: Path, path: str) -> None:
    request = requests.Request("PUT", f"{cluster.exporter_url}/{path}", data=b"x", headers=HEADERS).prepare()
    request.url = f"{cluster.exporter_url}/{path}"  # as it stands: requests would tidy it up
    assert requests.Session().send(request, timeout=5).status_code in {404, 405}
    assert [path for path in records.rglob("*") if path.is_file()] == []


SESSION = "20260101-000000-made-up"
GAUGES = (
    Gauge(name=SENT, labels=(SESSION,), value=1.5),
    Gauge(name="bench_caveat", labels=(SESSION, "note", "session", 'a "text"\nof two lines'), value=1.5),
)


def test_the_values_of_a_session_are_on_the_metrics_page(cluster: Cluster) -> None:
    send_gauges(GAUGES, SESSION, cluster)
    page = requests.get(f"{cluster.exporter_url}/metrics", timeout=10).text
    assert f'{SENT}{{session="{SESSION}"}} 1.5' in page
    assert r'text="a \"text\"\nof two lines"' in page
    send_gauges(GAUGES[:1], SESSION, cluster)
    assert "of two lines" not in requests.get(f"{cluster.exporter_url}/metrics", timeout=10).text


@pytest.mark.parametrize(
    ("gauges", "why"),
    [
        ((Gauge(name="made_up", labels=(SESSION,), value=1.0),), "there is no family made_up"),
        ((Gauge(name=SENT, labels=("of-another",), value=1.0),), "must have the labels session"),
        ((Gauge(name=SENT, labels=(SESSION, "more"), value=1.0),), "must have the labels session"),
        ((*GAUGES, *GAUGES), "two gauges have the same labels"),
    ],
)
def test_values_that_the_page_could_not_show_are_refused(
    cluster: Cluster, records: Path, gauges: tuple[Gauge, ...], why: str
) -> None:
    with pytest.raises(TargetFailed, match=why):
        send_gauges(gauges, SESSION, cluster)
    assert not list(records.rglob(incoming.SESSION_GAUGES))


def test_values_of_a_session_need_the_token_and_are_json(cluster: Cluster) -> None:
    with pytest.raises(AuthFailed):
        send_gauges(GAUGES, SESSION, a_cluster(cluster.exporter_url, "wrong"))
    url = f"{cluster.exporter_url}/sessions/{SESSION}/{incoming.SESSION_GAUGES}"
    assert requests.put(url, data=b"{", headers=HEADERS, timeout=10).status_code == 400
