"""Profiles beside a run's numbers: read back with it, and shown in every report that has room, by nothing that could run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from builders import a_spec
from made_up import made_up

from bench import analysis, reports, stacks
from bench.cluster.recorder import Recorder
from bench.model import Run
from bench.record import store

DRIVER = stacks.file_name("py-spy", stacks.DRIVER)
HEAD = stacks.file_name("memray", "head")
PROFILE = "main (a.py);<script>alert(1)</script> 3000000\n" + "".join(
    f"main (a.py);step_{number:02} (a.py) {900_000 - number}\n" for number in range(60)
)


def rendered(format: str, profiles: dict[str, str]) -> str:
    session, runs = made_up(cells=2)
    runs = [replace(run, profiles=profiles) if run.spec.cell == "c02" else run for run in runs]
    return reports.render(format, analysis.build(session, runs), runs)


def a_run_with(folder: Path, files: dict[str, bytes]) -> Run:
    recorder = Recorder(store.run_folder(folder, a_spec()), a_spec())
    for name, content in files.items():
        (recorder.files / name).write_bytes(content)
    recorder.close("ok", ())
    return store.load_run(folder, a_spec())


def test_a_run_has_the_profiles_that_lie_beside_its_numbers(tmp_path: Path) -> None:
    files = {DRIVER: b"a 1\n", HEAD: b"b 2\n", "profile-lloyd.txt": b"of an old record", "other.folded": b"a 1"}
    assert a_run_with(tmp_path, files).profiles == {DRIVER: "a 1\n", HEAD: "b 2\n"}


def test_no_more_of_a_strange_profile_is_read_than_may_be_there(tmp_path: Path) -> None:
    run = a_run_with(tmp_path, {DRIVER: b"x" * 2**20, HEAD: b"\xff\xfe"})
    assert run.profiles == {DRIVER: "x" * stacks.MOST_BYTES, HEAD: "\ufffd\ufffd"}


def test_a_link_is_no_profile(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret 1")
    folder = tmp_path / "session"
    a_run_with(folder, {})
    (store.run_folder(folder, a_spec()) / store.FILES / DRIVER).symlink_to(secret)
    assert store.load_run(folder, a_spec()).profiles == {}


def test_text_and_markdown_have_the_functions_with_most_and_say_where_the_others_are() -> None:
    for format in ("text", "markdown"):
        page = rendered(format, {DRIVER: PROFILE})
        own = page.split("inference c02")[-1]
        assert "the driver, by py-spy" in own
        assert own.index("<script>") < own.index("step_00") < own.index("step_01")
        assert "step_30" not in own
        assert f"files/{DRIVER}" in own


def test_the_page_has_a_flame_graph_of_each_topologys_first_run_that_runs_nothing() -> None:
    page = rendered("html", {DRIVER: PROFILE, HEAD: f"main (a.py);grow (a.py) {25 * 2**20}\n"})
    figures = re.findall(r"<figure>.*?</figure>", page, flags=re.DOTALL)
    flames = [figure for figure in figures if "Flame graph" in figure]
    assert len(flames) == 4  # driver and head, on single and on multi
    assert "step_00 (a.py): 0.9 s, " in flames[0]
    assert "grow (a.py): 25 MiB, 100.0%" in flames[1]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: 3 s" in flames[0]
    assert "<script" not in page


def test_a_frame_is_as_wide_as_its_share() -> None:
    page = rendered("html", {DRIVER: "a;b 3000000\na;c 1000000\n"})
    widths = {
        name: float(wide)
        for wide, name in re.findall(r'width="([0-9.]+)"[^>]*><title>([a-z]+): ', page)
        if name in ("all", "a", "b", "c")
    }
    assert widths["all"] == widths["a"]
    assert widths["b"] / widths["c"] == 3 or abs(widths["b"] / widths["c"] - 3) < 0.02


def test_a_profile_that_is_all_nonsense_is_not_shown_and_does_no_harm() -> None:
    deep = ";".join("f" for _ in range(20_000)) + " 5\n"
    assert "Flame graph" not in rendered("html", {DRIVER: "nothing\n", HEAD: "a 0\n"})
    assert "Flame graph" in rendered("html", {DRIVER: deep})


def test_a_report_without_profiles_is_what_it_was() -> None:
    session, runs = made_up(cells=1)
    report = analysis.build(session, runs)
    assert reports.render("text", report, runs) == reports.render("text", report)


def test_a_profiled_session_is_stamped_with_a_caveat_and_not_compared_with_one_that_was_not() -> None:
    from bench.analysis.two_sessions import Stored, compare

    session, runs = made_up(cells=1)
    profiled = [replace(run, facts=replace(run.facts, profiler="py-spy") if run.facts else None) for run in runs]
    report = analysis.build(session, profiled)
    assert "profiled by py-spy" in report.stamps
    assert any("py-spy profiled" in caveat.text for caveat in report.caveats)
    assert not any("watched" in caveat.text for caveat in analysis.build(session, runs).caveats)
    found = compare(Stored(session=session, runs=runs), Stored(session=session, runs=profiled))
    assert [each.text for each in found.confounders] == ["profiler: none, then py-spy"]
