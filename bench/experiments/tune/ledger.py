"""Which trials are done: written down as each one ends, and read by the next attempt at the run, which does the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from bench.experiments.tune.numbers import TrialRun
from bench.experiments.tune.training import Config, Course
from bench.model import from_json, to_json

NAME = "done.jsonl"  # what the next attempt is given


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A trial that ended, and what it was a trial of."""

    turn: int
    key: str
    trial: TrialRun


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The trials of this attempt, and those of the attempts before."""

    folder: Path
    earlier: Sequence[Path]
    course: Course

    def kept(self, turn: int, configs: Sequence[Config]) -> list[TrialRun]:
        """The trials of `configs` that an earlier attempt ended in this turn: once each, by their numbers."""
        wanted = {(number, self._key(config)) for number, config in enumerate(configs)}
        found = {
            entry.trial.number: entry.trial
            for path in self.earlier
            for entry in _read(path)
            if entry.turn == turn and (entry.trial.number, entry.key) in wanted
        }
        return [found[number] for number in sorted(found)]

    def write(self, turn: int, trial: TrialRun) -> None:
        """Note that `trial` has ended; it is on the disk when this returns."""
        entry = Entry(turn=turn, key=self._key(trial.config), trial=trial)
        with (self.folder / NAME).open("ab") as file:
            file.write(to_json(entry) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _key(self, config: Config) -> str:
        """What two trials have in common that come to the same."""
        return sha256(repr((self.course, config)).encode()).hexdigest()


def _read(path: Path) -> list[Entry]:
    """The whole lines of a ledger: the last one may have been cut short."""
    found = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            found.append(from_json(line, Entry))
        except (msgspec.DecodeError, ValueError):
            continue
    return found
