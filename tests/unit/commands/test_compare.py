"""`bench compare` and `bench baseline`, as a person or a CI job types them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Typed, typist
from fakes import FakeHead, FakeTarget, a_fake_target
from made_up import SINGLE, SessionShape, a_run
from made_up_sessions import FEW, a_session_on_disk

from bench import identity
from bench.cluster.recorder import Recorder
from bench.commands import compare
from bench.model import Spec
from bench.record import store
from bench.runner import run

BEFORE, SAME, SLOW, SHAPED = (f"2026010{n}-100000-inference-lab-000{n}" for n in (1, 2, 3, 4))


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    monkeypatch.setattr(run, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(identity, "code_hash", lambda *_: "0123456789abcdef")
    out = tmp_path / "results"
    a_session_on_disk(out, BEFORE, blocks=6)
    a_session_on_disk(out, SAME, blocks=6, seed=8)
    a_session_on_disk(out, SLOW, blocks=6, seed=9, multi=0.6)
    a_session_on_disk(out, SHAPED, blocks=6, seed=8, link="veth at 1gbit")
    return typist(capsys, monkeypatch, tmp_path)


@pytest.fixture
def head(tmp_path: Path) -> FakeHead:
    (tmp_path / "records").mkdir()
    return FakeHead(tmp_path / "records")


@pytest.fixture
def target(head: FakeHead, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTarget]:
    with a_fake_target(head, SINGLE) as fake:
        monkeypatch.setattr(compare, "create", lambda name, options: fake)
        yield fake


def measuring(**shape: object) -> Callable[[Spec, Path], str]:
    """A driver whose numbers are made up."""

    def drive(spec: Spec, folder: Path) -> str:
        run = a_run(spec, SessionShape(**FEW, **shape))  # type: ignore[arg-type]
        recorder = Recorder(folder, spec)
        assert run.facts
        recorder.facts(run.facts)
        for sample in run.samples:
            recorder.sample(sample)
        for usage in run.usage:
            recorder.usage(usage)
        recorder.close("ok", ())
        return "SUCCEEDED"

    return drive


def test_two_sessions_that_are_alike_have_no_alarm_and_the_baseline_is_named(bench: Typed) -> None:
    code, out, _ = bench("compare", BEFORE, SAME, "--fail-on", "slower")
    assert code == 0
    assert " ".join(out.split()).startswith(f"raymeter compares session {SAME} with the baseline {BEFORE}")
    assert "Historical" in out
    assert "No number is known to have become faster or slower" in out


def test_a_failed_condition_has_an_exit_code_of_its_own_and_names_the_number(bench: Typed) -> None:
    code, out, err = bench("compare", BEFORE, SLOW, "--fail-on", "slower:5%")
    assert code == 12
    assert "slower (not confirmed)" in out
    assert "2 of 3 numbers; the first, inference c01, throughput on multi: slower (not confirmed)" in err
    assert bench("compare", BEFORE, SLOW)[0] == 0
    assert bench("compare", BEFORE, SLOW, "--fail-on", "slower:90%")[0] == 0
    assert bench("compare", BEFORE, SLOW, "--fail-on", "slowest")[0] == 2


def test_other_facts_are_named_first_and_refused_unless_they_are_allowed(bench: Typed) -> None:
    code, out, err = bench("compare", BEFORE, SHAPED)
    assert (code, out) == (11, "")
    assert err.startswith("bench: link: veth, then veth at 1gbit.")
    code, out, _ = bench("compare", BEFORE, SHAPED, "--allow-unequal")
    assert code == 0
    assert "Unequal, and allowed: link: veth, then veth at 1gbit" in out


def test_other_data_is_refused_whatever_is_allowed(bench: Typed) -> None:
    name = "20260109-100000-inference-lab-0005"
    folder = a_session_on_disk(Path("results"), name)
    planned = store.load_session(folder)
    for spec in planned.specs:
        path = store.run_folder(folder, spec)
        run = store.load_run(folder, spec)
        shutil.rmtree(path)
        assert run.facts
        recorder = Recorder(path, spec)
        recorder.facts(run.facts)
        recorder.digest(f"{store.DATA}digits", "food")
        for sample in run.samples:
            recorder.sample(sample)
        recorder.close("ok", ())
    code, out, err = bench("compare", BEFORE, name, "--allow-unequal")
    assert (code, out) == (11, "")
    assert err.startswith("bench: checksum of digits: ")


def test_a_name_stands_where_a_session_does(bench: Typed) -> None:
    assert bench("baseline", "set", "main", BEFORE) == (0, f"main is {BEFORE}\n", "")
    assert bench("baseline", "list")[1].split() == ["main", BEFORE]
    assert bench("compare", "main", SAME)[1] == bench("compare", BEFORE, SAME)[1]
    assert bench("baseline", "rm", "main")[0] == 0
    assert bench("compare", "main", SAME)[0] == 2
    assert "No baseline in" in bench("baseline", "list")[2]


def test_it_comes_as_markdown_and_json_and_in_a_file(bench: Typed) -> None:
    assert bench("compare", BEFORE, SAME, "--format", "markdown")[1].startswith("# raymeter compares session")
    found = json.loads(bench("compare", BEFORE, SAME, "--format", "json", "--all")[1])
    assert found["label"] == "historical"
    assert {row["where"] for row in found["rows"]} == {"single", "multi", "multi/single"}
    assert bench("compare", BEFORE, SAME, "--format", "json", "--all", "-o", "found.json")[1] == ""
    assert json.loads(Path("found.json").read_text()) == found
    assert bench("compare", BEFORE, SAME, "--format", "html")[0] == 2


def test_an_alarm_that_a_fresh_session_finds_again_is_confirmed(
    bench: Typed, head: FakeHead, target: FakeTarget
) -> None:
    head.driver = measuring(multi=0.6)
    code, out, err = bench("compare", BEFORE, SLOW, "--confirm", "--fail-on", "slower")
    assert code == 12, err
    assert "slower (confirmed)" in out
    assert "not confirmed)" not in out
    fresh = store.load_session(store.session_folders(Path("results"))[-1])
    assert "-confirm-" in fresh.id
    assert store.find(Path("results"), "latest").name == SHAPED
    assert {(spec.cell, spec.topology.name) for spec in fresh.specs} == {("c01", "single"), ("c01", "multi")}
    assert len(fresh.specs) == 12
    assert not target.is_up


def test_an_alarm_that_a_fresh_session_does_not_find_again_is_none(
    bench: Typed, head: FakeHead, target: FakeTarget
) -> None:
    head.driver = measuring()
    code, out, err = bench("compare", BEFORE, SLOW, "--confirm", "--fail-on", "slower")
    assert code == 0, err
    assert "undecided (not found again)" in out
    assert "it was slower, and the fresh session" in out


def test_a_fresh_session_that_fails_confirms_nothing_and_is_no_success(
    bench: Typed, head: FakeHead, target: FakeTarget
) -> None:
    head.driver = lambda spec, folder: "FAILED"
    code, out, _ = bench("compare", BEFORE, SLOW, "--confirm", "--fail-on", "slower")
    assert code == 6
    assert "slower (confirmed)" not in out


def test_a_fresh_session_elsewhere_is_not_the_candidate_anew(bench: Typed, head: FakeHead, target: FakeTarget) -> None:
    head.driver = measuring(link="veth at 1gbit")
    code, out, err = bench("compare", BEFORE, SLOW, "--confirm")
    assert (code, out) == (11, "")
    assert "link: veth, then veth at 1gbit. So the new session" in err


def test_another_raymeter_cannot_confirm_and_nothing_is_run(
    bench: Typed, target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "code_hash", lambda *_: "fedc")
    code, _, err = bench("compare", BEFORE, SLOW, "--confirm")
    assert (code, target.ups) == (11, [])
    assert "was measured by code 0123456789abcdef, and this is fedc" in err


def test_without_an_alarm_nothing_is_run(bench: Typed, target: FakeTarget) -> None:
    code, _, err = bench("compare", BEFORE, SAME, "--confirm")
    assert (code, target.ups) == (0, [])
    assert "No alarm to confirm" in err
