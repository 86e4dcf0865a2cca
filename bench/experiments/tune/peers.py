"""What Ray Tune is compared with: the same trials one after another in one process, and in a pool of processes.

Ray places one host process on each node, which starts the processes that train; within a search Ray carries nothing.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.context import NodeSlot
from bench.data.images import Images
from bench.errors import RunFailed, RunInvalid
from bench.experiments.toolkit.placement import get_in_time, on
from bench.experiments.toolkit.spawning import THREAD_VARIABLES, environment, without_main_script
from bench.experiments.tune.numbers import TrialRun
from bench.experiments.tune.search import Found
from bench.experiments.tune.space import LEAST_HIDDEN, LR, MOMENTUM
from bench.experiments.tune.training import Config, Course, Report

SEARCH_SECONDS = 8 * 3600.0
READY_SECONDS = 60.0

Item = tuple[int, Config]
Done = tuple[int, Config, list[Report]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a host did, on its machine's clock."""

    began: float
    done: list[Done]


class Host:
    """A process on a node that starts processes which train."""

    def __init__(self, images: Images, course: Course, node: str) -> None:
        self._images, self._course, self._node = images, course, node

    def ready(self) -> bool:
        """Says that it is."""
        return True

    def search(self, items: Sequence[Item], processes: int) -> Part:
        """The trials of a list, each in whichever process is free."""
        began = time.monotonic()
        with self._pool(processes) as pool:
            waiting = pool.imap_unordered(_train_here, items)
            done = [waiting.next(timeout=SEARCH_SECONDS) for _ in items]
        return Part(began=began, done=[self._placed(each) for each in done])

    def search_by_optuna(self, samples: int, hidden_below: int) -> Part:
        """One trial after another, each chosen by Optuna when it knows what came of the ones before."""
        import optuna

        began = time.monotonic()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=self._course.seed % 2**32)
        )
        done = []
        with self._pool(1) as pool:
            for number in range(samples):
                asked = study.ask()
                config = Config(
                    lr=asked.suggest_float("lr", *LR),
                    momentum=asked.suggest_float("momentum", *MOMENTUM),
                    hidden=asked.suggest_int("hidden", LEAST_HIDDEN, hidden_below - 1),
                )
                found = pool.apply_async(_train_here, ((number, config),)).get(timeout=SEARCH_SECONDS)
                study.tell(asked, found[2][-1].accuracy(self._course.judged_by))
                done.append(self._placed(found))
        return Part(began=began, done=done)

    def _pool(self, processes: int) -> Any:
        threads = dict.fromkeys(THREAD_VARIABLES, str(self._course.threads))
        with environment(threads), without_main_script():
            return multiprocessing.get_context("spawn").Pool(processes, _hold, (self._images, self._course))

    def _placed(self, done: Done) -> Done:
        number, config, reports = done
        return number, config, [replace(report, node=self._node) for report in reports]


@dataclass(frozen=True)
class Hosts:
    """A host on each node."""

    actors: Sequence[Any]
    nodes: Sequence[NodeSlot]
    cpus_per_trial: int

    def one_after_another(self, items: Sequence[Item], course: Course) -> Found:
        """All trials in one process of the first node."""
        return _found(self._gather([self.actors[0].search.remote(items, 1)]), course)

    def by_optuna(self, samples: int, hidden_below: int, course: Course) -> Found:
        """As many trials as Optuna chooses by itself, in one process of the first node."""
        return _found(self._gather([self.actors[0].search_by_optuna.remote(samples, hidden_below)]), course)

    def in_pools(self, items: Sequence[Item], course: Course) -> Found:
        """The trials dealt to the nodes by their CPUs, each node's in a pool of as many processes as go there."""
        seats = [node.cpus // self.cpus_per_trial for node in self.nodes]
        dealt = deal(items, seats)
        waiting = [
            actor.search.remote(part, min(count, len(part)))
            for actor, part, count in zip(self.actors, dealt, seats, strict=True)
            if part
        ]
        return _found(self._gather(waiting), course)

    def close(self) -> None:
        """End the hosts; the processes of their pools have ended before."""
        import ray

        for actor in self.actors:
            ray.kill(actor)

    def _gather(self, references: Sequence[Any]) -> list[Part]:
        from ray.exceptions import RayActorError

        try:
            return get_in_time(references, SEARCH_SECONDS, "Peers that train")
        except RayActorError as error:
            raise RunInvalid("A peer was lost in the midst of its trials, with its process or its node.") from error


def start_hosts(nodes: Sequence[NodeSlot], images: Any, course: Course, *, cpus_per_trial: int) -> Hosts:
    """Hosts on all nodes, ready; `images` is their reference in the object store."""
    import ray

    actors = [
        ray.remote(Host).options(num_cpus=0, scheduling_strategy=on(node)).remote(images, course, node.name)
        for node in nodes
    ]
    get_in_time([actor.ready.remote() for actor in actors], READY_SECONDS, "Peers that start")
    return Hosts(actors, nodes, cpus_per_trial)


def deal(items: Sequence[Item], seats: Sequence[int]) -> list[list[Item]]:
    """`items` one by one to the seats of all nodes in turn."""
    order = [node for place in range(max(seats)) for node, count in enumerate(seats) if place < count]
    dealt: list[list[Item]] = [[] for _ in seats]
    for index, item in enumerate(items):
        dealt[order[index % len(order)]].append(item)
    return dealt


def _found(parts: Sequence[Part], course: Course) -> Found:
    """What all hosts did. Times are since each one began, for machines do not share a clock."""
    trials = [
        TrialRun(number=number, config=config, reports=reports)
        for part in parts
        for number, config, reports in part.done
    ]
    if not all(trial.reports for trial in trials):
        raise RunFailed("A peer's trial said nothing.")
    found = Found(trials=sorted(trials, key=lambda trial: trial.number), began=0.0)
    reached = []
    for part in parts:
        reports = [report for _, _, reports in part.done for report in reports]
        for report in sorted(reports, key=lambda report: report.begin):
            found.know(report, report.end - part.began)
        reached += [report.end - part.began for report in reports if report.accuracy(course.judged_by) >= course.target]
    found.reached = min(reached, default=None)
    return found


_images: Images  # in a process of a pool: what its initializer was given
_course: Course


def _hold(images: Images, course: Course) -> None:
    global _images, _course
    _images, _course = images, course


def _train_here(item: Item) -> Done:
    from bench.experiments.tune.training import train

    number, config = item
    return number, config, train(config, _images, _course)
