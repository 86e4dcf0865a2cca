"""The noun of the doctor: what was looked at, what was seen, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["good", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was seen, and what to do about it."""

    about: str
    level: Level
    seen: str
    to_do: str = ""
