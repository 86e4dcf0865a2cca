"""Paths that the user types: `~` is the home folder wherever a path is taken, in options, parameters and plan files."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import get_args

import pytest
from command_line import Typed, typist

from bench import cli, params
from bench.errors import BadInput
from bench.experiments import NAMES
from bench.planning import plan, plan_file, plan_text
from bench.record.files import expand_home
from bench.terminal.asking import asking
from bench.terminal.paths import as_path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    (tmp_path / "here").mkdir()
    return typist(capsys, monkeypatch, tmp_path / "here")


@pytest.mark.parametrize("text", ["results", "/a/b", "a~", "./~", "a/~/b", ""])
def test_only_a_tilde_in_front_is_a_home(text: str) -> None:
    assert expand_home(text) == text


def test_a_tilde_in_front_is_the_home_folder(home: Path) -> None:
    assert expand_home("~") == str(home)
    assert expand_home("~/a/~") == f"{home}/a/~"


def test_a_home_that_is_not_known_is_refused() -> None:
    with pytest.raises(BadInput, match="~nobody-here/a: the home folder ~nobody-here is not known"):
        expand_home("~nobody-here/a")


def test_every_option_that_is_a_path_takes_a_home_and_refuses_an_empty_one() -> None:
    from importlib import import_module

    found = {}
    for name in cli.NAMES:
        module = import_module(f"bench.commands.{name}")
        work = [asking(module.command)] if hasattr(module, "command") else []
        for command in work or [each.callback for each in module.app.registered_commands]:
            for each in signature(command).parameters.values():
                kind, option = get_args(each.annotation)[:2]
                if Path in (kind, *get_args(kind)):
                    found[name, each.name] = option.parser
    assert len(found) > 10
    assert {each for each, parser in found.items() if parser is not as_path} == set()


def test_every_parameter_that_is_a_path_takes_a_home(home: Path) -> None:
    declared = {
        (of, each.name): each
        for of in NAMES
        for each in params.declared(plan.experiment(of).params).values()
        if each.name in ("input", "folder") or each.name.endswith("_path") or "file" in each.help.lower()
    }
    assert {of for of, _ in declared} >= {"clustering", "clustering-kernels", "clustering-files", "tune"}
    for (of, name), each in declared.items():
        if each.type is str and not each.choices:
            assert params.parse(each, "~/mine.npy") == f"{home}/mine.npy", f"{of} {name}"
            assert params.parse(each, "") == ""


def test_a_plan_has_homes_in_options_and_parameters(home: Path) -> None:
    text = "out = '~/r'\noperator_manifests = '~/m'\n[experiments.clustering-files]\nfolder = ['~', '~/b']\n"
    found = plan_file.check(plan_text.parse("plan.toml", text))
    assert found.options == {"out": f"{home}/r", "operator_manifests": f"{home}/m"}
    assert found.experiments == {"clustering-files": {"folder": (str(home), f"{home}/b")}}


def test_no_command_makes_a_folder_that_is_called_tilde(bench: Typed, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (home / "plan.toml").write_text("out = '~/results'\n[experiments.clustering-files]\nfolder = '~/files'\n")
    code, out, err = bench("plan", "--plan=~/plan.toml", "--save=~/again.toml", "--target", "local", "--cpus", "2")
    assert code == 0, err
    assert f"folder={home}/files" in out
    assert f'out = "{home}/results"' in (home / "again.toml").read_text()
    assert [path.name for path in (tmp_path / "here").iterdir() if path.name != "state"] == []
