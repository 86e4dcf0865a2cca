"""One damaged run hides no other: commands report the rest, name it, and run it again; what is no file is never waited for."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Typed, typist
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.capsules import checking, packing
from bench.errors import RecordDamaged
from bench.model import SCHEMA_VERSION, RunResult, from_json, to_json
from bench.record import store
from bench.record.files import read_plain
from bench.runner.session import remaining

SESSION, OTHER = "20260105-100000-inference-lab-0001", "20260106-100000-inference-lab-0002"
RUN = "b02-multi-inference-c01"
NEWER = SCHEMA_VERSION + 1


def lines_changed(change: Callable[[bytes], bytes], path: Path) -> None:
    path.write_bytes(change(path.read_bytes()))


def closed_anew(path: Path) -> None:
    """Make run.json fit its samples, as where what cannot be read was written so."""
    lines, sha256 = store.measure(path)
    ending = path.with_name("run.json")
    ending.write_bytes(to_json(replace(from_json(ending.read_bytes(), RunResult), lines=lines, sha256=sha256)))


def a_null_value(path: Path) -> None:
    """What an older raymeter wrote of a value that was NaN."""
    lines_changed(lambda text: re.sub(rb'"value":[0-9.]+', b'"value":null', text, count=1), path)
    closed_anew(path)


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


DAMAGES = {
    "a line": (
        lambda path: lines_changed(lambda text: text.replace(b'"facts":', b'"facts:', 1), path),
        "line 1: JSON is malformed",
    ),
    "a byte": (lambda path: lines_changed(lambda text: text.replace(b'"turn":2', b'"turn":3', 1), path), "was changed"),
    "half": (lambda path: lines_changed(lambda text: text[: len(text) // 2], path), "ends in half a line"),
    "half of the lines": (
        lambda path: lines_changed(lambda text: text[: text.index(b"\n", len(text) // 2) + 1], path),
        " of ",
    ),
    "CRLF": (lambda path: lines_changed(lambda text: text.replace(b"\n", b"\r\n"), path), "has CRLF line ends"),
    "null": (a_null_value, "Expected `float`, got `null`"),
    "nothing": (lambda path: path.unlink(), "has 0 of "),
    "FIFO": (instead(os.mkfifo), "cannot be read: it is not a regular file"),
    "socket": (instead(a_socket), "cannot be read: it is not a regular file"),
    "device": (instead(lambda path: path.symlink_to("/dev/zero")), "cannot be read: it is not a regular file"),
    "folder": (instead(Path.mkdir), "cannot be read: it is not a regular file"),
    "ending": (lambda path: path.with_name("run.json").write_text("[]"), "run.json is not valid"),
    "spec": (lambda path: path.with_name("spec.json").write_text("{"), "spec.json is not valid"),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions, to be copied: writing them takes longer than the tests."""
    out = tmp_path_factory.mktemp("results")
    a_session_on_disk(out, SESSION, blocks=7)
    a_session_on_disk(out, OTHER)
    return out


@pytest.fixture
def folder(results: Path, tmp_path: Path) -> Path:
    shutil.copytree(results, tmp_path / "results")
    return tmp_path / "results" / SESSION


def samples_of(folder: Path) -> Path:
    return folder / "runs" / RUN / store.SAMPLES


@pytest.mark.parametrize(("damage", "why"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_run_is_named_with_its_reason_and_the_others_are_read(
    folder: Path, damage: Callable[[Path], None], why: str
) -> None:
    session = store.load_session(folder)
    damage(samples_of(folder))
    runs = {run.spec.folder: run for run in store.load_runs(folder, session)}
    assert {run.status for name, run in runs.items() if name != RUN} == {"ok"}
    assert (len(runs), runs[RUN].status) == (14, "damaged")
    (reason,) = runs[RUN].reasons
    assert reason.startswith(f"runs/{RUN}/")
    assert why in reason
    assert not reason.endswith(".")
    (again,) = remaining(folder, session).todo
    assert again.folder == f"{RUN}.attempt-2"


def test_reports_leave_the_damaged_run_out_and_say_so_with_the_way_out(folder: Path) -> None:
    DAMAGES["CRLF"][0](samples_of(folder))
    session = store.load_session(folder)
    report = analysis.build(session, store.load_runs(folder, session))
    assert report.cells[0].headline is not None
    assert report.cells[0].headline.comparison is not None
    assert report.cells[0].headline.comparison.pairs == 6
    (caveat,) = [caveat for caveat in report.caveats if "damaged" in caveat.text]
    assert caveat.severity == "weakens"
    assert caveat.text.startswith(f"1 run damaged and left out: {RUN} (runs/{RUN}/samples.jsonl has CRLF line ends")
    assert f"`bench resume {SESSION}` runs again what was damaged" in caveat.text


def test_a_damaged_run_that_was_run_again_weakens_nothing_any_more(folder: Path) -> None:
    session = store.load_session(folder)
    whole = {run.spec.folder: run for run in store.load_runs(folder, session)}[RUN]
    damaged = replace(whole, status="damaged", reasons=("it is damaged",), samples=(), usage=(), facts=None)
    again = replace(whole, spec=replace(whole.spec, attempt=2))
    others = [run for run in store.load_runs(folder, session) if run.spec.folder != RUN]
    (caveat,) = [d for d in analysis.build(session, [*others, damaged, again]).caveats if "damaged" in d.text]
    assert (caveat.severity, "All were run again since" in caveat.text) == ("note", True)


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    return typist(capsys, monkeypatch, tmp_path)


@pytest.mark.parametrize("kind", ["FIFO", "half"])
def test_every_command_on_records_says_what_is_damaged_and_answers(folder: Path, bench: Typed, kind: str) -> None:
    ending = folder / "runs" / "b01-single-inference-c01" / "run.json"
    whole = ending.read_text()
    ending.write_text("{")
    assert "13 ok, 1 damaged of 14" in bench("list", "sessions")[1]
    assert bench("list", "sessions", "--status", "damaged")[1].startswith(SESSION)
    ending.write_text(whole)
    assert "14 ok of 14" in bench("list", "sessions")[1]
    DAMAGES[kind][0](samples_of(folder))
    code, out, _ = bench("report", SESSION)
    assert (code, f"1 run damaged and left out: {RUN}" in " ".join(out.split())) == (0, True)
    assert json.loads(bench("report", SESSION, "--json")[1])["data"]["runs"] == {"ok": 13, "damaged": 1}
    code, out, err = bench("show", SESSION)
    assert (code, out.count(" ok "), out.count(" damaged "), "bench resume" in err) == (0, 13, 1, True)
    assert "reason: runs/" in bench("show", SESSION, RUN)[1]
    code, out, _ = bench("compare", SESSION, OTHER)
    assert (code, "1 run damaged and left out" in " ".join(out.split())) == (0, True)
    assert bench("history", "throughput_inputs_per_second")[0] == 0


def test_a_session_with_a_damaged_run_is_exported_and_verified_and_both_name_it(folder: Path, bench: Typed) -> None:
    DAMAGES["a line"][0](samples_of(folder))
    code, out, err = bench("export", SESSION, "-o", "out")
    assert (code, f"Damaged, packed unchanged and left out of the report: {RUN}: runs/{RUN}/" in err) == (0, True)
    code, said, _ = bench("verify", out.strip())
    assert (code, f"Damaged, left out of the report: {RUN}: runs/{RUN}/" in said) == (0, True)
    (damaged,) = checking.verify(Path(out.strip())).damaged
    assert "line 1: JSON is malformed" in damaged


@pytest.mark.parametrize("kind", ["FIFO", "socket"])
def test_what_is_no_file_is_refused_by_an_export_that_could_not_pack_it(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    DAMAGES[kind][0](samples_of(folder))
    with pytest.raises(RecordDamaged, match=f"{RUN}/samples.jsonl is not a regular file.*Remove it"):
        packing.pack(folder, tmp_path / "out")


@pytest.mark.parametrize("name", ["session.json", f"runs/{RUN}/run.json"])
@pytest.mark.parametrize("rest", [{}, {"status": "paused", "specs": "many"}])
def test_a_record_of_a_newer_schema_is_refused_by_its_number_whatever_else_it_has(
    folder: Path, bench: Typed, name: str, rest: dict[str, str]
) -> None:
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | rest | {"version": NEWER}))
    for words in (("report", SESSION), ("show", SESSION), ("export", SESSION), ("resume", SESSION)):
        code, _, err = bench(*words)
        assert (code, f"{path.name} has schema version {NEWER}, and this raymeter reads {SCHEMA_VERSION}." in err) == (
            8,
            True,
        )
        assert "Use the version of raymeter that wrote it." in err
    assert "damaged: " in bench("list", "sessions")[1].splitlines()[0]


@pytest.mark.parametrize("name", ["session.json", "baselines.json", "summary.json", "report.json"])
def test_a_pipe_in_the_place_of_any_file_of_the_results_is_not_waited_for(
    folder: Path, bench: Typed, name: str
) -> None:
    place = folder.parent if name == "baselines.json" else folder
    (place / name).unlink(missing_ok=True)
    os.mkfifo(place / name)
    assert bench("list", "sessions")[0] == 0
    assert bench("history", "throughput_inputs_per_second")[0] == 0
    assert bench("report", SESSION)[0] in ((0,) if name != "session.json" else (2, 8))
    assert bench("compare", OTHER, OTHER)[0] in (0, 8)


def test_a_session_is_found_also_where_the_names_of_baselines_are_damaged(folder: Path, bench: Typed) -> None:
    (folder.parent / "baselines.json").write_text("{")
    assert bench("compare", OTHER, SESSION)[0] == 0
    assert bench("compare", "main", SESSION)[0] == 8


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert read_plain(tmp_path / "file") == b"content"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match="it is not a regular file"):
            read_plain(path)
