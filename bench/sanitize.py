"""Removes from text of others what a terminal or a page would obey: escape sequences, control and bidi characters."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from bench.model import as_builtins, from_json, to_json

T = TypeVar("T")

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC: titles, links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
)
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
# Of JSON in UTF-8: an escape that may stand for one of these, or one of them as it is.
_SUSPECT = re.compile(
    rb"\\[ubfr]|\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8b\x8e\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xed[\xa0-\xbf]"
)


def clean_text(text: str) -> str:
    """`text` with its lines and tabs, and without all else that is no printable character."""
    return _FORBIDDEN.sub("", _LINE_ENDS.sub("\n", _ESCAPES.sub("", text)))


def clean_line(text: str) -> str:
    """`text` as one line."""
    return " ".join(clean_text(text).split())


def clean_reason(text: str) -> str:
    """`text` as one line that ends without a full stop, since reasons stand inside sentences."""
    line = clean_line(text)
    return line if line.endswith("...") else line.rstrip(".")


def clean_value(value: Any) -> Any:
    """A JSON value with every text in it clean, the names of fields too."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_value(name): clean_value(inner) for name, inner in value.items()}
    return [clean_value(inner) for inner in value] if isinstance(value, list | tuple) else value


def is_clean(text: bytes) -> bool:
    """Whether JSON in UTF-8 has none of what is removed here."""
    is_plain = text.isascii() and b"\\" not in text and b"\x7f" not in text  # most is, and this is much faster to see
    return is_plain or _SUSPECT.search(text) is None


def to_clean_json(value: object) -> bytes:
    """A noun as JSON, one line, with clean text."""
    try:
        text = to_json(value)
    except UnicodeEncodeError:  # half a surrogate pair, as in a name of a file that is not UTF-8
        return to_json(clean_value(as_builtins(value)))
    return text if is_clean(text) else to_json(clean_value(as_builtins(value)))


def from_clean_json(text: bytes, kind: type[T]) -> T:
    """The noun that `text` holds, with clean text. Raises msgspec.ValidationError or msgspec.DecodeError."""
    value = from_json(text, kind)
    if not is_clean(text):
        value = msgspec.convert(clean_value(msgspec.json.decode(text)), kind, str_keys=True)
    return value
