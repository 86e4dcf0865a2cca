"""Analysis and reports find metrics by what they mean: they spell the name of none, nor that of an experiment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import analysis, experiments, reports
from bench.metrics import conflict, count, meaning, seconds, size
from bench.model import Metric, NodeUsage, from_json, to_json

MADE_HERE = {
    "size",
    "count",
    "rate",
    "ratio",
    "seconds",
    "amount",
    "Metric",
}  # what a node used: declared where it is read
COLUMNS = set(NodeUsage.__dataclass_fields__)
WORDS = {"network", "efficiency", "_low", "_high"}  # of tables and formats: neither an experiment nor a metric


def declared_names() -> set[str]:
    return {metric.name for name in experiments.ALL_NAMES for metric in experiments.load(name).metrics}


def is_spelled(text: str, names: set[str]) -> bool:
    """Whether it is one of `names`, or how some of them begin or end."""
    is_pattern = text.endswith("_per_") or (len(text) > 4 and (text.endswith("_") or text.startswith("_")))
    return text in names or (is_pattern and any(name.startswith(text) or name.endswith(text) for name in names))


def constants(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string of a module, without docstrings and the names of what it declares itself."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            skipped.add(node.body[0].value)  # type: ignore[attr-defined]  # a docstring is an expression
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MADE_HERE:
            skipped |= {part for name in node.args[:1] for part in ast.walk(name)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.lineno, node.value


def spelled(package: Path, names: set[str]) -> list[str]:
    return [
        f"{path.name}:{line}: {text}"
        for path in sorted(package.rglob("*.py"))
        for line, text in constants(ast.parse(path.read_text()))
        if is_spelled(text, names)
    ]


@pytest.mark.parametrize("package", [analysis, reports])
def test_no_metric_and_no_experiment_is_spelled(package: object) -> None:
    names = (declared_names() | set(experiments.ALL_NAMES)) - COLUMNS
    found = spelled(Path(str(package.__file__)).parent, names)
    assert [each for each in found if each.rpartition(": ")[2] not in WORDS] == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "source", ['x == "busy_seconds"', 'x.startswith("payload_bytes_per_")', 'x.endswith("_accuracy")']
)
def test_a_name_that_is_spelled_is_found(source: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(f'"""Says busy_seconds."""\n{source}\nseconds("busy_seconds")\n')
    assert len(spelled(tmp_path, declared_names())) == 1


@pytest.mark.parametrize("name", experiments.ALL_NAMES)
def test_the_metrics_of_every_experiment_go_together(name: str) -> None:
    assert conflict(experiments.load(name).metrics) == ""


def test_a_meaning_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^took_seconds must mean one of end to end, .*, got 'whole'$"):
        seconds("took_seconds", means="whole")  # type: ignore[arg-type]


def test_a_meaning_whose_unit_does_not_fit_is_refused_in_records_too() -> None:
    with pytest.raises(ValueError, match=r"payload_bytes means payload: its unit must match B/.+, got 'B'"):
        size("payload_bytes", "B", means="payload")
    written = to_json(size("payload_bytes", "B/input", means="payload"))
    assert from_json(written, Metric).means == "payload"
    with pytest.raises(ValueError, match="its unit must match"):
        from_json(written.replace(b"B/input", b"B"), Metric)


def test_one_metric_of_an_experiment_may_have_a_meaning_but_where_it_is_shared() -> None:
    one, other = (seconds(name, means="end to end") for name in ("one_seconds", "other_seconds"))
    assert conflict((one, other)) == "two metrics mean end to end, and one may: one_seconds, other_seconds"
    assert conflict((size("one", "%", means="accuracy"), size("other", "%", means="accuracy"))) == ""


def test_names_are_unique_and_a_load_is_a_metric() -> None:
    assert conflict((seconds("one"), seconds("one"))) == "two metrics have the name one"
    assert conflict((seconds("one", load="offered"),)) == "one has the load offered, which is no metric"


def test_a_headline_says_which_direction_is_better() -> None:
    chosen = size("chunk_bytes", "B", better=None)
    assert conflict((chosen,)) == "the headline, chunk_bytes, must say which direction is better"
    assert conflict((seconds("took_seconds"), chosen)) == ""
    assert chosen.direction == ""


def test_a_meaning_is_found_among_metrics() -> None:
    metrics = (seconds("one_seconds"), count("two", "samples", means="samples to target"))
    assert meaning("samples to target", metrics) == metrics[1]
    assert meaning("end to end", metrics) is None
