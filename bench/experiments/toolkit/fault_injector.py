"""The frame of chaos: who measures says when an interval begins, how far it is and when it ends; strikes come from here alone.

An experiment that gets over some kinds says so in its module, as data: `CHAOS = Survives(kinds=..., workers=...)`, and its
Params have a param `chaos` of the type `Choice`. It calls `context.progress` in the midst of its subject's work, and that is all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from bench import faults
from bench.context import NodeSlot
from bench.experiments.toolkit.placement import get_in_time, on

Choice = Annotated[
    str, Meta(description="What befalls the run on purpose, as in worker:5+driver:3.", extra={"unit": "PLAN"})
]
READY_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Survives:
    """What an experiment gets over."""

    kinds: Sequence[faults.Kind]
    # The actors that a strike of the kind `worker` ends: of this class, or CLASS.METHOD, in the midst of that.
    workers: str


@dataclass(kw_only=True)
class Mishaps:
    """The strikes of one run: those of its plan, anew in each interval."""

    plan: str
    workers: str  # as in Survives
    seed: int
    attempt: int  # at the run, from 1
    nodes: Sequence[NodeSlot]  # the head first
    struck: Callable[[faults.Kind, str], None] = lambda _kind, _node: None  # is told of each strike, and its node
    fill: Callable[[], None] = lambda: None  # from then on, what is done cannot be written down
    _strikers: dict[str, Any] = field(default_factory=dict)  # by the name of the node
    _chaos: faults.Chaos | None = None
    _done: float = 0.0  # share of the interval's work
    _is_new: bool = False  # nobody has yet said how much was done before

    def begin(self) -> None:
        """An interval begins."""
        import ray

        from bench.experiments.toolkit.striker import Striker

        if not self._strikers:
            make = ray.remote(num_cpus=0, max_restarts=0)(Striker)
            self._strikers = {node.name: make.options(scheduling_strategy=on(node)).remote() for node in self.nodes}
            ready = [each.ready.remote() for each in self._strikers.values()]
            get_in_time(ready, READY_SECONDS, "Actors that are to strike")
        self._done, self._is_new = 0.0, True
        self._chaos = faults.Chaos(
            left=faults.strikes(self.plan, self.seed),
            done=lambda: self._done,
            workers=self._processes,
            standing=self._standing,
            strikers=self._strikers,
            fill=self.fill,
            struck=self.struck,
        )

    def came(self, done: float, total: float) -> None:
        """So much of the interval's work is done: strike, if it is time."""
        if self._chaos is None:
            return
        self._done = done / total
        if self._is_new:
            self._chaos.skip(self.attempt)
            self._is_new = False
        self._chaos.tick()

    def end(self) -> Iterator[str]:
        """The interval is over: why its numbers are not what the plan asked for."""
        there, self._chaos = self._chaos, None
        if there is None:
            return
        if there.left:
            kinds = ", ".join(strike.kind for strike in there.left)
            yield f"strikes that never came, for want of something to strike: {kinds}"
        if any(kind == "join" for kind, _ in faults.read_plan(self.plan)):
            for words in self._ask("failed_joins"):
                yield from (f"a node that was to join did not: {each}" for each in words)

    def _processes(self) -> list[tuple[str, int]]:
        standing = self._standing()
        names = [name for name in self._strikers if name in standing]
        answers = self._ask("workers", self.workers, of=names)
        return [(name, process) for name, found in zip(names, answers, strict=True) for process in found]

    def _standing(self) -> set[str]:
        import ray

        alive = {each["NodeID"] for each in ray.nodes() if each["Alive"]}
        return {node.name for node in self.nodes if node.node_id in alive}

    def _ask(self, method: str, *arguments: Any, of: Sequence[str] | None = None) -> list[list[Any]]:
        """What each striker answers: nothing, where its node is lost or asleep."""
        import ray
        from ray.exceptions import GetTimeoutError, RayActorError

        calls = [getattr(self._strikers[name], method).remote(*arguments) for name in of or self._strikers]
        answers = []
        for call in calls:
            try:
                answers.append(list(ray.get(call, timeout=faults.PAUSE_SECONDS)))
            except (RayActorError, GetTimeoutError):
                answers.append([])
        return answers
