"""The lines of a record give back what was written, and columns give back the rows that they were made of."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.columns import Columns
from bench.errors import RecordDamaged
from bench.model import SAMPLES, USAGE, Interval, Line, NodeUsage, Sample
from bench.record import line_format

TEXTS = st.sampled_from(["", "ray", "64 KiB x 4", 'a "quoted" one', "zwölf"])
NUMBERS = st.floats(1e-50, 1e50)
COUNTS = st.none() | st.integers(0, 2**52)
INTERVALS = st.builds(Interval, NUMBERS, NUMBERS)


def a_sample(value: float | None, **others: object) -> Sample:
    return Sample(value=value, reason="it was lost" if value is None else None, **others)  # type: ignore[arg-type]


SAMPLE = st.builds(
    a_sample,
    st.none() | st.just(0.0) | NUMBERS,
    metric=TEXTS,
    interval=INTERVALS,
    arm=TEXTS,
    unit=TEXTS,
    turn=st.integers(0, 9),
    warmup=st.booleans(),
    node=st.none() | TEXTS,
    point=TEXTS,
    step=st.none() | NUMBERS,
    of_many=st.booleans(),
    since=st.none() | st.integers(1, 9),
)
COUNTED = [field.name for field in fields(NodeUsage) if str(field.type).startswith("int |")]
MEASURED = [field.name for field in fields(NodeUsage) if str(field.type).startswith("float |")]
NODE_USAGE = st.builds(
    NodeUsage,
    node=TEXTS,
    arm=TEXTS,
    turn=st.integers(0, 9),
    warmup=st.booleans(),
    interval=INTERVALS,
    point=TEXTS,
    **dict.fromkeys(COUNTED, COUNTS),
    **dict.fromkeys(MEASURED, st.none() | NUMBERS),
)


def written(*lines: Line) -> bytes:
    return b"".join(map(line_format.encode, lines))


@given(st.lists(SAMPLE), st.lists(NODE_USAGE, max_size=3))
def test_columns_give_back_the_rows_that_they_were_made_of(samples: list[Sample], usage: list[NodeUsage]) -> None:
    assert list(Columns.of(SAMPLES, samples)) == samples
    assert list(Columns.of(USAGE, usage)) == usage
    assert Columns.of(SAMPLES, samples)[1:] == tuple(samples[1:])


@given(st.lists(SAMPLE), st.lists(NODE_USAGE, max_size=3))
def test_what_is_written_line_by_line_is_read_back(samples: list[Sample], usage: list[NodeUsage]) -> None:
    lines = [Line(seq=at, sample=sample) for at, sample in enumerate(samples, start=1)]
    lines += [Line(seq=at, usage=row) for at, row in enumerate(usage, start=len(lines) + 1)]
    recorded = line_format.read(written(*lines), Path("samples.jsonl"))
    assert (list(recorded.samples), list(recorded.usage)) == (samples, usage)
    assert [line_format.decode(line_format.encode(line)) for line in lines] == lines


def test_a_line_has_no_field_that_is_missing_or_the_default() -> None:
    line = Line(seq=1, sample=Sample(metric="rate", value=2.0, interval=Interval(0.5, 1.5), arm="ray"))
    assert line_format.encode(line) == (
        b'{"seq":1,"sample":{"metric":"rate","arm":"ray","begin":0.5,"end":1.5,"value":2.0}}\n'
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"seq":2,"sample":{"metric":"rate","arm":"ray","begin":0,"end":1}}', "either a value or a reason"),
        (
            b'{"seq":2,"sample":{"metric":"rate","arm":"ray","begin":0,"end":1,"value":1,"reason":"lost"}}',
            "a value and a",
        ),
        (b'{"seq":2,"sample":{"metric":"rate","arm":"ray","begin":0,"value":1}}', "required field `end`"),
        (
            b'{"seq":2,"usage":{"node":"head","arm":"ray","begin":0,"end":1,"turn":1.5,"warmup":false}}',
            "Expected `int`",
        ),
        (b'{"seq":3}', "its sequence number is 3"),
        (b'{"seq":2', "truncated"),
        (b"", "truncated"),
    ],
)
def test_a_line_that_cannot_be_right_is_damage_with_its_number(line: bytes, why: str) -> None:
    good = written(Line(seq=1, digest=("answers", "a")))
    with pytest.raises(RecordDamaged, match=f"samples.jsonl, line 2: .*{why}"):
        line_format.read(good + line + b"\n", Path("samples.jsonl"))


def test_a_number_beyond_what_statistics_bear_is_read_as_a_reason() -> None:
    line = b'{"seq":1,"sample":{"metric":"loss","arm":"ray","begin":0,"end":1,"value":1e200}}\n'
    (sample,) = line_format.read(line, Path("samples.jsonl")).samples
    assert (sample.value, sample.is_not_finite) == (None, True)


def test_text_that_a_terminal_would_obey_is_removed_on_reading() -> None:
    line = b'{"seq":1,"sample":{"metric":"rate","arm":"r\\u001b[31may","begin":0,"end":1,"value":1}}\n'
    (sample,) = line_format.read(line, Path("samples.jsonl")).samples
    assert sample.arm == "ray"


@given(NODE_USAGE, st.sampled_from(MEASURED), st.sampled_from([math.nan, math.inf]))
def test_usage_that_is_no_finite_number_is_written_as_not_counted(usage: NodeUsage, name: str, value: float) -> None:
    object.__setattr__(usage, name, value)
    read = line_format.decode(line_format.encode(Line(seq=1, usage=usage))).usage
    assert getattr(read, name) is None
