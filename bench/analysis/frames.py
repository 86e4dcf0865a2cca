"""Turns a session and its runs into Arrow tables: runs, samples, usage, headline pairs and facts.

`bench/analysis/frame_columns.py` declares their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.analysis.comparison import attempts_that_count, log_ratios
from bench.analysis.frame_columns import FRAMES, OF_RUN, Column, Type
from bench.analysis.report import Report
from bench.analysis.table import TableColumns
from bench.columns import Columns, Layout
from bench.model import SAMPLES, USAGE, Facts, NodeFacts, Run, Session

if TYPE_CHECKING:
    from bench.analysis.table import Numbers, Positions

Cells = Mapping[str, object]
"""The values of a row by column; a missing one is left out, or None."""


def build(name: str, session: Session, runs: Sequence[Run], report: Callable[[], Report]) -> Any:
    """Return the Arrow table `name` of a session. `report` is called for the pairs only."""
    arrays: Mapping[str, Callable[[], Mapping[str, Any]]] = {
        "runs": lambda: _columns_of(name, list(_runs(runs))),
        "samples": lambda: _samples(session, runs),
        "usage": lambda: _usage(runs),
        "pairs": lambda: _columns_of(name, list(_pairs(report()))),
        "facts": lambda: _columns_of(name, list(_facts(runs))),
    }
    return _table(name, arrays[name]())


def _table(name: str, arrays: Mapping[str, Any]) -> Any:
    """The arrays as a table, each with its unit and meaning in the metadata of its field."""
    import pyarrow as pa

    fields = []
    for column, array in arrays.items():
        about = _declared(name, column)
        fields.append(pa.field(column, array.type, metadata={"unit": about.unit, "description": about.help}))
    return pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields))


def _declared(name: str, column: str) -> Column:
    return next(each for each in FRAMES[name].columns if column in _names(each, [column]))


def _names(column: Column, present: Sequence[str]) -> list[str]:
    """The columns of a table that `column` declares, given the names that its rows have."""
    if not column.name.endswith(".*"):
        return [column.name]
    return [name for name in present if name.startswith(column.name[:-1])]


def _columns_of(name: str, rows: Sequence[Cells]) -> dict[str, Any]:
    present = sorted({column for row in rows for column in row})
    return {
        column: _array(about.type, [row.get(column) for row in rows])
        for about in FRAMES[name].columns
        for column in _names(about, present)
    }


def _array(type_: Type, values: Sequence[Any]) -> Any:
    """The values as an Arrow array."""
    import numpy as np
    import pyarrow as pa

    if type_ == "category":
        return _category(values, np.arange(len(values)))
    if type_ == "value":
        type_ = _common_type(values)
        if type_ == "text":
            values = [None if value is None else str(value) for value in values]
    arrow = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    return pa.array(values, arrow[type_])


def _common_type(values: Sequence[object]) -> Type:
    """The type that holds all of these values of a parameter."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "integer"
    return "number" if kinds and kinds <= {int, float} else "text"


def _category(values: Sequence[str | None], at: Positions) -> Any:
    """The text at each of these positions in `values`; None is a missing text."""
    import numpy as np
    import pyarrow as pa

    texts = list(dict.fromkeys(value for value in values if value is not None))
    code_of = {text: code for code, text in enumerate(texts)}
    codes = np.array([code_of.get(value, -1) if value is not None else -1 for value in values], dtype=np.int32)[at]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(texts, pa.string()))


def _numbers(type_: Type, values: Numbers) -> Any:
    """The numbers as an Arrow array; NaN is a missing one."""
    import numpy as np
    import pyarrow as pa

    is_missing = np.isnan(values)
    if type_ == "number":
        return pa.array(values, mask=is_missing)
    kind = np.bool_ if type_ == "boolean" else np.int64
    return pa.array(np.where(is_missing, 0, values).astype(kind), mask=is_missing)


def _of_rows(name: str, runs: Sequence[Run], rows: TableColumns[Any], layout: Layout[Any]) -> dict[str, Any]:
    """The columns of the frame `name`, from the samples or the usage of `runs`."""
    return {column.name: _of_column(column, runs, rows, layout) for column in FRAMES[name].columns}


def _of_column(column: Column, runs: Sequence[Run], rows: TableColumns[Any], layout: Layout[Any]) -> Any:
    import numpy as np

    if column in OF_RUN:
        of_runs = [_of_run(run)[column.name] for run in runs]
        if column.type == "category":
            return _category(of_runs, rows.run)
        return _numbers(column.type, np.array(of_runs, dtype=float)[rows.run])
    if column.name in layout.texts:
        return _category(*rows.texts(column.name))
    return _numbers(column.type, rows.read(column.name))


def _of_run(run: Run) -> dict[str, Any]:
    spec = run.spec
    return {
        "session": spec.session,
        "run": spec.folder,
        "experiment": spec.experiment,
        "cell": spec.cell,
        "topology": spec.topology.name,
        "block": spec.block,
    }


def _samples(session: Session, runs: Sequence[Run]) -> dict[str, Any]:
    """The samples, with the declared unit of their metric where the record leaves it out."""
    by_run = [Columns.of(SAMPLES, run.samples) for run in runs]
    rows = TableColumns(by_run, SAMPLES, *SAMPLES.texts)
    declared = {(name, metric.name): metric.unit for name, metrics in session.metrics.items() for metric in metrics}
    experiments = [run.spec.experiment for run, columns in zip(runs, by_run, strict=True) for _ in columns.names]
    (metrics, _), (recorded, at) = rows.texts("metric"), rows.texts("unit")
    units = [
        unit or declared.get((experiment, str(metric)), "")
        for experiment, metric, unit in zip(experiments, metrics, recorded, strict=True)
    ]
    return {**_of_rows("samples", runs, rows, SAMPLES), "unit": _category(units, at)}


def _usage(runs: Sequence[Run]) -> dict[str, Any]:
    by_run = [Columns.of(USAGE, run.usage) for run in runs]
    return _of_rows("usage", runs, TableColumns(by_run, USAGE, *USAGE.texts), USAGE)


def _runs(runs: Sequence[Run]) -> Iterator[Cells]:
    that_count = {run.spec.folder for run in attempts_that_count(runs).values() if run.status == "ok"}
    for run in runs:
        spec, topology = run.spec, asdict(run.spec.topology)
        yield {
            **_of_run(run),
            "title": spec.cell_title,
            "attempt": spec.attempt,
            "status": run.status,
            "counts": spec.folder in that_count,
            "reasons": "; ".join(run.reasons),
            **{name: value for name, value in topology.items() if name not in ("name", "shares")},
            "seed": spec.seed,
            "warmups": spec.warmups,
            "turns": spec.samples,
            "sample_seconds": spec.sample_seconds,
            "faults": spec.faults,
            "profiler": spec.profile_with,
            "seconds": run.seconds,
            "cluster_seconds": run.cluster_seconds,
            "quiet": run.quiet_check.is_quiet if run.quiet_check else None,
            "waited_seconds": run.quiet_check.waited_seconds if run.quiet_check else None,
            "reconciled": run.reconciled,
            "alerts": "; ".join(run.alerts),
            **_entries("param", spec.params),
        }


def _entries(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in values.items()}


def _pairs(report: Report) -> Iterator[Cells]:
    for cell in report.cells:
        row = cell.headline
        if row is None or row.comparison is None:
            continue
        names = row.comparison.baseline, row.comparison.candidate
        one, other = (row.sides[name] for name in names)
        logs = log_ratios(one.values, other.values)
        for block in sorted({*one.values, *one.missing, *other.values, *other.missing}):
            yield {
                "session": report.session,
                "experiment": cell.experiment,
                "cell": cell.cell,
                "title": cell.title,
                "metric": row.metric.name,
                "unit": row.metric.unit,
                "better": row.metric.better,
                "arm": row.arm,
                "block": block,
                "baseline": names[0],
                "candidate": names[1],
                "baseline_value": one.values.get(block),
                "candidate_value": other.values.get(block),
                "ratio": other.values[block] / one.values[block] if block in logs else None,
                "missing": row.comparison.missing.get(block),
            }


def _facts(runs: Sequence[Run]) -> Iterator[Cells]:
    for run in runs:
        if run.facts:
            for node in run.facts.nodes:
                yield {**_of_run(run), **_of_cluster(run.facts, node.node), **_of_node(node)}


def _of_cluster(facts: Facts, node: str) -> Cells:
    return {
        "cluster": facts.cluster,
        "link": facts.link,
        "same_host": facts.same_host,
        "profiler": facts.profiler,
        "clock_step_seconds": facts.clock.step_seconds if facts.clock else None,
        "empty_sample_seconds": facts.clock.empty_sample_seconds if facts.clock else None,
        "clock_offset_seconds": facts.clock_offsets_seconds.get(node),
        "copy_bytes_per_second": facts.copy_bytes_per_second,
        **_entries("ray_config", facts.ray_config),
        **_entries("data", facts.data),
    }


def _of_node(node: NodeFacts) -> Cells:
    declared = {column.name for column in FRAMES["facts"].columns}
    values = {name: getattr(node, name) for name in NodeFacts.__dataclass_fields__}
    maps = {name: value for name, value in values.items() if f"{name}.*" in declared}
    return {
        **{name: value for name, value in values.items() if name in declared},
        "physical_cores": len(node.cores) or None,
        **{key: value for name, entries in maps.items() for key, value in _entries(name, entries).items()},
    }
