"""Declares what can be varied in a search, its profiles, and what a run needs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from bench.errors import BadInput, DoesNotFit
from bench.experiments import Profile
from bench.experiments.tune import arms
from bench.experiments.tune.space import LEAST_HIDDEN, Search
from bench.experiments.tune.trials import cap
from bench.model import Topology, Value

Scheduler = Literal["fifo", "asha", "pbt"]
Source = Literal["mnist-small", "mnist", "synthetic"]
JudgedBy = Literal["training", "held-out"]

# To learn from until the default target is reached: the study's trials on MNIST took 12 to 55 iterations of 60,000.
ENOUGH_IMAGES: Mapping[Source, int] = {"mnist-small": 350_000, "mnist": 1_500_000, "synthetic": 350_000}
# Until the first trial trains: TensorFlow is imported by one process alone, by two at once, or by Tune's actors.
ALONE_SECONDS, POOL_SECONDS, TUNE_SECONDS = 4.6, 8.5, 9.5


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    # An amount of work, no count of workers: the CPUs decide how many train at once, and a speed-up means nothing.
    trials: Annotated[
        int, Meta(ge=1, le=1_000, description="Trials of one search.", extra={"unit": "TRIALS", "amount": True})
    ] = 10
    cpus_per_trial: Annotated[
        int, Meta(ge=1, le=64, description="CPUs that Tune reserves for a trial.", extra={"unit": "CPUS"})
    ] = 1
    threads: Annotated[
        int,
        Meta(
            ge=0,
            le=64,
            description="Threads of TensorFlow in a trial; 0: as many as its CPUs.",
            extra={"unit": "THREADS"},
        ),
    ] = 0
    search: Annotated[Search, Meta(description="How configurations are chosen.")] = "random"
    scheduler: Annotated[
        Scheduler,
        Meta(description="Trial scheduler: fifo ends no trial early, asha ends the worse ones, pbt changes them."),
    ] = "fifo"
    max_iterations: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Maximum iterations of a trial.",
            extra={"unit": "ITERATIONS", "changes": "trial"},
        ),
    ] = 100
    target_accuracy: Annotated[
        float,
        Meta(
            ge=0.1, le=1.0, description="Accuracy at which a trial ends.", extra={"unit": "SHARE", "changes": "trial"}
        ),
    ] = 0.99
    judged_by: Annotated[
        JudgedBy,
        Meta(
            description="Images whose accuracy must reach the target; both accuracies are recorded.",
            extra={"changes": "trial"},
        ),
    ] = "training"
    iteration_samples: Annotated[
        int,
        Meta(
            ge=128,
            le=1_000_000,
            description="Images trained on in one iteration.",
            extra={"unit": "IMAGES", "size": True},
        ),
    ] = 12_000
    batch: Annotated[
        int, Meta(ge=1, le=10_000, description="Images in one step of the training.", extra={"unit": "IMAGES"})
    ] = 128
    hidden_below: Annotated[
        int,
        Meta(
            ge=33,
            le=4_096,
            description="Upper bound of units in the hidden layer, exclusive; the lower bound is 32.",
            extra={"unit": "UNITS", "changes": "trial"},
        ),
    ] = 512
    data: Annotated[Source, Meta(description="4,000 digits, all of MNIST (to be seeded), or synthetic images.")] = (
        "mnist-small"
    )
    reuse_actors: Annotated[bool, Meta(description="Reuse an actor for the next trial.")] = True
    report_seconds: Annotated[
        float,
        Meta(
            ge=0.0,
            le=60.0,
            description="Seconds between reports of a trial; with 0, asha, pbt or checkpoints: one an iteration.",
            extra={"unit": "SECONDS"},
        ),
    ] = 0.5
    checkpoint_every: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description="Iterations between checkpoints; 0: only those that pbt needs.",
            extra={"unit": "ITERATIONS"},
        ),
    ] = 0
    checkpoint_path: Annotated[
        str, Meta(description="Folder of checkpoints; empty: a temporary folder of the head.", extra={"unit": "FOLDER"})
    ] = ""

    def __post_init__(self) -> None:
        if self.batch > self.iteration_samples:
            raise BadInput(
                f"A batch of {self.batch} does not fit into {self.iteration_samples} images.",
                "Lower batch, or raise iteration_samples.",
            )
        if self.search == "optuna" and self.scheduler == "pbt":
            raise BadInput("PBT changes what Optuna has chosen.", "Take search=random, or another scheduler.")

    @property
    def threads_per_trial(self) -> int:
        return self.threads or self.cpus_per_trial

    @property
    def is_silent(self) -> bool:
        """Whether a trial may do several iterations before it reports: what ends, changes or saves trials may not wait."""
        return self.scheduler == "fifo" and not self.checkpoint_every

    @property
    def is_resumable(self) -> bool:
        """Whether a trial does not depend on those before: what is left can then be done without them."""
        return self.search != "optuna" and self.scheduler == "fifo"

    @property
    def is_repeatable(self) -> bool:
        """Whether each trial comes to the same, bit by bit, wherever and with whomever it runs."""
        return self.is_resumable and self.threads_per_trial == 1

    @property
    def is_dealt_again(self) -> bool:
        """Whether what Optuna chose comes to the same, bit by bit, when the pool does it."""
        return self.search == "optuna" and self.scheduler == "fifo" and self.threads_per_trial == 1


_STUDY_GRIDS: tuple[Mapping[str, tuple[Value, ...]], ...] = (
    {"trials": (10,), "cpus_per_trial": (1,)},
    {"trials": (16,), "cpus_per_trial": (1, 2)},
)
PROFILES = {
    "tiny": Profile(
        help="4 trials of small networks.",
        grids=({"trials": (4,), "hidden_below": (64,), "max_iterations": (24,)},),
        blocks=6,
        warmups=0,
        samples=1,
        sample_seconds=0.1,
    ),
    "lab": Profile(
        help="The study's scaling series: 10 trials, 16 trials, 16 trials of 2 CPUs each. Needs nodes of 2 CPUs.",
        grids=_STUDY_GRIDS,
        blocks=6,
        warmups=0,
        samples=2,
        sample_seconds=1.0,
        deadline_seconds=4 * 3600.0,
    ),
    "full": Profile(
        help="As lab, and other searches and schedulers, new actors for each trial, and synthetic images.",
        grids=(
            *_STUDY_GRIDS,
            {"trials": (16,), "search": ("grid", "optuna")},
            {"trials": (16,), "scheduler": ("asha", "pbt")},
            {"trials": (16,), "reuse_actors": (False,)},
            {"trials": (16,), "threads": (2,)},  # the study's: two threads on one CPU
            {"trials": (16,), "data": ("synthetic",)},
        ),
        blocks=12,
        warmups=0,
        samples=2,
        sample_seconds=1.0,
        deadline_seconds=4 * 3600.0,
    ),
    "study": Profile(
        help="The study's searches: 10 trials of 1 CPU 90.19 s, effect 4.58; 16 of 1, 34.89; 16 of 2, 187.14 s.",
        grids=tuple(
            {
                **grid,
                "threads": (2,),
                "scheduler": ("asha",),
                "max_iterations": (400,),
                "iteration_samples": (60_000,),
                "data": ("mnist",),
            }
            for grid in _STUDY_GRIDS
        ),
        blocks=1,
        warmups=0,
        samples=1,
        sample_seconds=1.0,
        deadline_seconds=24 * 3600.0,
        arms=(arms.EMPTY_TRIALS.name,),
    ),
}


def check_fits(params: Params, topology: Topology) -> None:
    """Raise DoesNotFit where a trial is larger than a node: Tune would wait for one for ever."""
    if params.cpus_per_trial > topology.cpus_per_node:
        raise DoesNotFit(
            f"A trial of tune needs {params.cpus_per_trial} CPUs on one node, and a node of {topology.name}"
            f" has {topology.cpus_per_node}.",
            f"Give more --cpus, or --topology single, or --set cpus_per_trial={topology.cpus_per_node}.",
        )


def busy_workers(params: Params, topology: Topology) -> int:
    """The threads of all trials that there is room for."""
    at_once = cap([topology.cpus_per_node] * topology.nodes, params.cpus_per_trial)
    return min(at_once, params.trials) * (params.threads or params.cpus_per_trial)


def data_sets(params: Params) -> tuple[str, ...]:
    """The sets that a run needs."""
    return (params.data,)


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """All trials on two cores: TensorFlow is imported by each arm anew, and most trials reach their target soon."""
    until_target = ENOUGH_IMAGES[params.data] if params.target_accuracy < 1 else math.inf
    images_of_trial = min(params.max_iterations * params.iteration_samples, until_target)
    image_seconds = 2e-6 + 3.3e-8 * (LEAST_HIDDEN + params.hidden_below) / 2
    work = params.trials * images_of_trial * image_seconds
    return {
        arms.RAY.name: (TUNE_SECONDS + work / 2,),
        arms.EMPTY_TRIALS.name: (4.5 + 0.2 * params.trials,),
        arms.SEQUENTIAL.name: (ALONE_SECONDS + work,),
        arms.POOL.name: (POOL_SECONDS + work / 2,),
    }


def without_effect(params: Params) -> Collection[str]:
    """How seldom a trial may report, where it may not be silent; threads, where they are the trial's CPUs."""
    idle = set() if params.is_silent else {"report_seconds"}
    return idle | ({"threads"} if params.threads_per_trial == params.cpus_per_trial else set())
