"""The workflow that the documentation offers: GitHub must take it, and each of its commands must be one."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml
from repository import ROOT
from typer.main import get_command

from bench import cli, experiments

WORKFLOW = yaml.load((ROOT / "docs/ci-example.yml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506, `on` is no boolean
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["bench"]["steps"]
COMMANDS = [
    match[1]
    for step in STEPS
    for match in re.finditer(r"^\s*\.venv/bin/bench (.*)$", step.get("run", ""), re.MULTILINE)
]


def parsed(words: list[str]) -> dict[str, Any]:
    """What the command line makes of a command, which is not run. Raises where it makes nothing of it."""
    app = get_command(cli.app)
    context = app.make_context("bench", list(words))  # takes the options before the command
    words = [*context._protected_args, *context.args]
    command = app.commands[words[0]]  # type: ignore[attr-defined]
    while hasattr(command, "commands"):  # a command of several: `baseline set`
        words = words[1:]
        command = command.commands[words[0]]
    params: dict[str, Any] = command.make_context(words[0], words[1:]).params
    return params


def test_it_has_the_shape_of_a_workflow() -> None:
    assert {"name", "on", "permissions", "jobs"} <= WORKFLOW.keys()
    assert {"push", "pull_request"} <= WORKFLOW["on"].keys()
    for step in STEPS:
        assert ("run" in step) != ("uses" in step)
        assert step.keys() <= {"name", "if", "uses", "with", "run", "env"}
        assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step.get("uses", "actions/checkout@v4"))


@pytest.mark.parametrize("command", COMMANDS)
def test_each_of_its_commands_is_one(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(re.sub(r"(>>.*|\|\|.*)$", "", command))
    assert parsed(words)


def test_it_measures_reports_and_keeps_the_baseline_that_it_brings() -> None:
    assert {command.split()[0] for command in COMMANDS} >= {"plan", "run", "report", "history", "export"}
    brought, kept = (step["with"] for step in STEPS if step.get("uses", "").startswith("actions/cache/"))
    assert brought["path"] == kept["path"] == "results"
    assert kept["key"].startswith(brought["restore-keys"])


def test_the_metric_that_it_follows_and_the_formats_that_it_writes_are_there() -> None:
    from bench.reports import FORMATS

    names = {metric.name for name in experiments.NAMES for metric in experiments.load(name).metrics}
    assert {parsed(shlex.split(each))["metric"] for each in COMMANDS if each.startswith("history")} <= names
    formats = re.findall(r"--format ([\w-]+)", "\n".join(COMMANDS))
    assert set(formats) <= FORMATS.keys()
    assert len(formats) > 3


def test_its_plan_has_enough_blocks_for_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    params = parsed(["run", "--plan", "docs/ci-plan.toml"])
    assert params["blocks"] >= 6
    assert params["experiments"] == ["inference", "network"]


def test_a_command_that_is_none_is_refused() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed(["run", "inference", "--bloks", "6"])
