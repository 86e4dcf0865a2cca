"""What is done to a run on purpose: which process ends when, drawn from the seed, by how much of the work is done.

A strike that came before is not repeated when the run is resumed: what is done by then is kept, and so is past it; and each
attempt at the run but the last was ended by one that ends runs.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bench.errors import BadInput

Kind = Literal["worker", "raylet", "pause", "driver", "head", "fill-disk", "join"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ENDS_THE_RUN = ("driver", "head", "fill-disk")
JOINS_ON = "local"  # the target where a node can be added from inside
MOST_STRIKES = 100
PAUSE_SECONDS = 15.0
EARLIEST, LATEST = 0.05, 0.9  # share of the work at which strikes come


@dataclass(frozen=True, kw_only=True)
class Strike:
    """One thing that is done to the run, when so much of its work is done."""

    kind: Kind
    share: float
    draw: float  # from 0 to 1: which of those there are


def read_plan(text: str, kinds: Sequence[Kind] = KINDS) -> list[tuple[Kind, int]]:
    """`worker:5+driver:3` as kinds, of those that are allowed, and how often. Raises BadInput."""
    found: list[tuple[Kind, int]] = []
    for item in filter(None, text.split("+")):
        name, _, times = item.strip().partition(":")
        kind = next((each for each in kinds if each == name), None)
        if kind is None or not (times or "1").isdecimal() or not 0 < int(times or "1") <= MOST_STRIKES:
            raise BadInput(
                f"{item.strip()} is no part of a chaos plan.",
                f"Give kinds and how often, as in worker:5+driver:3. Kinds: {', '.join(kinds)}.",
            )
        found.append((kind, int(times or "1")))
    return found


def changes_nodes(text: str) -> bool:
    """Whether the plan takes whole nodes away, or may, or adds some: one that is paused for long is given up."""
    return any(kind in ("raylet", "pause", "head", "join") for kind, _ in read_plan(text))


def needs_others(text: str) -> bool:
    """Whether the plan strikes nodes besides the head's."""
    return any(kind in ("raylet", "pause") for kind, _ in read_plan(text))


def check_target(text: str, target: str) -> None:
    """Raise BadInput where the plan cannot be done on a target."""
    if target != JOINS_ON and any(kind == "join" for kind, _ in read_plan(text)):
        raise BadInput(
            f"No node can join during a run on {target}: the run, which is inside, cannot have a container or pod made.",
            f"Take --target {JOINS_ON}, or another plan.",
        )


def strikes(text: str, seed: int) -> list[Strike]:
    """All strikes of a plan, in order: the same for the same seed."""
    draw = random.Random(f"chaos/{seed}/{text}")
    found = [
        Strike(kind=kind, share=draw.uniform(EARLIEST, LATEST), draw=draw.random())
        for kind, times in read_plan(text)
        for _ in range(times)
    ]
    return sorted(found, key=lambda strike: strike.share)


def ended_the_last(plan: Sequence[Strike], attempt: int) -> Kind | None:
    """What ended the attempt before this one, of which the first is 1."""
    ends = [strike.kind for strike in plan if strike.kind in ENDS_THE_RUN]
    return ends[attempt - 2] if 2 <= attempt <= len(ends) + 1 else None


@dataclass(kw_only=True)
class Chaos:
    """Strikes as their time comes. `done` is the share of the work that is done; `workers` are (node, process id)."""

    left: list[Strike]
    done: Callable[[], float]
    workers: Callable[[], Sequence[tuple[str, int]]]
    standing: Callable[[], set[str]]  # the nodes that have not been lost
    strikers: dict[str, Any]  # by the name of the node; the head's first
    fill: Callable[[], None]  # from then on, what is done cannot be written down
    struck: Callable[[Kind, str], None] = lambda _kind, _node: None  # is told of each strike, and its node
    killed: set[tuple[str, int]] = field(default_factory=set)

    def skip(self, attempt: int) -> None:
        """What the attempts before this one, the first of which is 1, have been through does not come again."""
        ends = [strike for strike in self.left if strike.kind in ENDS_THE_RUN][attempt - 1 :]
        others = [strike for strike in self.left if strike.kind not in ENDS_THE_RUN and strike.share > self.done()]
        self.left = sorted([*ends, *others], key=lambda strike: strike.share)

    def tick(self) -> None:
        """Strike, if it is time."""
        while self.left and self.left[0].share <= self.done() and self._strike(self.left[0]):
            self.left.pop(0)

    def _strike(self, strike: Strike) -> bool:
        """Whether it could be done: while no worker is there, none can be killed."""
        head, *others = self.strikers
        if strike.kind == "driver":
            os.kill(os.getpid(), signal.SIGKILL)
        elif strike.kind == "worker":
            there = [
                each for each in self.workers() if each not in self.killed
            ]  # one that was struck is listed until it is buried
            if not there:
                return False
            node, process = there[int(strike.draw * len(there))]
            self.killed.add((node, process))
            self.struck("worker", node)
            self.strikers[node].kill.remote(process)
        elif strike.kind == "fill-disk":
            if self.done() >= 1:
                return False  # nothing more is written: a disk that is full then stops nobody
            self.fill()
        elif strike.kind == "join":
            self.struck("join", "")
            self.strikers[head].join.remote()
        elif strike.kind == "head":
            self.strikers[head].kill_head.remote()
        else:
            others = [name for name in others if name in self.standing()]  # the head's own raylet is what "head" is for
            if not others:
                return False
            name = others[int(strike.draw * len(others))]
            striker = self.strikers[name]
            self.struck(strike.kind, name)
            if strike.kind == "raylet":
                striker.kill_raylet.remote()
            else:
                striker.pause.remote(PAUSE_SECONDS)
        return True
