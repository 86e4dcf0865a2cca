"""The history of a metric as Apache Otava (once Hunter) reads it: a table a series, a row a session, a file that says what is what.

Otava looks for change points in a CSV file that has one row a run, and takes every row for the same test. So each experiment,
params and topology has a file of its own, and `otava.yaml` (JSON, which is YAML too) names their columns. Otava refuses a column with
an empty field: there only metrics are named that every row has.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.errors import BadInput
from bench.history import metric_history
from bench.record import store

CONFIG = "otava.yaml"
ABOUT = ("time", "session", "revision", "params")
DIRECTIONS = {
    "higher": 1,
    "lower": -1,
}  # Otava's words for which way is better; 1 where neither is, as it knows no third


def add(session_folder: Path, into: Path) -> list[Path]:
    """Add a session's row to the table of each of its series in `into`, in place of one that it has there; the tables.

    Raises BadInput where a table has other columns: its metrics were others then.
    """
    session = store.load_session(session_folder)
    about = {"time": session.created, "session": session.id, "revision": session.revision}
    rows, better = of_session(metric_history.numbers(session_folder), about)
    into.mkdir(parents=True, exist_ok=True)
    texts = {}
    for name, row in rows.items():
        path = into / f"{name}.csv"
        texts[path] = with_row(path.read_text() if path.exists() else "", row, str(path))
    for path, text in texts.items():
        store.write_whole(path, text.encode())
    known = json.loads((into / CONFIG).read_text())["tests"] if (into / CONFIG).exists() else {}
    tests = {path.stem: described(path.name, text, better[path.stem]) for path, text in texts.items()}
    store.write_whole(into / CONFIG, (json.dumps({"tests": known | tests}, indent=2) + "\n").encode())
    return list(texts)


def of_session(
    numbers: Iterator[dict[str, object]], about: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """By name of series: its row, and which way each of its metrics is better. Ratios of topologies are left out."""
    rows: dict[str, dict[str, str]] = {}
    better: dict[str, dict[str, str]] = {}
    for number in numbers:
        topology, params, metric = (str(number[name]) for name in ("topology", "params", "metric"))
        if "/" in topology:
            continue
        name = f"{number['experiment']}-{hashlib.sha256(params.encode()).hexdigest()[:8]}-{topology}"
        rows.setdefault(name, {**about, "params": params})[metric] = repr(number["value"])
        better.setdefault(name, {})[metric] = str(number["better"])
    return rows, better


def with_row(table: str, row: Mapping[str, str], name: str) -> str:
    """`table`, which may be empty, with `row` in place of that of the same session, or at its end."""
    reader = csv.DictReader(io.StringIO(table))
    columns = list(reader.fieldnames or row)
    if unknown := row.keys() - set(columns):
        raise BadInput(
            f"{name} has no column {', '.join(sorted(unknown))}, which this session has.",
            "Move the file away: the table begins anew.",
        )
    others = [line for line in reader if line["session"] != row["session"]]
    page = io.StringIO()
    writer = csv.DictWriter(page, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted([*others, row], key=lambda line: line["time"]))
    return page.getvalue()


def described(file: str, table: str, better: Mapping[str, str]) -> dict[str, object]:
    """What Otava must know of a table: its file, its columns, which way each metric is better."""
    lines = list(csv.DictReader(io.StringIO(table)))
    whole = [name for name in better if all(line.get(name) for line in lines)]
    return {
        "type": "csv",
        "file": file,
        "time_column": "time",
        "attributes": [name for name in ABOUT if name != "time"],
        "metrics": {name: {"column": name, "direction": DIRECTIONS.get(better[name], 1)} for name in whole},
    }
