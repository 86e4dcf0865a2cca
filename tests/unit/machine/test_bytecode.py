"""When Python compiles a package at every start of a process."""

from __future__ import annotations

import py_compile
import sys
from pathlib import Path

import pytest

from bench.machine.bytecode import is_compiled_at_every_start


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that can be imported, and has no bytecode."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    path = tmp_path / "never_compiled.py"
    path.write_text("value = 1\n")
    return path


@pytest.mark.parametrize(
    ("keeps_none", "is_compiled", "expected"),
    [(True, False, True), (True, True, False), (False, False, False), (False, True, False)],
)
def test_it_is_where_there_is_no_bytecode_and_python_is_told_to_keep_none(
    module: Path, monkeypatch: pytest.MonkeyPatch, keeps_none: bool, is_compiled: bool, expected: bool
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", keeps_none)
    if is_compiled:
        py_compile.compile(str(module))
    assert is_compiled_at_every_start(module.stem) is expected


def test_it_is_where_the_folder_cannot_be_written(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != module.parent)  # as root may write anywhere
    assert is_compiled_at_every_start(module.stem)


def test_what_is_not_there_or_was_compiled_by_a_c_compiler_is_not() -> None:
    assert not is_compiled_at_every_start("no_such_package")
    assert not is_compiled_at_every_start("math")
