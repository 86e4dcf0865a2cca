"""README and the pages under docs/: how they begin, how long they are, that links lead somewhere and commands exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from readme import DOCS, README, executed, in_navigation
from readme import commands as commands_of
from repository import ROOT

from bench import experiments
from bench import params as parameters
from bench.errors import RecordDamaged
from bench.experiments import Experiment
from tests.unit.test_ci_example import parsed
from tools import docs
from tools.doc_parts import HEADINGS, OPENING
from tools.docs import FILES
from tools.screenshots import REPORT, with_report

PAGES = sorted(DOCS.rglob("*.md"))
TASKS = yaml.safe_load((ROOT / "Taskfile.yml").read_text())["tasks"]
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:\.venv/bin/)?bench [^`]+)`")
PART = re.compile(r"<!-- bench docs: .*?<!-- end -->", re.DOTALL)
README_WORDS = 1500
OF_EXAMPLES = {"bench/experiments/broadcast.py", "docs/experiments/broadcast.md"}


def commands() -> list[tuple[str, str]]:
    """Each line of each sh block, with the name of its page."""
    return [(page.relative_to(ROOT).as_posix(), line) for page in (README, *PAGES) for line in commands_of(page)]


def shown_in_sentences() -> list[tuple[str, str]]:
    """Each command that stands in a sentence or a table, with its page. A name alone, as `bench run`, is left out."""
    found = [
        (page.relative_to(ROOT).as_posix(), command)
        for page in (README, *PAGES)
        for command in INLINE.findall(FENCED.sub("", PART.sub("", page.read_text())))
    ]
    return [(page, command) for page, command in found if len(command.split()) > 2 and "COMMAND" not in command]


def test_the_readme_is_short_enough_to_be_read() -> None:
    assert len(README.read_text().split()) <= README_WORDS


def test_the_readme_shows_a_report_of_one_screen() -> None:
    found = REPORT.search(README.read_text())
    assert found
    lines = found[0].splitlines()
    assert lines[0].startswith("raymeter report of session ")
    assert any(line.startswith("Everything ") for line in lines)
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test_a_report_goes_between_its_marks_and_nowhere_else() -> None:
    renewed = with_report(README.read_text(), "0.5 [0.4, 0.6]\n")
    assert "\n```text\n0.5 [0.4, 0.6]\n```\n" in renewed
    assert REPORT.sub("", renewed) == REPORT.sub("", README.read_text())
    with pytest.raises(ValueError, match="no place"):
        with_report("# raymeter\n", "0.5\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_page_opens_with_what_its_reader_can_do_afterwards(page: Path) -> None:
    title, blank, opening, *_ = page.read_text().splitlines()
    assert title.startswith("# ")
    assert blank == ""
    assert opening.startswith(tuple(f"{OPENING} {verb} " for verb in ("can", "have", "know")))


@pytest.mark.parametrize("page", [README, ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.name)
def test_files_and_variables_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text()
    paths = re.findall(r"`((?:bench|docs|examples|images|k8s|tests|tools)/[\w./-]+)`", text)
    assert [path for path in paths if not (ROOT / path).exists() and path not in OF_EXAMPLES] == []
    code = "".join(file.read_text() for folder in ("bench", "tests") for file in (ROOT / folder).rglob("*.py"))
    assert [name for name in re.findall(r"RAYMETER_[A-Z_]+", text) if name not in code] == []


def test_the_quick_start_is_the_same_in_the_readme_and_on_its_page() -> None:
    assert commands_of(DOCS / "quick-start.md")[0] == commands_of(README)[0]


def test_all_pages_but_those_of_experiments_have_their_commands_executed() -> None:
    pages = [page for page in PAGES if page.parent == DOCS]
    assert set(executed()) == {line for page in (README, *pages) for line in commands_of(page)}
    assert sorted(in_navigation()) == PAGES


@pytest.mark.parametrize(("page", "command"), shown_in_sentences())
def test_a_command_in_a_sentence_is_one_that_the_command_line_takes(page: str, command: str) -> None:
    try:
        parsed(shlex.split(command.partition("|")[0])[1:])
    except typer.Exit:  # an option that answers by itself, as --schema
        pass
    except Exception as error:
        if "Missing" not in str(error) and "requires an argument" not in str(error):  # a sentence may leave values out
            raise AssertionError(f"{page}: {error}") from error


@pytest.mark.parametrize("name", experiments.NAMES)
def test_every_experiment_has_a_page_that_says_all_of_it_in_one_order(name: str) -> None:
    text = (DOCS / "experiments" / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert tuple(re.findall("^## (.*)$", text, re.MULTILINE)) == HEADINGS
    assert f"<!-- bench docs: experiment {name} -->" in text
    assert Path(f"docs/experiments/{name}.md") in FILES


def test_a_page_that_is_not_there_is_begun_and_one_that_is_checked_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    page = Path("docs/experiments/network.md")
    page.parent.mkdir(parents=True)
    with pytest.raises(RecordDamaged, match=r"network\.md is not there"):
        docs.command(check=True, file=[page])
    docs.command(file=[page])
    text = page.read_text()
    assert tuple(re.findall("^## (.*)$", text, re.MULTILINE)) == HEADINGS
    assert "| parameter | values |" in text
    docs.command(check=True, file=[page])


@pytest.mark.parametrize("name", experiments.NAMES)
def test_what_we_find_has_the_command_that_measured_it(name: str) -> None:
    text = (DOCS / "experiments" / f"{name}.md").read_text()
    found = text.split("## What we find")[1].split("\n## ")[0]
    assert re.search(r"`bench run [^`]+`", found)
    for command in re.findall(r"`(bench [^`]+)`", found):
        parsed(shlex.split(command)[1:])


@pytest.mark.parametrize(("page", "command"), commands())
def test_every_command_is_one_that_the_command_line_takes(page: str, command: str) -> None:
    inner = re.search(r"\$\((.*?)\)", command)
    outer = re.sub(r"\$\(.*?\)", "FILE", command)
    for each in (*outer.split(" && "), *([inner[1]] if inner else [])):
        words = shlex.split(each.replace("results/plan.toml", "docs/ci-plan.toml"), comments=True)
        words = list(dropwhile(re.compile("[A-Z_]+=").match, words))
        if words[:3] == ["uvx", "--from", "go-task-bin"]:
            words = words[3:]
        if words[0].endswith("bench"):
            parsed(words[1:])
        elif words[0] == "task":
            assert words[1] in TASKS, page
        else:
            assert words[0] in {"brew", "curl", "docker", "kubectl", "pip", "pipx", "python3", "uv"}, page


def test_params_that_the_pages_set_are_in_bounds() -> None:
    seen = 0
    found = [match for page in PAGES for match in re.findall(r"`(bench run [^`]+)`", page.read_text())]
    for command in (*(line for _, line in commands()), *found):
        words = shlex.split(command, comments=True)
        if words[1:2] != ["run"] or words[2] not in experiments.NAMES:
            continue
        given = [each for word, each in pairwise(words) if word == "--set"]
        parameters.settings(experiments.load(words[2]).params, given)  # raises where one is not
        seen += len(given)
    assert seen > 20


def test_every_page_is_in_the_site_and_every_link_and_anchor_of_it_leads_somewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    built = {path.relative_to(tmp_path).with_suffix(".md").as_posix() for path in tmp_path.rglob("*.html")}
    assert built - {"404.md"} == {page.relative_to(DOCS).as_posix() for page in PAGES}
    for page in tmp_path.rglob("*.html"):
        asked = re.findall(r"<(?:link|script|img)[^>]+(?:href|src)=\"(https?:[^\"]+)", page.read_text())
        assert asked == [], f"{page.name} would ask {asked} of a network"


def test_the_design_names_the_experiments_that_are_done_unwatched_too() -> None:
    (line,) = (line for line in (DOCS / "design.md").read_text().splitlines() if line.startswith("| Watching costs"))
    controlled = [n for n in experiments.NAMES if any(arm.role == "control" for arm in experiments.load(n).arms)]
    assert [name for name in experiments.NAMES if f"`{name}`" in line] == controlled


@pytest.mark.parametrize("page", [DOCS / "extending.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_an_example_is_as_the_linter_wants_it(page: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    ruff = [Path(sys.executable).with_name("ruff")]
    for words in (["check"], ["format", "--check"]):
        command = [*ruff, *words, "--quiet", "--stdin-filename", "bench/experiments/example.py", "-"]
        done = subprocess.run(command, input=code, cwd=ROOT, text=True, capture_output=True, timeout=60, check=False)
        assert done.stdout == ""


def test_the_example_declares_what_the_command_line_needs(broadcast: Experiment[Any]) -> None:
    assert set(parameters.declared(broadcast.params)) == {"object_kib", "readers"}
    assert broadcast.metrics[0].name == "broadcast_seconds"
    assert broadcast.guess_pass_seconds(broadcast.params())["ray"][0] > 0


def test_every_image_that_must_be_brought_along_is_on_the_page_for_those_without_a_network() -> None:
    pins = [line.partition("=") for line in (ROOT / "images/versions.env").read_text().splitlines()]
    images = {value.rpartition(":")[0] for name, _, value in pins if name.endswith("_IMAGE")}
    page = (DOCS / "offline.md").read_text()
    assert len(images) == 5
    assert [image for image in sorted(images) if f"`{image}`" not in page] == []
