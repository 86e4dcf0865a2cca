"""Commands on records: report, list, show, history, rm, as a person types them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Typed, typist
from made_up import made_up
from made_up_sessions import a_session_on_disk, write_run

from bench.record import store
from bench.runner import session_lock

FIRST, SECOND = "20260105-100000-inference-lab-0001", "20260206-100000-inference-lab-0002"


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    """Type a command in a folder that has two sessions; get its exit code, stdout and stderr."""
    a_session_on_disk(tmp_path / "results", FIRST)
    a_session_on_disk(tmp_path / "results", SECOND)

    return typist(capsys, monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("format", "begins"),
    [
        ("text", "raymeter report"),
        ("markdown", "# raymeter"),
        ("json", "{"),
        ("csv", "session,"),
        ("html", "<!doctype"),
        ("mllog", ":::MLLOG {"),
        ("openmetrics", "# HELP"),
        ("perf-metrics", "{"),
        ("junit", "<?xml"),
    ],
)
def test_a_report_comes_in_every_format_on_the_terminal_or_in_a_file(bench: Typed, format: str, begins: str) -> None:
    code, out, _ = bench("report", FIRST, "--format", format)
    assert code == 0
    assert out.startswith(begins)
    assert bench("report", FIRST, "--format", format, "-o", "report.out")[1] == ""
    assert Path("report.out").read_text() in {out, out.removesuffix("\n")}
    assert not out.endswith("\n\n")


def test_a_report_contrasts_what_it_is_told_to_and_refuses_what_is_not_varied(bench: Typed, tmp_path: Path) -> None:
    third = a_session_on_disk(tmp_path / "results", "20260307-100000-inference-lab-0003", cells=6)
    (code, out, _), (_, whole, _) = bench("report", third.name, "--contrast", "actors"), bench("report", third.name)
    assert code == 0
    assert "Change of actors" in out
    assert "Changes, throughput" in whole
    code, out, err = bench("report", third.name, "--contrast", "image_edge")
    assert (code, out) == (2, "")
    assert "--contrast image_edge: image_edge is the same in all cells. Varied are: actors, batch." in err


def test_blocks_that_others_disturbed_are_used_in_a_report_that_is_told_so(bench: Typed, tmp_path: Path) -> None:
    session, runs = made_up(cells=1, blocks=2)
    folder = store.create(tmp_path / "results", session)
    for run in runs:
        rows = tuple(replace(row, steal_seconds=row.watched_seconds) for row in run.usage)
        write_run(folder, session, replace(run, usage=rows))
    assert "Noisy host: 2 of 2 blocks excluded" in bench("report", session.id, "--detail")[1]
    told = bench("report", session.id, "--allow-noise", "--detail")[1]
    assert "2 of 2 blocks would be excluded, and are used all the same" in told
    assert "Noisy host" not in told


@pytest.mark.parametrize("format", ["text", "markdown"])
def test_a_report_is_short_and_has_everything_where_it_is_asked_for(bench: Typed, format: str) -> None:
    short, whole = bench("report", FIRST, "--format", format)[1], bench("report", "--detail", "--format", format)[1]
    everything = ("How it was measured", "How to read this", "Node by node")
    assert [words in short for words in everything] == [False, False, False]
    assert [words in whole for words in everything] == [True, True, True]
    assert f"bench report {FIRST} --detail" in short


def test_detail_is_refused_for_a_format_that_has_everything(bench: Typed) -> None:
    code, _, err = bench("report", FIRST, "--format", "csv", "--detail")
    assert (code, "--detail is for text and markdown: csv always has everything." in err) == (2, True)


def test_a_format_that_there_is_not_is_refused(bench: Typed) -> None:
    code, _, err = bench("report", "--format", "pdf")
    assert (code, "text, markdown, json, csv, html" in err) == (2, True)


def test_sessions_are_found_by_filters_and_come_as_json(bench: Typed) -> None:
    assert bench("list", "sessions")[1].splitlines()[0].split()[0] == FIRST
    assert [
        each["id"] for each in json.loads(bench("list", "sessions", "--since", "2026-02", "--json")[1])["data"]
    ] == [SECOND]
    assert bench("list", "sessions", "--last", "1")[1].startswith(SECOND)
    assert "No sessions in" in bench("list", "sessions", "--experiment", "tune")[1]
    assert bench("list", "sessions", "--status", "fine")[0] == 2


def test_history_puts_the_same_params_together(bench: Typed) -> None:
    code, out, _ = bench("history", "throughput_inputs_per_second")
    assert code == 0
    heads = [line for line in out.splitlines() if line.startswith("inference")]
    assert [line.rsplit(" on ", 1)[1] for line in heads] == [
        "single, in k inputs/s",
        "multi, in k inputs/s",
        "multi/single",
    ]
    assert out.count(FIRST) == out.count(SECOND) == 3
    assert len(json.loads(bench("history", "throughput_inputs_per_second", "--json")[1])["data"]) == 6


def test_rm_asks_and_takes_away_what_was_named_and_nothing_else(bench: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = bench("rm", FIRST)
    assert (code, "Use --yes to confirm" in err) == (2, True)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda question, **_: sys.stdout.write(question))
    code, out, _ = bench("rm", FIRST)
    assert code == 0
    assert "for good?" in out
    assert [folder.name for folder in store.session_folders(Path("results"))] == [SECOND]
    assert bench("rm", SECOND, "--yes")[0] == 0
    assert list(Path("results").iterdir()) == []


def test_a_complete_session_without_an_excluded_block_has_nothing_to_resume(bench: Typed) -> None:
    code, _, err = bench("resume", FIRST, "--excluded")
    assert code == 2
    assert f"{FIRST} is complete, and no block of it is excluded. See it with `bench report {FIRST}`." in err


EMPTY = ("", "  ")


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["rm", "{}", "--yes"],
            ["report", "{}"],
            ["show", "{}"],
            ["resume", "{}"],
            ["export", "{}"],
            ["pilot", "{}"],
            ["compare", "{}", SECOND],
            ["compare", FIRST, "{}"],
        ),
        *(["baseline", "set", "main", "{}"], ["baseline", "set", "{}", FIRST], ["verify", "{}"], ["replay", "{}"]),
    ],
    ids=" ".join,
)
def test_no_command_takes_an_empty_name_for_a_session(bench: Typed, words: list[str]) -> None:
    store_before = sorted(Path("results").rglob("*"))
    Path("session.json").write_text("{}")  # a folder that an empty path would lead to
    for name in EMPTY:
        code, out, err = bench(*(word.format(name) for word in words))
        assert code == 2, err
        assert (out, err.count("\n")) == ("", 1)
    assert {path for path in store_before if "index" not in path.name} <= set(Path("results").rglob("*"))


def test_a_copy_is_taken_away_by_its_name_and_listed_by_it(bench: Typed) -> None:
    copy = f"{FIRST} (copy)"
    shutil.copytree(Path("results") / FIRST, Path("results") / copy)
    assert f"{copy}  of session {FIRST}" in bench("list", "sessions")[1]
    assert bench("rm", FIRST, "--yes")[1] == f"Deleted {FIRST}.\n"
    assert bench("rm", copy, "--yes")[1] == f"Deleted {copy}.\n"
    assert [folder.name for folder in store.session_folders(Path("results"))] == [SECOND]


def test_rm_refuses_what_is_running_and_what_is_a_link(bench: Typed, tmp_path: Path) -> None:
    session, runs = made_up(cells=1, blocks=1)
    write_run(store.create(tmp_path / "results", session), session, runs[0], is_closed=False)
    with session_lock.alone(session, Path("results") / session.id, "bench run"):
        code, _, err = bench("rm", session.id, "--yes")
    assert (code, "is running" in err) == (2, True)
    (tmp_path / "results" / "link").symlink_to(tmp_path / "results" / FIRST)
    code, _, err = bench("rm", "link", "--yes")
    assert (code, "is a symbolic link" in err) == (2, True)
    assert len(store.session_folders(tmp_path / "results")) == 4


def test_a_session_that_runs_is_listed_and_shown_as_running_and_its_copy_is_not(bench: Typed, tmp_path: Path) -> None:
    session, runs = made_up(cells=1, blocks=1)
    folder = store.create(tmp_path / "results", session)
    write_run(folder, session, runs[0])
    write_run(folder, session, runs[1], is_closed=False)
    shutil.copytree(folder, tmp_path / "results" / "copy")
    stopped = runs[1].spec.folder

    def said() -> dict[str, str]:
        return {each["run"]: each["status"] for each in json.loads(bench("show", session.id, "--json")[1])["data"]}

    def ids(status: str) -> list[str]:
        found = json.loads(bench("list", "sessions", "--status", status, "--json")[1])["data"]
        return [each["folder"] for each in found]

    with session_lock.alone(session, folder, "bench run echo"):
        assert said() == {runs[0].spec.folder: "ok", stopped: "running"}
        assert f"running: process {os.getpid()}, since " in bench("show", session.id)[1]
        assert f"{stopped:36} running " in bench("show", session.id)[1]
        assert "  running, 1 ok of 2" in bench("list", "sessions", "--experiment", runs[0].spec.experiment)[1]
        assert (ids("running"), ids("stopped")) == ([session.id], ["copy"])
        assert "running" not in bench("show", "copy")[1]
    assert said() == {runs[0].spec.folder: "ok", stopped: "stopped"}
    assert (ids("running"), ids("stopped")) == ([], ["copy", session.id])


def test_rm_takes_away_what_was_cut_off_at_once_also_while_another_session_runs(bench: Typed, tmp_path: Path) -> None:
    session, runs = made_up(cells=1, blocks=1)
    write_run(store.create(tmp_path / "results", session), session, runs[0], is_closed=False)
    with session_lock.alone(replace(session, id="another"), Path("results/another"), "bench run"):
        assert bench("rm", session.id, "--yes")[0] == 0
        assert bench("rm", FIRST, "--yes")[0] == 0
    assert [folder.name for folder in store.session_folders(tmp_path / "results")] == [SECOND]


def test_a_session_whose_record_is_damaged_can_be_taken_away(bench: Typed, tmp_path: Path) -> None:
    (tmp_path / "results" / FIRST / "session.json").write_text("{")
    assert bench("rm", FIRST, "--yes")[0] == 0


def test_a_session_is_packed_and_verified_and_a_flipped_byte_is_damage(bench: Typed, tmp_path: Path) -> None:
    code, out, _ = bench("export", FIRST, "-o", "capsules")
    assert code == 0
    path = Path(out.strip())
    assert path.parent == Path("capsules")
    code, out, _ = bench("verify", str(path))
    assert code == 0
    assert f"{FIRST}: " in out
    assert "4 runs" in out
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    code, out, err = bench("verify", str(path))
    assert (code, out) == (8, "")
    assert err.count("\n") == 1


def test_a_pilot_says_what_more_blocks_would_show(bench: Typed) -> None:
    code, out, _ = bench("pilot", FIRST)
    assert code == 0
    assert out.splitlines()[0].startswith("inference c01")
    assert [line.split()[0] for line in out.splitlines()[2:7]] == ["6", "12", "20", "40", "60"]
    assert "of the variance of a pair" in out


def test_a_session_of_one_block_is_no_pilot(bench: Typed, tmp_path: Path) -> None:
    a_session_on_disk(tmp_path / "results", "20260307-100000-inference-lab-0003", blocks=1)
    code, _, err = bench("pilot", "20260307")
    assert (code, "levels of its variance cannot be separated" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["list"], list),
        (["list", "targets"], list),
        (["list", "sessions"], list),
        (["show", FIRST], list),
        (["status", "--target", "local"], list),
        (["plan", "inference", "--cpus", "2", "--blocks", "1", "--target", "local"], dict),
        (["history", "throughput_inputs_per_second"], list),
        (["doctor", "--target", "local"], list),
        (["data", "list"], list),
    ],
)
def test_whatever_prints_a_table_prints_it_as_json(bench: Typed, words: list[str], kind: type) -> None:
    _, out, _ = bench(*words, "--json")  # whether this machine is fit is not asked here
    said = json.loads(out)["data"]
    assert type(said) is kind
    assert said


def test_json_of_a_run_is_the_run_and_of_its_session_how_each_ended(bench: Typed) -> None:
    endings = json.loads(bench("show", FIRST, "--json")[1])["data"]
    runs = store.load_runs(Path("results") / FIRST, store.load_session(Path("results") / FIRST))
    assert [each["run"] for each in endings] == [run.spec.folder for run in runs]
    assert [each["samples"] for each in endings] == [len(run.samples) for run in runs]
    run = json.loads(bench("show", FIRST, endings[0]["run"], "--json")[1])["data"]
    assert run["spec"]["id"] == runs[0].spec.id
    assert len(run["samples"]) == endings[0]["samples"]


def test_json_of_experiments_and_plans_has_what_the_words_have(bench: Typed) -> None:
    said = {each["name"]: each for each in json.loads(bench("list", "--json")[1])["data"]}
    batch = next(each for each in said["inference"]["params"] if each["name"] == "batch")
    assert (batch["type"], batch["minimum"]) == ("int", 1)
    planned = json.loads(bench("plan", "inference", "--cpus", "2", "--blocks", "3", "--target", "local", "--json")[1])[
        "data"
    ]
    assert {spec["block"] for spec in planned["session"]["specs"]} == {1, 2, 3}
    assert planned["seconds"] > 0


def test_json_of_what_is_up_keeps_the_token_to_itself() -> None:
    from builders import a_topology

    from bench.targets import Cluster, TargetStatus, public

    cluster = Cluster(
        topology=a_topology(),
        dashboard_url="http://d",
        exporter_url="http://e",
        token="a-secret",
        nodes=("head",),
        link="loopback",
        environment={"RAY_AUTH_TOKEN": "a-secret"},
    )
    said = json.dumps(public("local", TargetStatus(cluster=cluster)), default=str)
    assert "http://d" in said
    assert "a-secret" not in said


def test_csv_is_written_for_spreadsheets_of_other_locales(bench: Typed) -> None:
    usual, comma, tab = (
        bench("report", SECOND, "--format", "csv", *more)[1]
        for more in ([], ["--decimal-comma"], ["--delimiter", "tab"])
    )
    assert usual.startswith("session,experiment,")
    assert comma.startswith("session;experiment;")
    assert tab.startswith("session\texperiment\t")
    assert len(usual.splitlines()) == len(comma.splitlines()) == len(tab.splitlines())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--decimal-comma"], "--delimiter and --decimal-comma apply to CSV, not to text. Add --format csv."),
        (["--format", "csv", "--delimiter", ";"], "--delimiter must be one of comma, semicolon, tab, got ';'."),
        (["--format", "csv", "--delimiter", "tabs"], "got 'tabs'. Did you mean tab?"),
        (
            ["--format", "csv", "--delimiter", "comma", "--decimal-comma"],
            "--decimal-comma excludes the delimiter comma.",
        ),
    ],
)
def test_a_layout_that_cannot_be_meant_is_refused(bench: Typed, words: list[str], said: str) -> None:
    code, out, err = bench("report", SECOND, *words)
    assert (code, out) == (2, "")
    assert said in err
