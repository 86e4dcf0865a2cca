"""Where Ray's files go: a path that its sockets fit below, and that every shell takes as it is."""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import CannotWrite
from bench.targets.local import run_folders
from bench.targets.local.run_folders import MOST_BYTES, choose, is_plain, make


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, as only the system's own has one."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r") as folder:
        yield Path(folder)


def test_the_folder_that_is_wanted_is_taken_without_a_word(short: Path) -> None:
    assert choose(str(short)) == run_folders.Parent(str(short))


def test_a_path_of_the_greatest_length_is_taken_and_one_of_a_byte_more_is_not(short: Path) -> None:
    longest = short / ("x" * (MOST_BYTES - len(str(short)) - 1))
    too_long = Path(f"{longest}x")
    longest.mkdir()
    too_long.mkdir()
    assert choose(str(longest)) == run_folders.Parent(str(longest))
    found = choose(str(too_long), [str(short)])
    assert found.path == str(short)
    assert f"'{too_long}' has {MOST_BYTES + 1} bytes" in found.note
    assert f"sockets allow {MOST_BYTES}" in found.note
    assert f"Ray's files go to {short}" in found.note
    assert "\n" not in found.note


def test_the_length_is_that_of_bytes_and_not_of_characters(short: Path) -> None:
    wide = short / ("ü" * (MOST_BYTES - len(str(short)) - 1))
    wide.mkdir()
    assert "bytes" in choose(str(wide), [str(short)]).note


@pytest.mark.parametrize("name", ["a b", "a'b", 'a"b', "a$b", "a`b", "a\\b", "a\nb", "ü", "a;b", "a*b", "~", "a#b"])
def test_a_path_that_a_shell_would_read_otherwise_is_passed_over(short: Path, name: str) -> None:
    (short / name).mkdir()
    found = choose(str(short / name), [str(short)])
    assert found.path == str(short)
    assert "unsafe in a shell" in found.note
    assert "\n" not in found.note


@given(st.text(min_size=1, max_size=8))
def test_what_is_plain_needs_no_quotes(text: str) -> None:
    if is_plain(text):
        assert shlex.quote(text) == text


def test_a_folder_that_is_not_there_or_a_file_is_passed_over(short: Path) -> None:
    (short / "file").touch()
    for path in (short / "nothing", short / "file"):
        found = choose(str(path), [str(short)])
        assert found.path == str(short)
        assert "is not a folder that can be written to" in found.note


def test_no_folder_at_all_is_refused_with_every_reason(short: Path) -> None:
    with pytest.raises(CannotWrite, match=r"'/no/where' is not a folder .*; '/none' is not .* Set TMPDIR"):
        choose("/no/where", ["/none"])


def test_a_temporary_folder_that_python_does_not_find_is_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(tempfile, "gettempdir", none)
    monkeypatch.setenv("TMPDIR", "/no/where")
    assert choose().path in run_folders.FALLBACKS


def test_what_is_made_is_private_and_made_once(short: Path) -> None:
    folder = short / "mine"
    before = os.umask(0)
    try:
        make(folder)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(CannotWrite, match="File exists"):
        make(folder)


def test_a_link_that_somebody_left_there_is_not_followed(short: Path) -> None:
    (short / "theirs").mkdir()
    (short / "mine").symlink_to(short / "theirs")
    with pytest.raises(CannotWrite, match="File exists"):
        make(short / "mine")
