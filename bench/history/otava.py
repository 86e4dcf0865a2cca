"""Writes the history of a session's metrics as Apache Otava (formerly Hunter) reads it: CSV tables, and a file that describes them.

Otava looks for change points in a CSV file with one row per run, and takes all rows for the same test. So each combination of
experiment, params and topology gets a table of its own, and `otava.yaml` (written as JSON, which is valid YAML) lists their columns.
Otava refuses a column with an empty field: only metrics that every row has are listed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.errors import BadInput
from bench.history import metric_history
from bench.history.metric_history import Number
from bench.model import Better
from bench.record import store

CONFIG = "otava.yaml"
ABOUT = ("time", "session", "revision", "params")
# Otava knows two directions only: a metric without one gets 1.
DIRECTIONS: dict[Better | None, int] = {"higher": 1, "lower": -1, None: 1}


def add(session_folder: Path, into: Path) -> list[Path]:
    """Add a session's row to the table of each of its series in the folder `into`; return the tables' paths.

    A row that a table has of this session is replaced. Raises BadInput if a table lacks a metric's column.
    """
    from bench import analysis

    session = store.load_session(session_folder)
    about = {"time": session.created, "session": session.id, "revision": session.revision}
    report = analysis.build(session, store.load_runs(session_folder, session))
    rows, better = of_session(metric_history.numbers(report), about)
    into.mkdir(parents=True, exist_ok=True)
    tables = {}
    for name, row in rows.items():
        path = into / f"{name}.csv"
        tables[path] = with_row(path.read_text() if path.exists() else "", row, str(path))
    for path, table in tables.items():
        store.write_whole(path, table.encode())
    known = json.loads((into / CONFIG).read_text())["tests"] if (into / CONFIG).exists() else {}
    tests = {path.stem: described(path.name, table, better[path.stem]) for path, table in tables.items()}
    store.write_whole(into / CONFIG, (json.dumps({"tests": known | tests}, indent=2) + "\n").encode())
    return list(tables)


def of_session(
    numbers: Iterable[Number], about: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, Better | None]]]:
    """Return the row of each series, by its name, and the direction of each of its metrics. Ratios of topologies are left out."""
    rows: dict[str, dict[str, str]] = {}
    better: dict[str, dict[str, Better | None]] = {}
    for number in numbers:
        if "/" in number.topology:
            continue
        digest = hashlib.sha256(number.params.encode()).hexdigest()[:8]
        name = f"{number.experiment}-{digest}-{number.topology}"
        rows.setdefault(name, {**about, "params": number.params})[number.metric.name] = repr(number.value)
        better.setdefault(name, {})[number.metric.name] = number.metric.better
    return rows, better


def with_row(table: str, row: Mapping[str, str], name: str) -> str:
    """Add `row` to the CSV `table`, which may be empty, in place of the row of the same session. `name` is for the error message."""
    reader = csv.DictReader(io.StringIO(table))
    columns = list(reader.fieldnames or row)
    if unknown := row.keys() - set(columns):
        raise BadInput(
            f"{name} has no column {', '.join(sorted(unknown))}, which this session has.",
            "Move the file away to begin a new table.",
        )
    others = [line for line in reader if line["session"] != row["session"]]
    page = io.StringIO()
    writer = csv.DictWriter(page, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted([*others, row], key=lambda line: line["time"]))
    return page.getvalue()


def described(file: str, table: str, better: Mapping[str, Better | None]) -> dict[str, object]:
    """Return Otava's description of a table: its file, its columns, the direction of each metric."""
    lines = list(csv.DictReader(io.StringIO(table)))
    whole = [name for name in better if all(line.get(name) for line in lines)]
    return {
        "type": "csv",
        "file": file,
        "time_column": "time",
        "attributes": [name for name in ABOUT if name != "time"],
        "metrics": {name: {"column": name, "direction": DIRECTIONS[better[name]]} for name in whole},
    }
