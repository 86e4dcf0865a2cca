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
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.errors import BadInput
from bench.history import metric_history
from bench.history.metric_history import Number
from bench.model import Better
from bench.record import store

CONFIG = "otava.yaml"
ABOUT = ("time", "session", "revision", "params")
# Otava's words for which way is better; 1 where neither is, as it knows no third.
DIRECTIONS: dict[Better | None, int] = {"higher": 1, "lower": -1, None: 1}


def add(session_folder: Path, into: Path) -> list[Path]:
    """Add a session's row to the table of each of its series in `into`, in place of one that it has there; the tables.

    Raises BadInput where a table has other columns: its metrics were others then.
    """
    from bench import analysis

    session = store.load_session(session_folder)
    about = {"time": session.created, "session": session.id, "revision": session.revision}
    report = analysis.build(session, store.load_runs(session_folder, session))
    rows, better = of_session(metric_history.numbers(report), about)
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
    numbers: Iterable[Number], about: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, Better | None]]]:
    """By name of series: its row, and which way each of its metrics is better. Ratios of topologies are left out."""
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


def described(file: str, table: str, better: Mapping[str, Better | None]) -> dict[str, object]:
    """What Otava must know of a table: its file, its columns, which way each metric is better."""
    lines = list(csv.DictReader(io.StringIO(table)))
    whole = [name for name in better if all(line.get(name) for line in lines)]
    return {
        "type": "csv",
        "file": file,
        "time_column": "time",
        "attributes": [name for name in ABOUT if name != "time"],
        "metrics": {name: {"column": name, "direction": DIRECTIONS[better[name]]} for name in whole},
    }
