"""Holds what a study published: its tables, how it was set up, and which figures of ours stand beside its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Entry = float | str
"""One figure that was published: a number, or words where none was printed."""


@dataclass(frozen=True, kw_only=True)
class StudyFigure:
    """A column of a study's table, and what of ours stands in it."""

    name: str  # "time"
    unit: str
    metric: str = ""  # ours, by its name; empty: it is the study's alone
    pick: Literal["", "fewest", "most"] = ""  # of the metric's points, as of trials
    of: str = ""  # a parameter that is divided by the metric: inputs, by inputs/s, are seconds
    factor: float = 1.0  # by which ours is multiplied to have this unit
    grows: bool = False  # with the sizes that `--scale` shrinks: scaled, it is no measure of the study's


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """What a study did, and the cell of ours that does the same."""

    what: str  # "1 actor, 1 input in a call"
    params: Mapping[str, bool | int | float | str]  # those that make the cell what it is
    topology: str  # "single" or "multi"
    arm: str = ""  # empty: the subject
    published: tuple[tuple[Entry, ...], ...]  # of each figure its repeats in order; empty where there are none

    def matches(self, params: Mapping[str, object]) -> bool:
        """Whether a cell with these params does the same."""
        return all(params.get(name) == value for name, value in self.params.items())


@dataclass(frozen=True, kw_only=True)
class StudyTable:
    """A table of a study."""

    title: str
    figures: tuple[StudyFigure, ...]
    rows: tuple[StudyRow, ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.published) != len(self.figures):
                raise ValueError(f"{row.what}: {len(row.published)} entries for {len(self.figures)} figures")


@dataclass(frozen=True, kw_only=True)
class StudySetting:
    """How a study was set up in one respect, and where ours is found."""

    name: str
    published: str
    ours: Literal["CPUs", "memory", "nodes", "link", ""] = ""
    param: str = ""  # in place of that: a parameter of the cells
    words: Mapping[str, str] = field(
        default_factory=dict
    )  # of that parameter's values, as text, for those that need any
    always: str = ""  # in place of both: what is the same in every session


@dataclass(frozen=True, kw_only=True)
class Study:
    """All that an experiment knows of the study that it repeats."""

    title: str
    settings: tuple[StudySetting, ...]
    tables: tuple[StudyTable, ...]
