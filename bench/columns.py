"""Stores samples and usage as columns: numbers in one array, texts once for all rows that share them.

A record has a hundred rows a run and a session thousands of runs: an object for each would take most of the time of a report.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, TypeVar, get_type_hints, overload

import msgspec

Row = TypeVar("Row")

INTERVAL = ("begin", "end")  # the numbers in place of an `interval`


class Layout(Generic[Row]):
    """How rows of one dataclass are stored: its fields of text, its other fields as numbers, its interval as two of them."""

    def __init__(self, kind: Callable[..., Row], interval: Callable[[float, float], object]) -> None:
        self._kind, self._interval = kind, interval
        hints = get_type_hints(kind)
        declared = {each.name: each.default for each in fields(kind)}  # type: ignore[arg-type]  # it is a dataclass
        is_text = {name: str in _kinds(hints[name]) for name in declared}
        self._defaults = {name: default for name, default in declared.items() if default is not MISSING}
        self._optional = {name for name in declared if type(None) in _kinds(hints[name])}
        self.texts = tuple(name for name in declared if is_text[name])
        plain = [name for name in declared if not is_text[name] and name != "interval"]
        self.numbers = (*INTERVAL, *plain)
        self.position: Mapping[str, int] = {name: at for at, name in enumerate(self.numbers)}
        self._casts = {name: cast for name in plain if (cast := _cast(hints[name])) is not float}
        self._texts_of = attrgetter(*self.texts)
        self._numbers_of = attrgetter("interval.begin", "interval.end", *plain)
        self.stored = self._stored(hints)
        self.stored_texts, self.stored_numbers = self._texts_of, attrgetter(*self.numbers)

    def _stored(self, hints: Mapping[str, Any]) -> type[msgspec.Struct]:
        """The type of a row in a record. A number that is left out is NaN."""
        kinds = {name: hints[name] for name in self.texts}
        kinds |= {name: _stored_kind(hints.get(name, float)) for name in self.numbers}
        missing = {
            name: math.nan for name, hint in hints.items() if name in self.numbers and type(None) in _kinds(hint)
        }
        defaults = self._defaults | missing
        columns = [(name, kind, defaults[name]) if name in defaults else (name, kind) for name, kind in kinds.items()]
        return msgspec.defstruct(self._kind.__name__, columns, kw_only=True, gc=False)

    def stored_form(self, row: Row) -> dict[str, object]:
        """A row as a record has it: without what is missing or the default."""
        values = dict(zip(self.texts, self._texts_of(row), strict=True))
        values |= zip(self.numbers, self._numbers_of(row), strict=True)
        return {
            name: value
            for name, value in values.items()
            if not (name in self._optional and _is_missing(value))
            and not (name in self._defaults and value == self._defaults[name])
        }

    def texts_and_numbers(self, row: Row) -> tuple[tuple[str | None, ...], tuple[float, ...]]:
        """A row's texts, and its numbers with NaN for those that are missing."""
        numbers = [math.nan if value is None else value for value in self._numbers_of(row)]
        return self._texts_of(row), tuple(numbers)

    def row(self, texts: Sequence[str | None], numbers: Sequence[float]) -> Row:
        """The row that has these texts and numbers."""
        values: dict[str, Any] = {
            name: None if math.isnan(number) else number
            for name, number in zip(self.numbers, numbers, strict=True)
            if name not in INTERVAL
        }
        for name, cast in self._casts.items():
            if values[name] is not None:
                values[name] = cast(values[name])
        values |= zip(self.texts, texts, strict=True)
        return self._kind(interval=self._interval(*numbers[:2]), **values)


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows."""
    return getattr(hint, "__args__", (hint,))


def _cast(hint: Any) -> type:
    return next((kind for kind in (bool, int) if kind in _kinds(hint)), float)


def _stored_kind(hint: Any) -> type:
    return float if type(None) in _kinds(hint) else _cast(hint)


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


class Columns(Sequence[Row]):
    """Rows of one run. A row is made when it is asked for."""

    def __init__(self, layout: Layout[Row], rows: Iterable[tuple[tuple[str | None, ...], Sequence[float]]]) -> None:
        """`rows`: the texts and the numbers of each."""
        codes: dict[tuple[str | None, ...], int] = {}
        texts, numbers = [], []
        for of_text, of_number in rows:
            texts.append(codes.setdefault(of_text, len(codes)))
            numbers.append(of_number)
        self.layout = layout
        self.names = tuple(codes)  # the different texts of rows, in the order in which they come
        self.codes = array("I", texts)  # by row: which of them it has
        self.numbers = array("d", chain.from_iterable(numbers))  # one row after the other

    @classmethod
    def of(cls, layout: Layout[Row], rows: Iterable[Row]) -> Columns[Row]:
        """The same rows as columns."""
        return rows if isinstance(rows, Columns) else cls(layout, map(layout.texts_and_numbers, rows))

    @classmethod
    def of_stored(cls, layout: Layout[Row], rows: Sequence[msgspec.Struct]) -> Columns[Row]:
        """Rows as a record has them."""
        return cls(layout, zip(map(layout.stored_texts, rows), map(layout.stored_numbers, rows), strict=True))

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(at, slice):
            return tuple(self[each] for each in range(*at.indices(len(self))))
        width = len(self.layout.numbers)
        place = range(len(self))[at] * width
        return self.layout.row(self.names[self.codes[at]], self.numbers[place : place + width])

    def __iter__(self) -> Iterator[Row]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def read(self, name: str) -> array[float]:
        """A number of each row; NaN: it has none."""
        return self.numbers[self.layout.position[name] :: len(self.layout.numbers)]
