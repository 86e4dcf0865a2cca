"""Runs what Ray Tune is compared with: the same trials one after another in one process, and in a pool of processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench.context import NodeSlot
from bench.data.images import Images
from bench.errors import RunFailed
from bench.experiments.toolkit.process_pool import PeerProcesses, ProcessPool
from bench.experiments.tune.search import SearchResult
from bench.experiments.tune.space import LEAST_HIDDEN, LR, MOMENTUM
from bench.experiments.tune.training import Config, IterationReport, TrainingSettings, train
from bench.experiments.tune.trials import TrialRun

SEARCH_SECONDS = 8 * 3600.0
READY_SECONDS = 60.0

Item = tuple[int, Config]
Done = tuple[int, Config, list[IterationReport]]


@dataclass(frozen=True, kw_only=True)
class PeerResult:
    """What a peer process did, on its machine's clock."""

    begin: float
    done: list[Done]


@dataclass(frozen=True)
class TrialWorker:
    """Trains in a process of a pool."""

    images: Images
    training: TrainingSettings
    node: str

    def train(self, item: Item) -> Done:
        """A whole trial."""
        number, config = item
        reports = train(config, self.images, self.training)
        return number, config, [replace(report, node=self.node) for report in reports]


class TuningPeer:
    """A process on a node that starts new processes which train."""

    def __init__(self, images: Images, training: TrainingSettings, node: str) -> None:
        self._training = training
        self._pool = partial(ProcessPool, TrialWorker, images, training, node, threads=training.threads)

    def ready(self) -> bool:
        """Says that it is."""
        return True

    def search(self, items: Sequence[Item], processes: int) -> PeerResult:
        """The trials of a list, each in whichever process is free."""
        begin = time.monotonic()
        with self._pool(processes=processes) as pool:
            return PeerResult(begin=begin, done=list(pool.results("train", items, seconds=SEARCH_SECONDS)))

    def search_by_optuna(self, trials: int, hidden_below: int) -> PeerResult:
        """One trial after another, each chosen by Optuna when it knows what came of the ones before."""
        import optuna

        begin = time.monotonic()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=self._training.seed % 2**32)
        )
        done = []
        with self._pool(processes=1) as pool:
            for number in range(trials):
                asked = study.ask()
                config = Config(
                    lr=asked.suggest_float("lr", *LR),
                    momentum=asked.suggest_float("momentum", *MOMENTUM),
                    hidden=asked.suggest_int("hidden", LEAST_HIDDEN, hidden_below - 1),
                )
                (trial,) = pool.results("train", [(number, config)], seconds=SEARCH_SECONDS)
                study.tell(asked, trial[2][-1].accuracy(self._training.judged_by))
                done.append(trial)
        return PeerResult(begin=begin, done=done)


@dataclass(frozen=True, kw_only=True)
class TuningPeers:
    """A peer process on each node."""

    processes: PeerProcesses
    training: TrainingSettings
    cpus_per_trial: int

    def one_after_another(self, items: Sequence[Item]) -> SearchResult:
        """All trials in one process of the first node."""
        return self._result("search", [(items, 1)])

    def by_optuna(self, trials: int, hidden_below: int) -> SearchResult:
        """As many trials as Optuna chooses by itself, in one process of the first node."""
        return self._result("search_by_optuna", [(trials, hidden_below)])

    def in_pools(self, items: Sequence[Item]) -> SearchResult:
        """The trials dealt to the nodes by their CPUs, each node's in a pool of as many processes as go there."""
        slots = [node.cpus // self.cpus_per_trial for node in self.processes.nodes]
        dealt = zip(deal(items, slots), slots, strict=True)
        return self._result("search", [(part, min(count, len(part))) if part else None for part, count in dealt])

    def _result(self, method: str, arguments: Sequence[Sequence[Any] | None]) -> SearchResult:
        """What all peers did. Times are since each one begin, for machines do not share a clock."""
        parts = self.processes.call(method, arguments, seconds=SEARCH_SECONDS)
        trials = [
            TrialRun(number=number, config=config, reports=reports)
            for part in parts
            for number, config, reports in part.done
        ]
        if not all(trial.reports for trial in trials):
            raise RunFailed("A peer's trial reported nothing.")
        result = SearchResult(trials=sorted(trials, key=lambda trial: trial.number), begin=0.0)
        for part in parts:
            reports = [report for _, _, reports in part.done for report in reports]
            for report in sorted(reports, key=lambda report: report.begin):
                result.note_report(report, report.end - part.begin, self.training)
        return result


def start_peers(
    nodes: Sequence[NodeSlot], images: Any, training: TrainingSettings, *, cpus_per_trial: int
) -> TuningPeers:
    """Peer processes on all nodes, ready; `images` is their reference in the object store."""
    processes = PeerProcesses.start(TuningPeer, nodes, lambda node: (images, training, node.name))
    processes.call("ready", [()] * len(nodes), seconds=READY_SECONDS)
    return TuningPeers(processes=processes, training=training, cpus_per_trial=cpus_per_trial)


def deal(items: Sequence[Item], slots: Sequence[int]) -> list[list[Item]]:
    """`items` one by one to the slots of all nodes in turn."""
    order = [node for place in range(max(slots)) for node, count in enumerate(slots) if place < count]
    dealt: list[list[Item]] = [[] for _ in slots]
    for index, item in enumerate(items):
        dealt[order[index % len(order)]].append(item)
    return dealt
