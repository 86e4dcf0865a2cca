"""Encodes and decodes the lines of samples.jsonl. Each line has a number and one of: facts, sample, usage, checksum, progress.

Missing values and defaults of a sample and of usage are not written; an interval is written as `begin` and `end`. All
lines of a file are decoded at once, straight into columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.columns import Columns
from bench.errors import RecordDamaged
from bench.model import LEAST, MOST, OUT_OF_RANGE, SAMPLES, USAGE, Facts, Line, NodeUsage, Sample
from bench.sanitize import from_clean_json, is_clean, to_clean_json

_STORED: Any = msgspec.defstruct(
    "Line",
    [
        ("seq", int),
        ("facts", Facts | None, None),
        ("sample", SAMPLES.stored | None, None),
        ("usage", USAGE.stored | None, None),
        ("digest", tuple[str, str] | None, None),
        ("progress", tuple[float, float] | None, None),
    ],
    kw_only=True,
    gc=False,
)
_DECODER = msgspec.json.Decoder(_STORED)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """All that the lines of a run say."""

    facts: Facts | None
    samples: Columns[Sample]
    usage: Columns[NodeUsage]
    digests: Mapping[str, str]


def encode(line: Line) -> bytes:
    """One line, with its end."""
    plain = {"facts": line.facts, "digest": line.digest, "progress": line.progress}
    form: dict[str, object] = {"seq": line.seq, **{name: value for name, value in plain.items() if value is not None}}
    if line.sample:
        form["sample"] = SAMPLES.stored_form(line.sample)
    if line.usage:
        form["usage"] = USAGE.stored_form(line.usage)
    return to_clean_json(form) + b"\n"


def decode(text: bytes) -> Line:
    """The line that `text` holds. Raises msgspec.ValidationError, msgspec.DecodeError or ValueError."""
    stored = _checked(from_clean_json(text, _STORED))
    recorded = _recorded([stored])
    return Line(
        seq=stored.seq,
        facts=stored.facts,
        sample=next(iter(recorded.samples), None),
        usage=next(iter(recorded.usage), None),
        digest=stored.digest,
        progress=stored.progress,
    )


def read(content: bytes, path: Path) -> Recorded:
    """All lines of a file, each with its end, which must be numbered from 1. Raises RecordDamaged, naming the line."""
    if is_clean(content):
        try:
            stored = [_checked(line) for line in _DECODER.decode_lines(content)]
        except (msgspec.DecodeError, ValueError):
            pass  # line by line it is seen where
        else:
            if [line.seq for line in stored] == list(range(1, content.count(b"\n") + 1)):
                return _recorded(stored)
    return _recorded([_decoded(text, number, path) for number, text in enumerate(content.split(b"\n")[:-1], start=1)])


def _decoded(text: bytes, number: int, path: Path) -> Any:
    try:
        line = _checked(from_clean_json(text, _STORED))
    except (msgspec.DecodeError, ValueError) as error:
        raise RecordDamaged(f"{path}, line {number}: {error}.") from error
    if line.seq != number:
        raise RecordDamaged(f"{path}, line {number}: its sequence number is {line.seq}.")
    return line


def _checked(line: Any) -> Any:
    """A line whose sample, if it has one, is as `Sample` would have it."""
    sample = line.sample
    if sample is not None and not LEAST <= abs(sample.value) <= MOST and sample.value != 0:
        if math.isnan(sample.value) and sample.reason is None:
            raise ValueError(f"a sample of {sample.metric} has either a value or a reason that there is none")
        if not math.isnan(sample.value):
            sample.reason, sample.value = f"{OUT_OF_RANGE}: {sample.value}", math.nan
    elif sample is not None and sample.reason is not None:
        raise ValueError(f"a sample of {sample.metric} has a value and a reason that there is none")
    return line


def _recorded(lines: Sequence[Any]) -> Recorded:
    return Recorded(
        facts=next((line.facts for line in lines if line.facts), None),
        samples=Columns.of_stored(SAMPLES, [line.sample for line in lines if line.sample is not None]),
        usage=Columns.of_stored(USAGE, [line.usage for line in lines if line.usage is not None]),
        digests=dict(line.digest for line in lines if line.digest),
    )
