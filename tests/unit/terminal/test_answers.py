"""What `--json` prints is a promise: the envelope, and every key of the golden file, is there."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import a_topology
from command_line import typist
from fakes import FakeHead, a_fake_target
from made_up_sessions import a_session_on_disk
from typer.main import get_command

from bench import cli
from bench.model import Session
from bench.record import store
from bench.runner.result import SessionResult, announce
from bench.targets import Choice, Options
from bench.targets.image import Built
from bench.terminal.schemas import SCHEMAS

GOLDEN = Path(__file__).parents[1] / "golden" / "json_keys.json"
FIRST, SECOND = "20260105-100000-inference-lab-0001", "20260206-100000-inference-lab-0002"
RUN = "b01-single-inference-c01"
ANSWERS = {
    "baseline": ["baseline", "set", "main", FIRST],
    "baselines": ["baseline", "list"],
    "capsule": ["export", FIRST, "-o", "capsules"],
    "comparison": ["compare", FIRST, SECOND],
    "data-set": ["data", "seed", "mnist", "downloads"],
    "data-sets": ["data", "list"],
    "ended": ["down", "--target", "local"],
    "experiments": ["list"],
    "findings": ["doctor", "--target", "local"],
    "history": ["history", "throughput_inputs_per_second"],
    "image": ["image"],
    "pilot": ["pilot", FIRST],
    "plan": ["plan", "inference", "--cpus", "2", "--blocks", "1", "--target", "local"],
    "report": ["report", FIRST, "--price-per-cpu-hour", "1EUR"],
    "run": ["show", FIRST, RUN],
    "runs": ["show", FIRST],
    "sessions": ["list", "sessions"],
    "status": ["status", "--target", "local"],
    "tables": ["export", FIRST, "--otava", "tables"],
    "targets": ["list", "targets"],
    "up": ["up", "--cpus", "2"],
    "verified": ["verify", "CAPSULE"],
    "replay": ["replay", "CAPSULE", "--other-code"],
    "removed": ["rm", "--yes", SECOND],
}
UNPROMISED = {"selfcheck", "manifest", "try"}
"""The first and the last measure, and their own tests read them; the second is Kubernetes' own."""
FREE = {
    "arms",
    "common_params",
    "data",
    "files",
    "metrics",
    "of_nodes",
    "options",
    "params",
    "runs",
    "seconds",
    "sides",
} | {*("values", "versions")}
"""Whose keys are names of things, and not of what is said about them."""


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Type a command with --json in a folder that has two sessions; get what it printed."""
    bench = typist(capsys, monkeypatch, tmp_path)
    for session in (FIRST, SECOND):
        a_session_on_disk(tmp_path / "results", session)
    (tmp_path / "records").mkdir()
    with a_fake_target(FakeHead(tmp_path / "records"), a_topology()) as fake:
        choice = Choice(target=fake, options=Options(), reason="it is a fake")
        for command in ("up", "replay"):
            monkeypatch.setattr(f"bench.commands.{command}.choose", lambda name, given, **_: choice)
        _stand_in_for_tools(monkeypatch, tmp_path)

        def typed(words: list[str]) -> Any:
            capsules = [str(path) for path in Path("capsules").glob("*")]
            _, out, err = bench(*(word if word != "CAPSULE" else capsules[0] for word in words), "--json")
            assert out, err
            return json.loads(out)

        yield typed


def _stand_in_for_tools(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Answers of what these commands ask: a Docker engine, a registry, downloaded files, and a cluster to measure on."""
    built = Built(tags=("raymeter:1",), id="sha256:1", size_bytes=10**9, seconds=60.0)
    monkeypatch.setattr("bench.targets.docker.engine.connect", lambda: None)
    monkeypatch.setattr("bench.targets.image.build", lambda client, plan, say: built)
    monkeypatch.setattr("bench.data.seeding.seed", lambda name, path: path / name)

    def measured(_out: Path, _session: Session, _target: object, *_notes: str) -> SessionResult:
        return a_result(place / "results" / FIRST)

    monkeypatch.setattr("bench.commands.replay.measure_new", measured)
    # The made-up session has params that no experiment declares.
    numbers = itertools.count(1)
    monkeypatch.setattr(
        "bench.capsules.replaying.again", lambda session, **_own: replace(session, id=f"replayed-{next(numbers)}")
    )


def keys(value: Any, place: str = "") -> Iterator[str]:
    """The way to each key of a JSON value; of a list, those of all that it holds."""
    if isinstance(value, list):
        for each in value:
            yield from keys(each, f"{place}[]")
    elif isinstance(value, dict):
        for name, each in value.items():
            way = f"{place}.{'*' if place.rpartition('.')[2] in FREE else name}".lstrip(".")
            yield way
            yield from keys(each, way)


def test_no_promised_key_of_an_answer_goes_without_a_new_version(said: Callable[[list[str]], Any]) -> None:
    found = {}
    for name, words in ANSWERS.items():
        answer = said(words)
        assert list(answer) == ["schema", "version", "data"]
        assert (answer["schema"], answer["version"]) == (f"raymeter.{name}", SCHEMAS[name][0])
        # Of a report inside another answer the schema of reports says more.
        said_of = {key for key in keys(answer["data"]) if not key.startswith("report.")}
        found[name] = {"version": answer["version"], "keys": sorted(said_of)}
    if os.environ.get("RAYMETER_WRITE_GOLDEN"):  # read what changed: does a version have to?
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    golden = json.loads(GOLDEN.read_text())
    for name, answer in found.items():
        assert answer["version"] == golden[name]["version"]
        assert not set(golden[name]["keys"]) - set(answer["keys"]), f"{name} has lost these: give it a new version"


@pytest.mark.parametrize(
    ("outcomes", "has_badge"), [([True], False), ([True, True, True], True), ([True, False, True], False)]
)
def test_each_replay_is_a_session_and_three_of_three_give_the_badge(
    said: Callable[[list[str]], Any], monkeypatch: pytest.MonkeyPatch, outcomes: list[bool], has_badge: bool
) -> None:
    said(ANSWERS["capsule"])
    each = iter(outcomes)
    monkeypatch.setattr("bench.capsules.replaying.is_reproduced", lambda _found: next(each))
    found = said([*ANSWERS["replay"], "--times", str(len(outcomes))])["data"]
    assert [replay["reproduced"] for replay in found["replays"]] == outcomes
    assert found["badge"] is has_badge


def test_every_schema_is_held_to_the_golden_file() -> None:
    assert ANSWERS.keys() | UNPROMISED == SCHEMAS.keys()
    assert json.loads(GOLDEN.read_text()).keys() == ANSWERS.keys()


def leaves(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by what a person types."""
    if found := getattr(command, "commands", None):
        for name in found:
            yield from leaves(found[name], *path, name)
    else:
        yield " ".join(path), command


def test_every_command_has_json_and_a_schema_that_names_it() -> None:
    commands = dict(leaves(get_command(cli.app)))
    assert len(commands) > 20
    without = [name for name, each in commands.items() if not any("--json" in option.opts for option in each.params)]
    assert without == []
    said = [text.partition(":")[0] for _, text in SCHEMAS.values()]
    named = {words for text in said for words in re.findall(r"`([a-z ]+[a-z])", text)}
    assert commands.keys() <= named, "a schema says what prints it, in front of its colon"


def test_a_manifest_for_programs_has_the_objects_of_the_one_for_kubectl(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, out, _ = typist(capsys, monkeypatch, tmp_path)("manifest", "inference", "--cpus", "2", "--json")
    answer = json.loads(out)
    assert answer["schema"] == "raymeter.manifest"
    assert {each["kind"] for each in answer["data"]} >= {"Secret", "RayJob"}


def a_result(folder: Path) -> SessionResult:
    session = store.load_session(folder)
    return SessionResult(folder=folder, session=session, runs=store.load_runs(folder, session))


def test_run_and_resume_print_their_report_in_the_envelope(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = a_session_on_disk(tmp_path, FIRST)
    announce(a_result(folder), as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["data"]["session"]) == ("raymeter.report", FIRST)
    assert (folder / "report.txt").is_file()
