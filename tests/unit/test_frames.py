"""`bench.load`: a session as data frames, in Python, in a notebook and as Parquet files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Typed, typist
from made_up_sessions import a_session_on_disk
from repository import ROOT

import bench
from bench import analysis
from bench.analysis.frame_columns import FRAMES
from bench.capsules import packing
from bench.errors import BadInput
from bench.record import store

NOTEBOOK = ROOT / "examples" / "read-a-session.ipynb"
FIRST, SECOND = "20260105-100000-inference-lab-0001", "20260206-100000-inference-lab-0002"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with two sessions."""
    a_session_on_disk(tmp_path / "results", FIRST)
    a_session_on_disk(tmp_path / "results", SECOND)
    return tmp_path / "results"


def test_a_session_is_found_by_the_names_that_commands_take(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out.parent)
    assert set(bench.load().runs["session"]) == {SECOND}
    assert set(bench.load("20260105").runs["session"]) == {FIRST}
    assert set(bench.load(out / FIRST, out="elsewhere").runs["session"]) == {FIRST}
    monkeypatch.chdir(out)
    assert set(bench.load(FIRST, out=out).runs["session"]) == {FIRST}
    with pytest.raises(BadInput, match="There is no session 2027"):
        bench.load("2027", out=out)


def test_frames_are_those_of_pandas_with_the_values_of_the_record(out: Path) -> None:
    frames = bench.load(FIRST, out)
    runs = store.load_runs(out / FIRST, store.load_session(out / FIRST))
    assert list(frames.samples["value"].dropna()) == [
        sample.value for run in runs for sample in run.samples if sample.value is not None
    ]
    assert frames.usage["cpu_seconds"].sum() == pytest.approx(
        sum(row.cpu_seconds or 0 for run in runs for row in run.usage)
    )
    assert (len(frames.runs), len(frames.facts), len(frames.pairs)) == (4, 6, 2)
    assert str(frames.samples["metric"].dtype) == "category"
    assert frames.samples is frames.samples
    with pytest.raises(BadInput, match=r"There is no frame sample\. Choose from: runs, samples"):
        frames.arrow("sample")


def test_a_capsule_is_read_as_the_session_that_it_holds(out: Path, tmp_path: Path) -> None:
    capsule = packing.pack(out / FIRST, tmp_path).path
    packed, recorded = bench.load(capsule), bench.load(FIRST, out)
    for name in FRAMES:
        assert packed.arrow(name).equals(recorded.arrow(name)), name


def test_frames_need_no_ray_and_importing_bench_imports_nothing_heavy(out: Path) -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "import bench\n"
        "print([name for name in ('pandas', 'pyarrow', 'numpy', 'bench.frames') if name in sys.modules])\n"
        f"frames = bench.load({FIRST!r}, {str(out)!r})\n"
        "print(len(frames.samples), len(frames.usage), len(frames.pairs))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    imported, lengths = done.stdout.splitlines()
    assert imported == "[]"
    assert all(int(length) for length in lengths.split())


def test_the_command_writes_a_parquet_file_for_each_frame(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    typed: Typed = typist(capsys, monkeypatch, out.parent)
    code, printed, err = typed("report", FIRST, "--format", "parquet", "--output", "frames/of-one")
    assert (code, printed) == (0, "")
    assert "runs.parquet, samples.parquet, usage.parquet, pairs.parquet, facts.parquet" in err
    frames = bench.load(FIRST, out)
    for name in FRAMES:
        written = parquet.read_table(f"frames/of-one/{name}.parquet")
        assert written.equals(frames.arrow(name)), name
        assert {field.name: field.metadata[b"unit"] for field in written.schema} == {
            field.name: field.metadata[b"unit"] for field in frames.arrow(name).schema
        }


def test_parquet_is_refused_without_a_folder_to_write_to(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed: Typed = typist(capsys, monkeypatch, out.parent)
    code, _, err = typed("report", FIRST, "--format", "parquet")
    assert (code, "--format parquet writes a file for each data frame. Name their folder with --output." in err) == (
        2,
        True,
    )
    Path("taken").write_text("")
    assert typed("report", FIRST, "--format", "parquet", "-o", "taken")[0] == 10


def test_every_cell_of_the_notebook_runs_and_its_numbers_are_those_of_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert {json.dumps(cell.get("outputs", [])) for cell in notebook["cells"]} == {"[]"}
    monkeypatch.chdir(NOTEBOOK.parent)
    names: dict[str, Any] = {}
    for source in sources:
        exec(compile(source, NOTEBOOK.name, "exec"), names)  # noqa: S102, the file is ours
    session = names["session"]
    report = analysis.build(session._session, session._runs)
    compared = {
        cell.cell: cell.headline.comparison
        for cell in report.cells
        if cell.headline is not None and cell.headline.comparison is not None
    }
    assert dict(zip(names["ratios"].index.get_level_values("cell"), names["ratios"]["count"], strict=True)) == {
        cell: comparison.pairs for cell, comparison in compared.items()
    }
    for (cell, _), row in names["ratios"].iterrows():
        assert row["min"] <= compared[cell].ratio.value <= row["max"]
    assert (names["medians"] > 0).all(axis=None)
    assert (names["node_means"]["cpus"] > 0).all()
    assert names["units"]["cpu_seconds"] == "s"


def test_the_example_of_the_documentation_runs(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out.parent)
    (code,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/frames.md").read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(compile(code, "docs/frames.md", "exec"), names)  # noqa: S102, the page is ours
    assert len(names["session"].pairs) == 2
