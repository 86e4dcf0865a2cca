"""Names, messages and pages use the words of the field. `banned_words.toml` lists those that they do not use."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = tomllib.loads((Path(__file__).parent / "banned_words.toml").read_text())
FOLDERS = ("bench", "tools", "images", "examples", "docs", ".github")
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff", "Taskfile.yml", "mkdocs.yml")
TEXT = {".py", ".md", ".yml", ".yaml", ".toml", ".json", ".html", ".css", ".jinja", ".env", ""}
OF_OTHERS = {"bench/data/digits.md"}  # the text of a licence


def texts() -> dict[str, str]:
    """The files that users and developers read, by their paths."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))] + [
        ROOT / name for name in FILES
    ]
    named = {path.relative_to(ROOT).as_posix(): path for path in paths if path.suffix in TEXT and path.is_file()}
    return {name: path.read_text() for name, path in named.items() if name not in OF_OTHERS}


def uses(pattern: str, files: dict[str, str]) -> list[str]:
    """Each line with a word that `pattern` matches, as path:line: text. Parts of snake_case names are words."""
    word = re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", re.IGNORECASE)
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if word.search(line)
    ]


@pytest.mark.parametrize("name", WORDS)
def test_no_banned_word_is_used(name: str) -> None:
    used = uses(WORDS[name]["pattern"], texts())
    assert not used, f"Say {WORDS[name]['use']}:\n" + "\n".join(used)


def test_a_banned_word_is_noticed_in_prose_and_in_names() -> None:
    files = {"a.py": "def the_ledger_of(run):\n    'A Ledger.'\n", "b.md": "A sledgehammer."}
    assert uses(WORDS["ledger"]["pattern"], files) == ["a.py:1: def the_ledger_of(run):", "a.py:2: 'A Ledger.'"]
