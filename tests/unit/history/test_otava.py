"""Tables that Apache Otava reads: a row a session, nothing twice, and other columns are refused by name."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from made_up_sessions import a_session_on_disk

from bench.errors import BadInput
from bench.history import otava
from bench.history.metric_history import Number
from bench.model import Metric

NUMBERS = [
    Number(
        session="s1",
        created="2026-01-05T10:00:00+00:00",
        experiment="inference",
        cell="c01",
        params='{"batch":10}',
        metric=Metric(name=metric, unit="", better=better, kind="rate"),
        topology=topology,
        value=value,
        low=None,
        high=None,
        level=None,
        n=1,
        verdict="",
    )
    for topology, metric, better, value in (
        ("single", "throughput_inputs_per_second", "higher", 15201.5),
        ("single", "startup_seconds", "lower", 1.25),
        ("multi/single", "throughput_inputs_per_second", "higher", 0.97),
    )
]
ABOUT = {"time": "2026-01-05T10:00:00+00:00", "session": "s1", "revision": "3121e6e4f0ab"}
GOLDEN = (
    "time,session,revision,params,throughput_inputs_per_second,startup_seconds\n"
    '2026-01-05T10:00:00+00:00,s1,3121e6e4f0ab,"{""batch"":10}",15201.5,1.25\n'
)
NAME = "inference-86d5d13f-single"


def a_row(**changes: str) -> dict[str, str]:
    rows, _ = otava.of_session(NUMBERS, ABOUT)
    return next(iter(rows.values())) | changes


def test_a_session_is_a_row_in_the_table_of_each_topology_with_time_and_attributes_first() -> None:
    rows, better = otava.of_session(NUMBERS, ABOUT)
    assert list(rows) == [NAME]
    assert otava.with_row("", rows[NAME], NAME) == GOLDEN
    assert otava.described("t.csv", GOLDEN, better[NAME]) == {
        "type": "csv",
        "file": "t.csv",
        "time_column": "time",
        "attributes": ["session", "revision", "params"],
        "metrics": {
            "throughput_inputs_per_second": {"column": "throughput_inputs_per_second", "direction": 1},
            "startup_seconds": {"column": "startup_seconds", "direction": -1},
        },
    }


def test_rows_stand_in_the_order_of_time_and_a_session_has_one() -> None:
    table = otava.with_row(GOLDEN, a_row(session="s0", time="2026-01-04T10:00:00+00:00"), NAME)
    table = otava.with_row(table, a_row(startup_seconds="2.5"), NAME)
    lines = list(csv.DictReader(table.splitlines()))
    assert [(line["session"], line["startup_seconds"]) for line in lines] == [("s0", "1.25"), ("s1", "2.5")]


def test_a_metric_that_a_session_lacks_is_empty_there_and_otava_is_not_told_of_it() -> None:
    row = a_row(session="s2")
    del row["startup_seconds"]
    table = otava.with_row(GOLDEN, row, NAME)
    assert table.splitlines()[-1].endswith(",15201.5,")
    better = {"throughput_inputs_per_second": "higher", "startup_seconds": "lower"}
    assert list(otava.described("t.csv", table, better)["metrics"]) == ["throughput_inputs_per_second"]  # type: ignore[call-overload]


def test_a_metric_that_a_table_has_no_column_for_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="no column first_result_seconds"):
        otava.with_row(GOLDEN, a_row(first_result_seconds="1"), NAME)


def test_a_session_that_is_added_twice_leaves_the_tables_as_they_were(tmp_path: Path) -> None:
    first = a_session_on_disk(tmp_path / "results", cells=1, blocks=6)
    tables = otava.add(first, tmp_path / "tables")
    before = {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    otava.add(first, tmp_path / "tables")
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    tests = json.loads(before[otava.CONFIG])["tests"]
    assert {test["file"] for test in tests.values()} == {path.name for path in tables}
    assert {name.rpartition("-")[2] for name in tests} == {"single", "multi"}
