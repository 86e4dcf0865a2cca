"""Text of others: what a terminal or a page would obey is gone, and the rest is as it was."""

from __future__ import annotations

import unicodedata
from io import StringIO
from pathlib import Path

import pytest
from builders import a_sample, a_session, a_spec
from command_line import Typed, typist
from hypothesis import given
from hypothesis import strategies as st
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.cluster.recorder import Recorder
from bench.errors import BenchError
from bench.model import RunResult, Sample, as_builtins, to_json
from bench.planning.plan import Known
from bench.record import store
from bench.sanitize import clean_line, clean_reason, clean_text, from_clean_json, to_clean_json
from bench.terminal.output import say
from bench.terminal.progress import Progress

HOSTILE = "\x1b[36mray::Worker()\x1b[39m \x1b]0;title\x07died\x00\x08 of \u202eevil\u202c \x9b31mred\x1b]8;;http://x\x1b\\\ufeff"
CLEAN = "ray::Worker() died of evil red"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (HOSTILE, CLEAN),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("one\r\ntwo\rthree\u2028four\ttab", "one\ntwo\nthree\nfour\ttab"),
        ("\x1b]0;never ended\nnext", "\nnext"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("cut \x1b[3", "cut 3"),
        ("Grüße, 世界, 👩\u200d🔬", "Grüße, 世界, 👩\u200d🔬"),
        ("half a pair \ud83d", "half a pair "),
    ],
)
def test_text_is_cleaned(text: str, clean: str) -> None:
    assert clean_text(text) == clean


@given(st.text(st.characters(codec=None)))
def test_nothing_is_left_that_is_not_printed_and_what_is_clean_stays(text: str) -> None:
    clean = clean_text(text)
    assert not {unicodedata.category(c) for c in clean if c not in "\n\t"} & {"Cc", "Cs"}
    assert not set(clean) & set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x1b\x9b")
    assert clean_text(clean) == clean


@given(st.text(st.characters(codec=None)))
def test_what_is_written_and_what_is_read_is_clean_however_json_spells_it(text: str) -> None:
    sample = a_sample(None, reason=f"-{text}")
    clean = clean_text(f"-{text}")
    written = to_clean_json(sample)
    assert from_clean_json(written, Sample).reason == clean
    if text.encode(errors="ignore").decode() == text:  # JSON has no half surrogate pairs
        assert from_clean_json(to_json(sample), Sample).reason == clean
    spelled = "".join(f"\\u{ord(c):04x}" if ord(c) < 0xD800 else c for c in f"-{text}" if ord(c) < 0xD800)
    content = to_json(as_builtins(a_sample(None, reason="REASON"))).replace(b"REASON", spelled.encode())
    assert from_clean_json(content, Sample).reason == clean_text("".join(c for c in f"-{text}" if ord(c) < 0xD800))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("The head died.", "The head died"), ("wait...", "wait..."), ("a\nb..", "a b"), (f"{HOSTILE}.", CLEAN)],
)
def test_a_reason_is_one_line_without_a_full_stop(text: str, reason: str) -> None:
    assert clean_reason(text) == reason


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("The head ended: overloaded..", "The head ended: overloaded."),
        ("one: two.. three: four..", "one: two. three: four."),
        ("--out .. is no folder.", "--out .. is no folder."),
        ("../a/.. is no folder, and so on...", "../a/.. is no folder, and so on..."),
    ],
)
def test_an_error_made_of_sentences_ends_each_of_them_once(what: str, said: str) -> None:
    assert str(BenchError(what)) == said


def test_a_record_has_no_escape_sequences_from_the_driver_nor_from_the_cluster(tmp_path: Path) -> None:
    spec, folder = a_spec(), tmp_path / "session"
    recorder = Recorder(store.run_folder(folder, spec), spec)
    recorder.sample(a_sample(None, reason=f"{HOSTILE}."))
    recorder.close("failed", (f"{HOSTILE}.",))
    run = store.load_run(folder, spec)
    assert run.reasons == (CLEAN,)
    assert run.samples[0].reason == CLEAN
    lines, sha256 = store.measure(store.run_folder(folder, spec) / store.SAMPLES)
    result = RunResult(
        status="failed", reasons=(f"{HOSTILE}.",), lines=lines, sha256=sha256, log_end=HOSTILE, alerts=(HOSTILE,)
    )
    written = store.close_run(folder, spec, result)
    run = store.load_run(folder, spec)
    assert (run.reasons, run.log_end, run.alerts) == ((CLEAN,), CLEAN, (CLEAN,))
    assert (written.reasons, written.log_end) == (run.reasons, run.log_end)
    for path in store.run_folder(folder, spec).iterdir():
        assert not path.is_file() or b"\x1b" not in path.read_bytes()


@pytest.mark.parametrize("format", ["text", "markdown", "html", "csv", "json", "junit"])
def test_a_record_of_others_reaches_no_report_and_no_terminal_as_it_is(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_session_on_disk(tmp_path / "results", blocks=1)
    for path in [folder / "session.json", *folder.glob("runs/*/run.json")]:
        text = path.read_text()
        assert "bench run inference" in text or '"status": "ok"' in text or '"status":"ok"' in text
        spelled = to_json(HOSTILE).decode()[1:-1]
        path.write_text(
            text.replace("bench run inference", f"bench run inference {spelled}")
            .replace('"status":"ok"', f'"status":"failed","reasons":["{spelled}"]')
            .replace('"status":"ok","reasons":[]', '"status":"failed"')
            .replace('"reasons":[],', "", 1)
        )
    bench: Typed = typist(capsys, monkeypatch, tmp_path)
    for words in (("report", folder.name, "--format", format), ("show", folder.name)):
        code, out, err = bench(*words)
        assert code == 0
        assert "died of evil red" in out
        assert not set(out + err) & set("\x1b\x00\x07\x08\x9b\u202e")


def test_a_failure_is_told_in_one_clean_line() -> None:
    assert clean_line(f"{HOSTILE}\nTry again.\r\n") == f"{CLEAN} Try again."


def test_what_is_said_beside_an_answer_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"{HOSTILE}\nnext")
    assert capsys.readouterr().err == f"{CLEAN}\nnext\n"


def test_a_bar_shows_brackets_of_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ended = RunResult(status="failed", reasons=("[/red] of [bold]x[/]",), lines=0, sha256="")
    session = a_session()
    with Progress(todo=session.specs, known=Known(), so_far=lambda: analysis.build(session, [])) as bar:
        bar._bar.console.file = page = StringIO()
        bar.run_ended(session.specs[0], ended)
    assert "[/red] of [bold]x[/]" in page.getvalue()
