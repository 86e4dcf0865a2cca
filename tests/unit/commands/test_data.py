"""`bench data` says what there is, takes a person's files, and tells them what to type."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_sets import COUNTS, mnist_files, pin, some_arrays
from typer.testing import CliRunner

from bench.cli import app
from bench.data import images, seeded
from bench.errors import DataMissing


def invoke(*words: str) -> str:
    result = CliRunner().invoke(app, ["data", *words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_list_names_every_set_and_how_to_get_those_that_are_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path))
    text = invoke("list")
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert set(images.SOURCES) < set(lines)
    assert "missing" in lines["mnist"]
    assert "bench data seed mnist PATH" in lines["mnist"]
    assert images.checksum("mnist-small", 1)[:12] in lines["mnist-small"]
    assert str(tmp_path) in text


def test_seeding_prints_the_file_and_the_list_then_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path / "data"))
    monkeypatch.setitem(seeded.COUNTS, "mnist", COUNTS)
    pin(monkeypatch, "mnist", mnist_files(some_arrays((784,))), tmp_path / "downloads")
    path = Path(invoke("seed", "mnist", str(tmp_path / "downloads")).strip())
    assert path.is_file()
    assert str(path) in invoke("list")


def test_files_that_are_not_there_are_missing_data(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"There is no .*nothing"):
        invoke("seed", "mnist", str(tmp_path / "nothing"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataMissing, match="has no mnist in it"):
        invoke("seed", "mnist", str(tmp_path / "empty"))
