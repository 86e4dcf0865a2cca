"""Injects faults into a run on purpose. Which process or node fails when is drawn from the seed, by the share of work that is done.

An experiment that tolerates some kinds declares `tolerates=ToleratedFaults(kinds=..., workers=...)`, and in `faults=` where its
params have the plan: a param `chaos` of the type `Choice`. It calls `context.progress` in the midst of its subject's work.

A fault that was injected is not injected again when the run is resumed: what is done by then is kept, and so is past it; and each
attempt at the run but the last was ended by a fault that ends runs.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, get_args

from msgspec import Meta

from bench.context import NodeSlot
from bench.errors import BadInput
from bench.experiments.toolkit.placement import get_in_time, on

Victim = TypeVar("Victim")
Kind = Literal["worker", "raylet", "pause", "driver", "head", "fill-disk", "join"]
Choice = Annotated[str, Meta(description="Faults to inject, e.g. worker:5+driver:3.", extra={"unit": "PLAN"})]

KINDS: tuple[Kind, ...] = get_args(Kind)
ENDS_THE_RUN = ("driver", "head", "fill-disk")
JOIN_TARGET = "local"  # the target where a node can be added from inside a run
MAX_FAULTS = 100  # of one kind
PAUSE_SECONDS = 15.0
EARLIEST, LATEST = 0.05, 0.9  # share of the work at which faults are injected
READY_SECONDS = 60.0
LATE = 0.05  # share of the work: if no worker was busy for that long, an idle one is killed


@dataclass(frozen=True, kw_only=True)
class ToleratedFaults:
    """The faults that an experiment tolerates."""

    kinds: Sequence[Kind]
    workers: (
        str  # the actors that the kind `worker` kills: of this class, or CLASS.METHOD, while they are in that method
    )


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault, injected when `share` of the work is done."""

    kind: Kind
    share: float
    draw: float  # from 0 to 1: which of the possible victims


def read_plan(text: str, kinds: Sequence[Kind] = KINDS) -> list[tuple[Kind, int]]:
    """`worker:5+driver:3` as kinds, of those that are allowed, and how often. Raises BadInput."""
    plan: list[tuple[Kind, int]] = []
    for item in filter(None, text.split("+")):
        name, _, times = item.strip().partition(":")
        kind = next((each for each in kinds if each == name), None)
        if kind is None or not (times or "1").isdecimal() or not 0 < int(times or "1") <= MAX_FAULTS:
            raise BadInput(
                f"{item.strip()} is no part of a chaos plan.",
                f"Give kinds and how often, as in worker:5+driver:3. Kinds: {', '.join(kinds)}.",
            )
        plan.append((kind, int(times or "1")))
    return plan


def changes_nodes(text: str) -> bool:
    """Whether the plan removes or adds whole nodes, or may: one that is paused for long is given up."""
    return any(kind in ("raylet", "pause", "head", "join") for kind, _ in read_plan(text))


def needs_other_nodes(text: str) -> bool:
    """Whether the plan needs nodes besides the head."""
    return any(kind in ("raylet", "pause") for kind, _ in read_plan(text))


def check_target(text: str, target: str) -> None:
    """Raise BadInput where the plan cannot be done on a target."""
    if target != JOIN_TARGET and any(kind == "join" for kind, _ in read_plan(text)):
        raise BadInput(
            f"No node can join during a run on {target}: the run cannot have a container or pod made.",
            f"Take --target {JOIN_TARGET}, or another plan.",
        )


def draw_faults(text: str, seed: int) -> list[Fault]:
    """All faults of a plan, in order: the same for the same seed."""
    draw = random.Random(f"chaos/{seed}/{text}")
    drawn = [
        Fault(kind=kind, share=draw.uniform(EARLIEST, LATEST), draw=draw.random())
        for kind, times in read_plan(text)
        for _ in range(times)
    ]
    return sorted(drawn, key=lambda fault: fault.share)


def ended_last_attempt(plan: Sequence[Fault], attempt: int) -> Kind | None:
    """What ended the attempt before this one, of which the first is 1."""
    ends = [fault.kind for fault in plan if fault.kind in ENDS_THE_RUN]
    return ends[attempt - 2] if 2 <= attempt <= len(ends) + 1 else None


def still_to_come(plan: Sequence[Fault], attempt: int, done: float) -> list[Fault]:
    """The faults of a plan that earlier attempts have not been through. `done`: share of the work that they did."""
    ends = [fault for fault in plan if fault.kind in ENDS_THE_RUN][attempt - 1 :]
    others = [fault for fault in plan if fault.kind not in ENDS_THE_RUN and fault.share > done]
    return sorted([*ends, *others], key=lambda fault: fault.share)


@dataclass(kw_only=True)
class FaultInjector:
    """Injects the faults of one run: those of its plan, anew in each interval."""

    plan: str
    workers: str  # as in ToleratedFaults
    seed: int
    attempt: int  # at the run, from 1
    nodes: Sequence[NodeSlot]  # the head first
    on_fault: Callable[[Kind, str], None] = lambda _kind, _node: None  # is called at each fault, with its node
    fill_disk: Callable[[], None] = lambda: None  # from then on, what is done cannot be written down
    _agents: dict[str, Any] = field(default_factory=dict)  # by the name of the node
    _left: list[Fault] | None = None  # None: no interval is in progress
    _is_new: bool = False  # the interval's first progress is what earlier attempts did
    _killed: set[tuple[str, int]] = field(default_factory=set)  # (node, process id)

    def begin(self) -> None:
        """An interval begins."""
        import ray

        from bench.experiments.toolkit.node_faults import NodeAgent

        if not self._agents:
            make = ray.remote(num_cpus=0, max_restarts=0)(NodeAgent)
            self._agents = {node.name: make.options(scheduling_strategy=on(node)).remote() for node in self.nodes}
            get_in_time([each.ready.remote() for each in self._agents.values()], READY_SECONDS, "Fault agents")
        self._left, self._is_new = draw_faults(self.plan, self.seed), True

    def progress(self, done: float, total: float) -> None:
        """So much of the interval's work is done: inject what is due."""
        if self._left is None:
            return
        share = done / total
        if self._is_new:
            self._left, self._is_new = still_to_come(self._left, self.attempt, share), False
        while self._left and self._left[0].share <= share and self._inject(self._left[0], share):
            self._left.pop(0)

    def end(self) -> Iterator[str]:
        """The interval is over: the reasons why its numbers are not what the plan asked for."""
        left, self._left = self._left, None
        if left is None:
            return
        if left:
            kinds = ", ".join(fault.kind for fault in left)
            yield f"faults that were not injected, as there was nothing to inject them into: {kinds}"
        if any(kind == "join" for kind, _ in read_plan(self.plan)):
            for lines in self._ask("failed_joins"):
                yield from (f"a node that was to join did not: {line}" for line in lines)

    def _inject(self, fault: Fault, share: float) -> bool:
        """Whether there was something to inject it into."""
        head = next(iter(self._agents), "")
        if fault.kind == "driver":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.kind == "worker":
            return self._kill_worker(fault, share)
        elif fault.kind == "fill-disk":
            if share >= 1:
                return False  # nothing more is written: a full disk would stop nothing
            self.fill_disk()
        elif fault.kind == "join":
            self.on_fault("join", "")
            self._agents[head].join.remote()
        elif fault.kind == "head":
            self._agents[head].kill_head.remote()
        else:
            return self._stop_node(fault, head)
        return True

    def _kill_worker(self, fault: Fault, share: float) -> bool:
        alive = self._living(self.workers)
        if not alive and share - fault.share >= LATE:  # jobs so short that each look finds all workers idle
            alive = self._living(self.workers.partition(".")[0], "idle")
        if not alive:
            return False
        node, process = _chosen(alive, fault)
        self._killed.add((node, process))
        self.on_fault("worker", node)
        self._agents[node].kill.remote(process)
        return True

    def _stop_node(self, fault: Fault, head: str) -> bool:
        up = self._nodes_up()
        others = [name for name in self._agents if name in up and name != head]  # the kind "head" is for the head
        if not others:
            return False
        name = _chosen(others, fault)
        self.on_fault(fault.kind, name)
        agent = self._agents[name]
        agent.kill_raylet.remote() if fault.kind == "raylet" else agent.pause.remote(PAUSE_SECONDS)
        return True

    def _living(self, of: str, state: Literal["any", "idle"] = "any") -> list[tuple[str, int]]:
        """The worker processes without those that were killed: they are listed until Ray has noticed."""
        return [each for each in self._worker_processes(of, state) if each not in self._killed]

    def _worker_processes(self, of: str, state: Literal["any", "idle"] = "any") -> list[tuple[str, int]]:
        """Node and process id of each actor of a class, or at a method of it."""
        up = self._nodes_up()
        names = [name for name in self._agents if name in up]
        answers = self._ask("workers", of, state, names=names)
        return [(name, process) for name, processes in zip(names, answers, strict=True) for process in processes]

    def _nodes_up(self) -> set[str]:
        import ray

        alive = {each["NodeID"] for each in ray.nodes() if each["Alive"]}
        return {node.name for node in self.nodes if node.node_id in alive}

    def _ask(self, method: str, *arguments: Any, names: Sequence[str] | None = None) -> list[list[Any]]:
        """What each agent answers: nothing, where its node is lost or paused."""
        import ray
        from ray.exceptions import GetTimeoutError, RayActorError

        calls = [getattr(self._agents[name], method).remote(*arguments) for name in names or self._agents]
        answers = []
        for call in calls:
            try:
                answers.append(list(ray.get(call, timeout=PAUSE_SECONDS)))
            except (RayActorError, GetTimeoutError):
                answers.append([])
        return answers


def _chosen(victims: Sequence[Victim], fault: Fault) -> Victim:
    return victims[int(fault.draw * len(victims))]
