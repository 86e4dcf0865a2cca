"""The text of a plan file as plain values, TOML or YAML, and the line on which each of them stands.

A plan comes from anywhere, so nothing in it makes an object: YAML has no tags, anchors and aliases here, and what is large
or deep is refused before it is read.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.errors import BadInput
from bench.files import open_plain

MOST_BYTES = 16 * 1024
MOST_LINES = 1000  # to find a line of TOML, a dozen of its beginnings are read
DEEPEST = 8
SUFFIXES = (".toml", ".yaml", ".yml")
Way = tuple[str, ...]
"""The keys that lead to a value."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """What a file says, and `line`: on which line (the first is 1) the value at the end of a way begins."""

    name: str
    values: Mapping[str, Any]
    line: Callable[[Way], int]

    def wrong(self, way: Way, what: str, way_out: str = "") -> BadInput:
        """The error that names the place."""
        return BadInput(f"{self.name}:{self.line(way)}: {' '.join(what.split())}", way_out)


def read(path: Path) -> Text:
    """The file at `path`. Raises BadInput, with the line, where it is not what a plan may be."""
    if path.suffix not in SUFFIXES:
        raise BadInput(f"{path}: a plan's name ends in {', '.join(SUFFIXES)}.")
    try:
        with open_plain(path) as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    if len(raw) > MOST_BYTES:
        raise BadInput(f"{path} has over {MOST_BYTES // 1024} KiB: that is no plan.")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: this is no UTF-8.", "Save it as UTF-8.") from None
    return parse(path.name, text)


def parse(name: str, text: str) -> Text:
    """`text` of the file `name`, whose ending says whether it is TOML or YAML. Raises BadInput."""
    if len(text) > MOST_BYTES or text.count("\n") > MOST_LINES:
        raise BadInput(f"{name} has over {MOST_BYTES // 1024} KiB or {MOST_LINES} lines: that is no plan.")
    return _toml(name, text) if name.endswith(".toml") else _yaml(name, text)


def _toml(name: str, text: str) -> Text:
    lines = text.split("\n")
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise BadInput(f"{name} is nested deeper than a plan is.") from None
    except ValueError as error:  # a number of thousands of digits is one too
        place = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        line = int(place[1]) if place else len(lines)
        written = lines[line - 1].strip()[:40]
        raise BadInput(f"{name}:{line}: {str(error).partition(' (at ')[0]}: {written}", "This must be TOML.") from None
    return Text(name=name, values=values, line=lambda way: _toml_line(text, way))


def _toml_line(text: str, way: Way) -> int:
    """tomllib tells no lines, but a file's beginning is TOML too: where the statement begins with which `way` is there."""
    lines = text.split("\n")
    ends = _ends(text)
    found = bisect_left(ends, x=True, key=lambda end: _has(tomllib.loads("\n".join(lines[:end])), way))
    return ends[found - 1] + 1 if 0 < found < len(ends) else 1


_TOKEN = re.compile(
    r""""{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*'|#[^\n]*|(?P<opens>[\[{])|(?P<closes>[\]}])|(?P<end>\n)""",
    re.DOTALL,
)


def _ends(text: str) -> list[int]:
    """By which line each statement of `text`, which is TOML, is whole: one reading of it, however long an array is."""
    depth, line, found = 0, 0, []
    for token in _TOKEN.finditer(text + "\n"):
        depth += (token.lastgroup == "opens") - (token.lastgroup == "closes")
        line += token[0].count("\n")
        if token.lastgroup == "end" and not depth:
            found.append(line)
    return found


def _has(values: Any, way: Way) -> bool:
    for key in way:
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[key]
    return True


def _yaml(name: str, text: str) -> Text:
    found: dict[Way, int] = {(): 1}
    try:
        _refuse_events(name, text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = {} if node is None else _value(name, node, (), found)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadInput(f"{name}:{mark.line + 1 if mark else 1}: {error.problem}.", "This must be YAML.") from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise BadInput(f"{name}:{line}: {error.reason}.", "This must be YAML.") from None
    if not isinstance(values, dict):
        raise BadInput(f"{name}:1: a plan is names and their values.", "Write profile: tiny, and so on.")
    return Text(name=name, values=values, line=lambda way: next(found[part] for part in _up(way) if part in found))


def _up(way: Way) -> Iterator[Way]:
    """`way`, and what leads to it, the nearest first."""
    return (way[:length] for length in range(len(way), -1, -1))


def _refuse_events(name: str, text: str) -> None:
    """What YAML can do and a plan need not, before anything is made of it: a bomb of aliases is a few lines long."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        place = f"{name}:{event.start_mark.line + 1 if event.start_mark else 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput(f"{place}: a plan has no anchors and aliases.", "Write the value out.")
        if tag := getattr(event, "tag", None):
            raise BadInput(f"{place}: a plan has no tags like {tag}.", "Write the value alone.")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise BadInput(f"{place}: this is nested deeper than a plan is.")


def _value(name: str, node: yaml.Node, way: Way, found: dict[Way, int]) -> Any:
    """What `node` says; the line of each key goes into `found`."""
    place = f"{name}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.SequenceNode):
        return [_value(name, each, way, {}) for each in node.value]
    if isinstance(node, yaml.ScalarNode):
        kind = node.tag.rpartition(":")[2]
        if kind not in ("str", "int", "float", "bool"):
            raise BadInput(
                f"{place}: {node.value or 'nothing'} is a {kind} here.", "Write it in quotes, or leave it out."
            )
        try:
            return yaml.SafeLoader("").construct_object(node)
        except ValueError as error:
            raise BadInput(f"{place}: {node.value[:40]} is no {kind}: {error}.") from None
    values: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
            raise BadInput(f"{name}:{line}: a name must be text.")
        if key.value in values:
            raise BadInput(
                f"{name}:{line}: {key.value} is written twice.", f"First on line {found[(*way, key.value)]}."
            )
        found[(*way, key.value)] = line
        values[key.value] = _value(name, value, (*way, key.value), found)
    return values
