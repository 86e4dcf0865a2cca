"""Reads a plan file, TOML or YAML, as plain values with their line numbers.

A plan comes from anywhere, so nothing in it makes an object: YAML has no tags, anchors and aliases here, and what is large
or deep is refused before it is read. Plain scalars of YAML are read by version 1.2, whose rules are JSON's: in 1.1 `yes` is a
boolean, `1:30` is 90 and `1e-4` is text. What the two versions read as different numbers (`010`) is refused.
"""

from __future__ import annotations

import codecs
import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml

from bench.errors import BadInput
from bench.model import Value
from bench.record.files import open_plain

MOST_BYTES = 16 * 1024
MOST_LINES = 1000  # to find a line of TOML, a dozen of its beginnings are read
DEEPEST = 8
SUFFIXES = (".toml", ".yaml", ".yml")
Language = Literal["TOML", "YAML"]
TABLES: dict[Language, str] = {"TOML": "table", "YAML": "mapping"}
"""What each language calls names with their values."""
KeyPath = tuple[str, ...]
"""The keys that lead to a value, the outermost first."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """What a file says, and `line`: on which line (the first is 1) the value at a key path begins."""

    name: str
    language: Language
    values: Mapping[str, Any]
    line: Callable[[KeyPath], int]

    @property
    def table(self) -> str:
        """What the file's language calls names with their values."""
        return TABLES[self.language]

    def wrong(self, keys: KeyPath, what: str, hint: str = "") -> BadInput:
        """The error that names the place."""
        return _wrong(self.name, self.line(keys), what, hint)


def _wrong(name: str, line: int, what: str, hint: str = "") -> BadInput:
    """An error in one line: control characters of the file (escape sequences, NUL) do not reach the terminal."""
    printable = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in " ".join(what.split())
    )
    return BadInput(f"{name}:{line}: {printable}", hint)


def read(path: Path) -> Text:
    """The file at `path`. Raises BadInput, with the line, where it is not what a plan may be."""
    if path.suffix not in SUFFIXES:
        raise BadInput(f"The name of a plan file must end in {', '.join(SUFFIXES)}, got {str(path)!r}.")
    try:
        with open_plain(path) as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    if len(raw) > MOST_BYTES:
        raise BadInput(f"{path} is larger than {MOST_BYTES // 1024} KiB, the limit of plan files.")
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in raw:
        line = raw.partition(b"\0")[0].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: this is UTF-16 or binary, and must be text in UTF-8.", "Save it as UTF-8.")
    try:
        text = raw.decode("utf-8-sig")  # editors of Windows write a byte order mark
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: this must be UTF-8.", "Save it as UTF-8.") from None
    return parse(path.name, text)


def parse(name: str, text: str) -> Text:
    """`text` of the file `name`, whose ending says whether it is TOML or YAML. Raises BadInput."""
    if len(text) > MOST_BYTES or text.count("\n") > MOST_LINES:
        raise BadInput(
            f"{name} is larger than {MOST_BYTES // 1024} KiB or {MOST_LINES} lines, the limits of plan files."
        )
    text = re.sub(
        r"\r+\n", "\n", text
    )  # Windows' ends of lines: else a beginning of the file, cut after \r, is no TOML
    return _toml(name, text) if name.endswith(".toml") else _yaml(name, text)


def _toml(name: str, text: str) -> Text:
    lines = text.split("\n")
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise BadInput(f"{name} is nested deeper than {DEEPEST} levels.") from None
    except ValueError as error:  # a number of thousands of digits is one too
        place = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        line = int(place[1]) if place else len(lines)
        written = lines[line - 1].strip()[:40]
        raise _wrong(name, line, f"{str(error).partition(' (at ')[0]}: {written}", "This must be TOML.") from None
    return Text(name=name, language="TOML", values=values, line=lambda keys: _toml_line(text, keys))


def _toml_line(text: str, keys: KeyPath) -> int:
    """tomllib tells no lines, but a file's beginning is TOML too: where the statement begins with which `keys` is there."""
    lines = text.split("\n")
    ends = _ends(text)
    statement = bisect_left(ends, x=True, key=lambda end: _has(tomllib.loads("\n".join(lines[:end])), keys))
    return ends[statement - 1] + 1 if 0 < statement < len(ends) else 1


_TOKEN = re.compile(
    r""""{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*'|#[^\n]*|(?P<opens>[\[{])|(?P<closes>[\]}])|(?P<end>\n)""",
    re.DOTALL,
)


def _ends(text: str) -> list[int]:
    """By which line each statement of `text`, which is TOML, is whole: one reading of it, however long an array is."""
    depth, line, ends = 0, 0, []
    for token in _TOKEN.finditer(text + "\n"):
        depth += (token.lastgroup == "opens") - (token.lastgroup == "closes")
        line += token[0].count("\n")
        if token.lastgroup == "end" and not depth:
            ends.append(line)
    return ends


def _has(values: Any, keys: KeyPath) -> bool:
    for key in keys:
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[key]
    return True


class _Loader(yaml.SafeLoader):
    """Plain scalars as the core schema of YAML 1.2 reads them, and the merge key of 1.1, to refuse it."""

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {}  # type: ignore[misc]  # its stubs call it an instance's


class Dumper(yaml.SafeDumper):
    """Quotes text that YAML 1.1 or 1.2 would read as something else."""


_CORE_SCHEMA = (  # https://yaml.org/spec/1.2.2/#103-core-schema
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", list("tTfF")),
    ("int", r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
)
for _kind, _pattern, _first in _CORE_SCHEMA:
    for _reader in (_Loader, Dumper):
        _reader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"^(?:{_pattern})$"), _first)


def _yaml(name: str, text: str) -> Text:
    lines: dict[KeyPath, int] = {(): 1}
    try:
        _refuse_events(name, text)
        node = yaml.compose(text, Loader=_Loader)
        values = {} if node is None else _value(name, node, (), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _wrong(name, mark.line + 1 if mark else 1, f"{error.problem}.", "This must be YAML.") from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise _wrong(name, line, f"{error.reason}.", "This must be YAML.") from None
    if not isinstance(values, dict):
        raise BadInput(f"{name}:1: a plan must be a mapping of names to values.", "Write for example profile: tiny.")
    return Text(
        name=name,
        language="YAML",
        values=values,
        line=lambda keys: next(lines[part] for part in _up(keys) if part in lines),
    )


def _up(keys: KeyPath) -> Iterator[KeyPath]:
    """`keys`, and what leads to it, the nearest first."""
    return (keys[:length] for length in range(len(keys), -1, -1))


def _refuse_events(name: str, text: str) -> None:
    """What YAML can do and a plan need not, before anything is made of it: a bomb of aliases is a few lines long."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _wrong(name, line, "anchors and aliases are not allowed in a plan.", "Write the value in full.")
        if tag := getattr(event, "tag", None):
            raise _wrong(name, line, f"tags like {tag} are not allowed in a plan.", "Write only the value.")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _wrong(name, line, f"this is nested deeper than {DEEPEST} levels.")


def _value(name: str, node: yaml.Node, keys: KeyPath, lines: dict[KeyPath, int]) -> Any:
    """What `node` says; the line of each key goes into `found`."""
    if isinstance(node, yaml.SequenceNode):
        return [_value(name, item, keys, {}) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(name, node)
    values: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        kind = _kind_of(key)
        if kind == "merge":
            raise _wrong(name, line, "a name must be text, not the merge key <<.", "Write the values in full.")
        if kind != "str":
            raise _wrong(name, line, "a name must be text.")
        if key.value in values:
            raise _wrong(name, line, f"{key.value} is written twice.", f"First on line {lines[(*keys, key.value)]}.")
        lines[(*keys, key.value)] = line
        values[key.value] = _value(name, value, (*keys, key.value), lines)
    return values


def _kind_of(node: yaml.Node) -> str:
    return str(node.tag).rpartition(":")[2] if isinstance(node, yaml.ScalarNode) else ""


def _scalar(name: str, node: yaml.ScalarNode) -> Value | None:
    written: str = node.value
    try:
        match _kind_of(node):
            case "null":
                return None
            case "bool":
                return written.lower() == "true"
            case "int":
                return int(written, 0)  # refuses 010, which is 8 by YAML 1.1 and 10 by 1.2
            case "float":
                return float(written.lower().replace(".inf", "inf").replace(".nan", "nan"))
            case _:
                return written
    except ValueError:
        line = node.start_mark.line + 1
        if written.lstrip("+-").startswith("0"):
            what = "is an octal number to YAML 1.1 and a decimal one to YAML 1.2."
            raise _wrong(name, line, f"{written[:40]} {what}", "Write it without zeros in front.") from None
        raise _wrong(name, line, f"{written[:40]} is too long for a number.") from None
