"""Defines a finding of `bench doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["good", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """The result of a check: its subject, what was observed, and a hint."""

    about: str
    level: Level
    seen: str
    to_do: str = ""
