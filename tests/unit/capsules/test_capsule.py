"""A capsule is whole or says what is not, and one from a stranger can do no harm."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_sessions import a_session_on_disk
from made_up_timelines import with_timelines

from bench import timeline
from bench.capsules import checking, packing, reading
from bench.capsules.packing import MANIFEST, REPORT
from bench.errors import BadInput, RecordDamaged
from bench.model import Run, RunResult, from_json, to_json
from bench.prometheus import extract, reconcile
from bench.record import store


def a_folder(place: Path) -> Path:
    """A session with all that its runs may leave."""
    folder = a_session_on_disk(place, blocks=6)
    (folder / "runs" / "b01-single-inference-c01" / "files" / "profile.txt").write_text("what was left")
    for run in store.load_runs(folder, store.load_session(folder)):
        path = store.run_folder(folder, run.spec) / store.FILES / store.TIMELINE
        path.write_bytes(timeline.encode(with_timelines(run).timelines))
    return folder


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("capsule")
    return packing.pack(a_folder(place), place / "out").path


Content = dict[str, bytes]


def rewritten(packed: Path, into: Path, change: Callable[[Content], None], *, name: str = "changed.zip") -> Path:
    """A capsule with other files in it, and a manifest that knows nothing of it."""
    with zipfile.ZipFile(packed) as archive:
        content = {each: archive.read(each) for each in archive.namelist()}
    change(content)
    path = into / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, text in content.items():
            archive.writestr(each, text)
    return path


def with_manifest(content: Content) -> None:
    """Make the manifest fit: what a liar would do."""
    manifest = json.loads(content[MANIFEST])
    files = {name: packing._entry(text) for name, text in content.items() if name != MANIFEST}
    manifest["files"] = {name: {"sha256": entry.sha256, "bytes": entry.bytes} for name, entry in files.items()}
    content[MANIFEST] = json.dumps(manifest).encode()


def test_a_capsule_is_verified_with_every_number_of_its_report(packed: Path) -> None:
    found = checking.verify(packed)
    assert (found.runs, found.same_code) == (12, True)
    assert found.numbers > 300
    assert found.samples > 100
    assert {
        "session.json",
        "report.json",
        "report.html",
        "uv.lock",
        "versions.env",
    } <= found.manifest.files.keys()
    assert "runs/b01-single-inference-c01/files/profile.txt" in found.manifest.files
    assert found.manifest.code_of_nodes == ("0123456789abcdef",)
    assert found.manifest.data == {}


def test_the_same_session_is_the_same_file_byte_by_byte(packed: Path, tmp_path: Path) -> None:
    again = packing.pack(a_folder(tmp_path), tmp_path / "again").path
    assert again.name == packed.name
    assert again.read_bytes() == packed.read_bytes()
    assert packing.address(packed) in packed.name


def test_it_needs_no_ray(packed: Path) -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        f"from bench import cli; sys.argv = ['bench', 'verify', {str(packed)!r}]; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "numbers of the report were recomputed from" in done.stdout


def test_a_flipped_byte_is_found_wherever_it_is_and_its_file_is_named(packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        infos = archive.infolist()
    for info in infos[:: max(1, len(infos) // 6)]:
        begin = info.header_offset + 30 + len(info.filename)
        flipped = bytearray(content)
        flipped[begin + info.compress_size // 2] ^= 0x10
        path = tmp_path / packed.name
        path.write_bytes(flipped)
        with pytest.raises(RecordDamaged) as refused:
            checking.verify(path)
        assert info.filename in str(refused.value)


def test_a_flip_in_any_part_of_the_archive_is_found(packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    path = tmp_path / packed.name
    for place in [*range(0, 60, 4), *range(len(content) - 120, len(content), 8)]:
        flipped = bytearray(content)
        flipped[place] ^= 0x01
        path.write_bytes(flipped)
        with pytest.raises(RecordDamaged):
            reading.unpack(path, tmp_path / "into")
        shutil.rmtree(tmp_path / "into", ignore_errors=True)


def test_a_report_that_does_not_follow_from_the_samples_is_named_with_the_number(packed: Path, tmp_path: Path) -> None:
    def better(content: Content) -> None:
        report = json.loads(content[REPORT])
        report["cells"][0]["rows"][0]["sides"]["multi"]["estimate"]["value"] *= 1.5
        content[REPORT] = json.dumps(report).encode()
        with_manifest(content)

    with pytest.raises(RecordDamaged, match=r"cells\[0\]\.rows\[0\]\.sides\.multi\.estimate\.value is"):
        checking.verify(rewritten(packed, tmp_path, better))


def test_a_report_of_older_code_may_lack_what_is_said_today_and_one_of_this_code_may_not(
    packed: Path, tmp_path: Path
) -> None:
    def before(content: Content, code_hash: str | None = None) -> None:
        report = json.loads(content[REPORT])
        del report["cells"][0]["rows"][0]["sides"]
        report["answer"] = ["It was said in other words."]
        content[REPORT] = json.dumps(report).encode()
        manifest = json.loads(content[MANIFEST])
        content[MANIFEST] = json.dumps(manifest | ({"code_hash": code_hash} if code_hash else {})).encode()
        with_manifest(content)

    with pytest.raises(RecordDamaged, match=r"does not follow from the samples"):
        checking.verify(rewritten(packed, tmp_path, before))
    older = rewritten(packed, tmp_path, lambda content: before(content, "0" * 16), name="older.zip")
    assert not checking.verify(older).same_code


def test_samples_that_were_changed_with_their_checksums_are_found(packed: Path, tmp_path: Path) -> None:
    def faster(content: Content) -> None:
        name = "runs/b01-multi-inference-c01/samples.jsonl"
        content[name] = content[name].replace(b'"value":2', b'"value":9')
        with_manifest(content)

    with pytest.raises(RecordDamaged, match=r"b01-multi-inference-c01/samples.jsonl"):
        checking.verify(rewritten(packed, tmp_path, faster))


def test_a_page_that_says_something_else_is_found(packed: Path, tmp_path: Path) -> None:
    def prettier(content: Content) -> None:
        content["report.html"] = content["report.html"].replace(b"slower", b"faster")
        with_manifest(content)

    with pytest.raises(RecordDamaged, match=r"report.html is not the page"):
        checking.verify(rewritten(packed, tmp_path, prettier))


def test_timelines_are_in_the_capsule_and_its_page_is_drawn_from_them(packed: Path, tmp_path: Path) -> None:
    def calmer(content: Content) -> None:
        for name in [each for each in content if each.endswith(store.TIMELINE)]:
            found = timeline.decode(content[name])
            for each in found:
                each.mean["cpus"][:] = type(each.ends)("d", [0.0] * len(each))
            content[name] = timeline.encode(found)
        with_manifest(content)

    def none(content: Content) -> None:
        for name in [each for each in content if each.endswith(store.TIMELINE)]:
            content[name] = b"no timeline"
        with_manifest(content)

    with zipfile.ZipFile(packed) as archive:
        assert "over time: multi" in archive.read("report.html").decode()
        assert sum(name.endswith(store.TIMELINE) for name in archive.namelist()) == 12
    with pytest.raises(RecordDamaged, match=r"report.html is not the page"):
        checking.verify(rewritten(packed, tmp_path, calmer))
    with pytest.raises(RecordDamaged, match=r"timeline.json.gz is no timeline"):
        checking.verify(rewritten(packed, tmp_path, none, name="none.zip"))


def test_what_prometheus_had_is_in_the_capsule_and_agrees_with_the_samples(tmp_path: Path) -> None:
    folder = a_session_on_disk(tmp_path, blocks=1)
    run = store.load_runs(folder, store.load_session(folder))[0]
    place = store.run_folder(folder, run.spec)
    series = shown_of(run)
    said, file = extract.packed(series, every=1)
    (place / store.SERIES).write_bytes(file)
    result = from_json((place / "run.json").read_bytes(), RunResult)
    (place / "run.json").write_bytes(to_json(replace(result, extract=said, reconciled=True)))
    packed = packing.pack(folder, tmp_path / "out")
    assert packed.extract.startswith(f"series of Prometheus of 1 of 2 runs: {len(series)} series, ")
    assert checking.verify(packed.path).extract == packed.extract

    def liar(content: Content) -> None:
        name = next(name for name in content if name.endswith(store.SERIES))
        first = min(series, key=lambda labels: dict(labels)["__name__"] == "bench_run_samples")
        lie, content[name] = extract.packed({**series, first: [(1.0, 12345.0)]}, every=1)
        result = json.loads(content[(ended := name.replace(store.SERIES, "run.json"))])
        content[ended] = to_json({**result, "extract": lie})
        with_manifest(content)

    with pytest.raises(RecordDamaged, match=r"prometheus.om.gz does not show the samples of its run: .*12345\.0"):
        checking.verify(rewritten(packed.path, tmp_path, liar))


def shown_of(run: Run) -> dict[extract.Labels, extract.Points]:
    """What Prometheus has of a run's samples once it has scraped the last one."""
    of_run = {"session": run.spec.session, "run": run.spec.folder}
    last = {reconcile.key_of(sample): sample.value for sample in run.samples if not sample.warmup}
    found = [
        (
            {
                "__name__": "bench_sample_value",
                **of_run,
                **dict(zip(("metric", "arm", "node", "point"), key, strict=True)),
            },
            value,
        )
        for key, value in last.items()
        if value is not None
    ]
    found.append(({"__name__": "bench_run_samples", **of_run}, len(run.samples)))
    return {tuple(sorted((k, v) for k, v in labels.items() if v)): [(1.0, float(value))] for labels, value in found}


@pytest.mark.parametrize(
    "name",
    [
        "../outside.txt",
        "runs/../../outside.txt",
        "/etc/outside.txt",
        "runs/..\\..\\outside.txt",
        "C:/outside.txt",
        "runs//outside.txt",
        "runs/./outside.txt",
        "runs/a\nb",
        "outside.txt",
        "runs/-rf",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused_and_nothing_is_written(packed: Path, tmp_path: Path, name: str) -> None:
    def more(content: Content) -> None:
        content[name] = b"x"
        with_manifest(content)

    path = rewritten(packed, tmp_path, more)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RecordDamaged, match="no name of a session's file"):
        reading.unpack(path, tmp_path / "into")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_is_refused(packed: Path, tmp_path: Path) -> None:
    path = rewritten(packed, tmp_path, lambda _: None)
    link = zipfile.ZipInfo("runs/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(RecordDamaged, match="runs/link is not a regular file"):
        reading.unpack(path, tmp_path / "into")


def test_two_files_of_one_name_are_refused(packed: Path, tmp_path: Path) -> None:
    path = rewritten(packed, tmp_path, lambda _: None)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("session.json", "{}")
    with pytest.raises(RecordDamaged, match="two files"):
        reading.unpack(path, tmp_path / "into")


def test_a_bomb_is_refused_by_what_it_says_and_by_what_it_is(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bomb(content: Content) -> None:
        with_manifest(content)
        content["runs/bomb"] = bytes(50_000_000)
        manifest = json.loads(content[MANIFEST])
        manifest["files"]["runs/bomb"] = {"sha256": "0" * 64, "bytes": 1000}
        content[MANIFEST] = json.dumps(manifest).encode()

    path = rewritten(packed, tmp_path, bomb)
    with pytest.raises(RecordDamaged, match="runs/bomb differs"):
        reading.unpack(path, tmp_path / "into")
    assert (tmp_path / "into" / "runs" / "bomb").stat().st_size <= 1000
    monkeypatch.setattr(reading, "MOST_BYTES", 10_000_000)
    with pytest.raises(RecordDamaged, match="GiB are the most"):
        reading.unpack(path, tmp_path / "other")
    monkeypatch.setattr(reading, "MOST_FILES", 5)
    with pytest.raises(RecordDamaged, match="5 are the most"):
        reading.unpack(path, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_plan_whose_runs_lie_elsewhere_is_refused(packed: Path, tmp_path: Path) -> None:
    def elsewhere(content: Content) -> None:
        session = json.loads(content["session.json"])
        session["specs"][0]["id"] = "../../../../etc"
        content["session.json"] = json.dumps(session).encode()
        with_manifest(content)

    with pytest.raises(RecordDamaged, match="no name of a folder"):
        checking.verify(rewritten(packed, tmp_path, elsewhere))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"x" * 1000])
def test_what_is_no_capsule_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.zip"
    path.write_bytes(content)
    with pytest.raises(RecordDamaged, match="no whole capsule"):
        checking.verify(path)
    with pytest.raises(RecordDamaged, match="no whole capsule"):
        checking.verify(tmp_path / "none.zip")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_no_capsule_and_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "some.zip"
    {"pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/null"), "folder": path.mkdir}[kind]()
    with pytest.raises(RecordDamaged, match="no whole capsule: it is not a regular file"):
        checking.verify(path)


def test_a_file_that_is_missing_or_more_than_the_manifest_has_is_named(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordDamaged, match=r"uv\.lock is missing"):
        checking.verify(rewritten(packed, tmp_path, lambda content: content.__delitem__("uv.lock")))
    with pytest.raises(RecordDamaged, match="runs/more is not in the manifest"):
        checking.verify(rewritten(packed, tmp_path, lambda content: content.update({"runs/more": b"x"})))


def test_a_session_without_a_run_has_nothing_to_pack(tmp_path: Path) -> None:
    folder = a_session_on_disk(tmp_path, blocks=1)
    shutil.rmtree(folder / "runs")
    with pytest.raises(BadInput, match="has no run"):
        packing.pack(folder, tmp_path)
