"""Injects faults into a run. The seed draws which process or node fails, and at which share of the work.

An experiment that tolerates some kinds of faults declares `tolerates=ToleratedFaults(kinds=..., workers=...)` and, in `faults=`, how
to get the plan from its params (a param `chaos` of the type `Choice`). It calls `context.progress` during its subject's work.

A resumed run does not inject a fault again: the work done before is kept, and faults up to that share are skipped. Of the faults
that end the run, each earlier attempt has used one.
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
MAX_FAULTS = 100  # per kind
PAUSE_SECONDS = 15.0
EARLIEST, LATEST = 0.05, 0.9  # share of the work at which faults are injected
READY_SECONDS = 60.0
LATE = 0.05  # share of the work: if no worker was busy for so long, an idle one is killed


@dataclass(frozen=True, kw_only=True)
class ToleratedFaults:
    """The faults that an experiment tolerates."""

    kinds: Sequence[Kind]
    workers: str  # the actors that the kind `worker` kills: CLASS, or CLASS.METHOD for those that execute that method


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault, injected when `share` of the work is done."""

    kind: Kind
    share: float
    draw: float  # from 0 to 1; chooses the victim


def read_plan(text: str, kinds: Sequence[Kind] = KINDS) -> list[tuple[Kind, int]]:
    """Parse a plan like `worker:5+driver:3` into kinds, of the allowed `kinds`, and counts. Raises BadInput."""
    plan: list[tuple[Kind, int]] = []
    for item in filter(None, text.split("+")):
        name, _, times = item.strip().partition(":")
        kind = next((allowed for allowed in kinds if allowed == name), None)
        if kind is None or not (times or "1").isdecimal() or not 0 < int(times or "1") <= MAX_FAULTS:
            raise BadInput(
                f"{item.strip()} is not valid in a chaos plan.",
                f"Use kinds and counts, e.g. worker:5+driver:3. Kinds: {', '.join(kinds)}.",
            )
        plan.append((kind, int(times or "1")))
    return plan


def changes_nodes(text: str) -> bool:
    """Whether the plan removes or adds whole nodes, or may: Ray gives up a node that is paused for long."""
    return any(kind in ("raylet", "pause", "head", "join") for kind, _ in read_plan(text))


def needs_other_nodes(text: str) -> bool:
    """Whether the plan needs nodes other than the head."""
    return any(kind in ("raylet", "pause") for kind, _ in read_plan(text))


def check_target(text: str, target: str) -> None:
    """Raise BadInput if the plan cannot be carried out on a target."""
    if target != JOIN_TARGET and any(kind == "join" for kind, _ in read_plan(text)):
        raise BadInput(
            f"No node can join during a run on {target}: a run cannot start a container or pod.",
            f"Use --target {JOIN_TARGET}, or another plan.",
        )


def draw_faults(text: str, seed: int) -> list[Fault]:
    """Draw all faults of a plan, in the order of their shares: the same for the same seed."""
    draw = random.Random(f"chaos/{seed}/{text}")
    drawn = [
        Fault(kind=kind, share=draw.uniform(EARLIEST, LATEST), draw=draw.random())
        for kind, times in read_plan(text)
        for _ in range(times)
    ]
    return sorted(drawn, key=lambda fault: fault.share)


def ended_last_attempt(plan: Sequence[Fault], attempt: int) -> Kind | None:
    """Return the kind of fault that ended the attempt before `attempt`; None for the first attempt, which is 1."""
    ends = [fault.kind for fault in plan if fault.kind in ENDS_THE_RUN]
    return ends[attempt - 2] if 2 <= attempt <= len(ends) + 1 else None


def still_to_come(plan: Sequence[Fault], attempt: int, done: float) -> list[Fault]:
    """Return the faults that earlier attempts have not used. `done`: share of the work that they did."""
    ends = [fault for fault in plan if fault.kind in ENDS_THE_RUN][attempt - 1 :]
    others = [fault for fault in plan if fault.kind not in ENDS_THE_RUN and fault.share > done]
    return sorted([*ends, *others], key=lambda fault: fault.share)


@dataclass(kw_only=True)
class FaultInjector:
    """Injects the faults of a run's plan, in each timed interval anew."""

    plan: str
    workers: str  # as in ToleratedFaults
    seed: int
    attempt: int  # of the run, from 1
    nodes: Sequence[NodeSlot]  # the head first
    on_fault: Callable[[Kind, str], None] = lambda _kind, _node: None  # called before each fault, with its node
    fill_disk: Callable[[], None] = lambda: None  # makes all later writes of done work fail
    _agents: dict[str, Any] = field(default_factory=dict)  # by the name of the node
    _left: list[Fault] | None = None  # None: no interval is in progress
    _is_new: bool = False  # until the interval's first progress, which is what earlier attempts did
    _killed: set[tuple[str, int]] = field(default_factory=set)  # (node, process id)

    def begin(self) -> None:
        """Begin a timed interval."""
        import ray

        from bench.experiments.toolkit.node_faults import NodeAgent

        if not self._agents:
            make = ray.remote(num_cpus=0, max_restarts=0)(NodeAgent)
            self._agents = {node.name: make.options(scheduling_strategy=on(node)).remote() for node in self.nodes}
            get_in_time([agent.ready.remote() for agent in self._agents.values()], READY_SECONDS, "Fault agents")
        self._left, self._is_new = draw_faults(self.plan, self.seed), True

    def progress(self, done: float, total: float) -> None:
        """Inject the faults that are due when `done` of `total` work in the interval is done."""
        if self._left is None:
            return
        share = done / total
        if self._is_new:
            self._left, self._is_new = still_to_come(self._left, self.attempt, share), False
        while self._left and self._left[0].share <= share and self._inject(self._left[0], share):
            self._left.pop(0)

    def end(self) -> Iterator[str]:
        """End the interval; yield the reasons why the plan was not carried out."""
        left, self._left = self._left, None
        if left is None:
            return
        if left:
            kinds = ", ".join(fault.kind for fault in left)
            yield f"faults that were not injected, because no process or node could take them: {kinds}"
        if any(kind == "join" for kind, _ in read_plan(self.plan)):
            for lines in self._ask("failed_joins"):
                yield from (f"a node that was to join did not: {line}" for line in lines)

    def _inject(self, fault: Fault, share: float) -> bool:
        """Inject a fault. Returns False if no process or node can take it now."""
        head = next(iter(self._agents), "")
        if fault.kind == "driver":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.kind == "worker":
            return self._kill_worker(fault, share)
        elif fault.kind == "fill-disk":
            if share >= 1:
                return False  # nothing more is written, so a full disk would have no effect
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
        if not alive and share - fault.share >= LATE:  # calls so short that workers are idle whenever they are listed
            alive = self._living(self.workers.partition(".")[0], "idle")
        if not alive:
            return False
        node, process = _chosen(alive, fault)
        self._killed.add((node, process))
        self.on_fault("worker", node)
        self._agents[node].kill.remote(process)
        return True

    def _stop_node(self, fault: Fault, head: str) -> bool:
        running = self._nodes_up()
        others = [
            name for name in self._agents if name in running and name != head
        ]  # only the kind "head" stops the head
        if not others:
            return False
        name = _chosen(others, fault)
        self.on_fault(fault.kind, name)
        agent = self._agents[name]
        agent.kill_raylet.remote() if fault.kind == "raylet" else agent.pause.remote(PAUSE_SECONDS)
        return True

    def _living(self, title: str, state: Literal["any", "idle"] = "any") -> list[tuple[str, int]]:
        """Return the worker processes without those that were killed, which Ray lists until it has noticed."""
        return [worker for worker in self._worker_processes(title, state) if worker not in self._killed]

    def _worker_processes(self, title: str, state: Literal["any", "idle"] = "any") -> list[tuple[str, int]]:
        """Return node and process id of each actor of the class CLASS, or that executes CLASS.METHOD, as `title` says."""
        running = self._nodes_up()
        names = [name for name in self._agents if name in running]
        answers = self._ask("workers", title, state, names=names)
        return [(name, process) for name, processes in zip(names, answers, strict=True) for process in processes]

    def _nodes_up(self) -> set[str]:
        import ray

        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        return {node.name for node in self.nodes if node.node_id in alive}

    def _ask(self, method: str, *arguments: Any, names: Sequence[str] | None = None) -> list[list[Any]]:
        """Call `method` of each agent and return the results: an empty list for a node that is lost or paused."""
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
