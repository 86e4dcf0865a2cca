"""A profile that an experiment left as a file: read back with its run, and shown in every report that has room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.made_up import made_up
from builders import a_spec

from bench import analysis, reports, store
from bench.jobs.recorder import Recorder
from bench.model import Run

PROFILE = "\n".join(["0.050 <b>job</b>", *(f"├─ 0.00{number} step_{number} ```" for number in range(30))])


def rendered(format: str, **profiles: str) -> str:
    session, runs = made_up(cells=2)
    runs = [replace(run, profiles=profiles) if run.spec.cell == "c02" else run for run in runs]
    return reports.render(format, analysis.build(session, runs), runs)


def a_run_with(folder: Path, **files: bytes) -> Run:
    recorder = Recorder(store.run_folder(folder, a_spec()), a_spec())
    for name, content in files.items():
        (recorder.files / f"{name.replace('_', '-')}.txt").write_bytes(content)
    recorder.close("ok", ())
    return store.load_run(folder, a_spec())


def test_a_run_has_the_profiles_that_lie_beside_its_numbers(tmp_path: Path) -> None:
    run = a_run_with(tmp_path, profile_lloyd=b"0.1 job", profile_lloyd_unique=b"0.2 job", other=b"no profile")
    assert run.profiles == {"lloyd": "0.1 job", "lloyd-unique": "0.2 job"}


def test_no_more_of_a_strange_profile_is_read_than_is_shown(tmp_path: Path) -> None:
    run = a_run_with(tmp_path, profile_large=b"x" * 2**20, profile_bytes=b"\xff\xfe")
    assert run.profiles == {"large": "x" * store.MOST_PROFILE_BYTES, "bytes": "\ufffd\ufffd"}


def test_a_link_is_no_profile(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "session"
    a_run_with(folder)
    (store.run_folder(folder, a_spec()) / store.FILES / "profile-lloyd.txt").symlink_to(secret)
    assert store.load_run(folder, a_spec()).profiles == {}


def test_text_and_markdown_have_the_first_lines_and_say_where_the_others_are() -> None:
    for format in ("text", "markdown"):
        page = rendered(format, ray=PROFILE)
        assert "Where the time of ray went" in page.split("inference c02")[-1]
        assert "step_10" in page
        assert "step_11" not in page
        assert "... 19 more lines: results/" in page
        assert page.count("<b>job</b>") == 1


def test_html_has_all_of_it_and_none_of_it_is_markup() -> None:
    page = rendered("html", ray=PROFILE)
    assert "step_29" in page
    assert "&lt;b&gt;job&lt;/b&gt;" in page
    assert "<b>job" not in page


def test_in_markdown_no_line_of_a_profile_ends_its_block() -> None:
    lines = rendered("markdown", ray="a\n```\n# title").splitlines()
    assert [line for line in lines if line.strip() in ("```", "# title")] == ["    ```", "    # title"]


def test_a_report_without_profiles_is_what_it_was() -> None:
    session, runs = made_up(cells=1)
    report = analysis.build(session, runs)
    assert reports.render("text", report, runs) == reports.render("text", report)
