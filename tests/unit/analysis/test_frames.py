"""The tables of a session have every value of its runs, each column with its unit."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
from builders import a_sample
from made_up import made_up

from bench import analysis
from bench.analysis.frame_columns import FRAMES, OF_RUN
from bench.analysis.frames import build
from bench.model import NodeFacts, NodeUsage, Run, Sample, Session

OF_ROWS = {column.name for column in OF_RUN}


def tables(session: Session, runs: list[Run]):
    return {name: build(name, session, runs, lambda: analysis.build(session, runs)) for name in FRAMES}


@pytest.fixture(scope="module")
def made():
    session, runs = made_up(cells=2, blocks=2)
    return session, runs, tables(session, runs)


def without_nan(value):
    return None if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize(("name", "kind"), [("samples", Sample), ("usage", NodeUsage)])
def test_every_row_of_every_run_is_there_with_all_its_fields(made, name: str, kind: type) -> None:
    _, runs, found = made
    named = [field.name for field in fields(kind) if field.name not in ("interval", "unit")]
    recorded = [
        (run.spec.folder, run.spec.block, row.interval.begin, row.interval.end, *(getattr(row, each) for each in named))
        for run in runs
        for row in getattr(run, name)
    ]
    columns = [found[name].column(each).to_pylist() for each in ("run", "block", "begin", "end", *named)]
    assert list(zip(*columns, strict=True)) == recorded
    assert len(recorded) > 100


def test_every_column_is_declared_and_has_its_unit_and_meaning_in_its_field(made) -> None:
    for name, table in made[2].items():
        fixed = [column for column in FRAMES[name].columns if not column.name.endswith(".*")]
        assert table.column_names[: len(fixed)] == [column.name for column in fixed]
        for column in fixed:
            about = table.schema.field(column.name).metadata
            assert (about[b"unit"].decode(), about[b"description"].decode()) == (column.unit, column.help)
        for field in table.schema:
            assert field.metadata[b"description"], field.name


def test_names_end_in_the_unit_that_a_column_declares() -> None:
    units = {"_seconds": "s", "_bytes": "B", "_bytes_per_second": "B/s", "_packets": "packets", "_mhz": "MHz"}
    for frame in FRAMES.values():
        for column in frame.columns:
            suffix = max((each for each in units if column.name.endswith(each)), key=len, default=None)
            assert suffix is None or column.unit == units[suffix], column.name


def test_a_value_that_is_missing_is_null_and_has_its_reason(made) -> None:
    rows = [row for row in made[2]["samples"].to_pylist() if row["metric"] == "latency_p99_seconds"]
    assert rows
    assert {(row["value"], row["reason"]) for row in rows} == {(None, "p99 needs 1,000 calls")}
    assert {row["reason"] for row in made[2]["samples"].to_pylist() if row["value"] is not None} == {None}


def test_a_sample_has_the_unit_of_its_metric_unless_it_has_one_of_its_own() -> None:
    session, runs = made_up(cells=1, blocks=1)
    other = a_sample(3.0, metric="first_result_seconds", unit="ms")
    rows = build("samples", session, [replace(runs[0], samples=(*runs[0].samples, other))], list).to_pylist()
    units = {(row["metric"], row["unit"]) for row in rows}
    assert {
        ("throughput_inputs_per_second", "inputs/s"),
        ("startup_seconds", "s"),
        ("first_result_seconds", "ms"),
    } <= units
    assert "" not in {unit for _, unit in units}


def test_pairs_are_those_of_the_report(made) -> None:
    session, runs, found = made
    rows = found["pairs"].to_pylist()
    for cell in analysis.build(session, runs).cells:
        row = cell.headline
        assert row is not None
        pairs = {each["block"]: each for each in rows if each["cell"] == cell.cell}
        assert {block: each["baseline_value"] for block, each in pairs.items()} == dict(row.sides["single"].values)
        assert {block: each["candidate_value"] for block, each in pairs.items()} == dict(row.sides["multi"].values)
        assert [each["ratio"] for each in pairs.values()] == [
            each["candidate_value"] / each["baseline_value"] for each in pairs.values()
        ]
        assert row.comparison is not None
        assert {each["ratio"] for each in pairs.values()} != {None}
        assert len(pairs) == row.comparison.pairs


def test_a_block_without_a_pair_has_the_reason() -> None:
    session, runs = made_up(cells=1, blocks=2)
    lost = next(run for run in runs if run.spec.block == 2 and run.spec.topology.name == "multi")
    broken = [replace(run, status="failed", reasons=("a node ended",)) if run is lost else run for run in runs]
    first, second = tables(session, broken)["pairs"].to_pylist()
    assert (first["missing"], second["ratio"], second["candidate_value"]) == (None, None, None)
    assert second["baseline_value"] is not None
    assert second["missing"] == "multi: failed: a node ended"


def test_one_topology_alone_gives_no_pairs() -> None:
    session, runs = made_up(cells=1, blocks=2)
    alone = [run for run in runs if run.spec.topology.name == "single"]
    session = replace(session, specs=tuple(run.spec for run in alone))
    found = tables(session, alone)
    assert found["pairs"].num_rows == 0
    assert found["samples"].num_rows == sum(len(run.samples) for run in alone)


def test_of_the_attempts_at_a_run_the_last_that_is_ok_counts() -> None:
    session, runs = made_up(cells=1, blocks=1)
    failed = replace(runs[0], status="failed", reasons=("the driver ended", "no result"))
    again = replace(runs[0], spec=replace(runs[0].spec, attempt=2))
    rows = build("runs", session, [failed, again, runs[1]], list).to_pylist()
    assert [(row["attempt"], row["status"], row["counts"]) for row in rows] == [
        (1, "failed", False),
        (2, "ok", True),
        (1, "ok", True),
    ]
    assert [row["reasons"] for row in rows] == ["the driver ended; no result", "", ""]


def test_each_parameter_is_a_column_of_its_own_type() -> None:
    session, runs = made_up(cells=2, blocks=1)
    params = ({"batch": 1, "rate": 0.5, "where": "head", "late": True}, {"batch": 10, "rate": 2, "where": 3})
    varied = [replace(run, spec=replace(run.spec, params=params[int(run.spec.cell[1:]) - 1])) for run in runs]
    table = build("runs", session, varied, list)
    types = {name: str(table.schema.field(name).type) for name in table.column_names if name.startswith("param.")}
    assert types == {"param.batch": "int64", "param.late": "bool", "param.rate": "double", "param.where": "string"}
    assert {(row["cell"], row["param.where"], row["param.late"]) for row in table.to_pylist()} == {
        ("c01", "head", True),
        ("c02", "3", None),
    }


def test_facts_have_a_row_for_each_node_of_each_run_with_all_that_the_record_has(made) -> None:
    _, runs, found = made
    rows = found["facts"].to_pylist()
    assert [(row["run"], row["node"]) for row in rows] == [
        (run.spec.folder, node.node) for run in runs for node in run.facts.nodes
    ]
    assert {row["versions.ray"] for row in rows} == {"2.60.0"}
    assert {(row["threads.OMP_NUM_THREADS"], row["topology"]) for row in rows} == {("2", "single"), ("1", "multi")}
    assert {row["data.digits"] for row in rows} == {"feed"}
    names = {name.partition(".")[0] for name in (column.name for column in FRAMES["facts"].columns)}
    assert {field.name for field in fields(NodeFacts)} - names == {"cores"}


def test_a_session_without_a_finished_run_has_empty_tables_with_their_columns(made) -> None:
    session, _, full = made
    for name, table in tables(session, []).items():
        fixed = [column.name for column in FRAMES[name].columns if not column.name.endswith(".*")]
        assert table.column_names == fixed
        assert name == "pairs" or table.num_rows == 0
        kept = [table.schema.field(column).type for column in fixed]
        assert kept == [full[name].schema.field(column).type for column in fixed], name
