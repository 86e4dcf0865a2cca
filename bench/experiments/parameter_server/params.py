"""Declares what can be varied in a training, its profiles, and what a run needs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from bench.data import images
from bench.errors import BadInput, DoesNotFit
from bench.experiments import ArmCheck, Profile
from bench.experiments.parameter_server import arms, models, wire
from bench.experiments.parameter_server.study import DEEP_WORKERS, SIMPLE_WORKERS
from bench.experiments.toolkit import faults
from bench.model import Arm, Topology, Value

STUDY_TARGETS = {"convolution": (40.0, 40.0), "lenet": (40.0, 40.0), "resnet18": (60.0, 55.0), "vgg16": (60.0, 55.0)}
STEP_SECONDS = {"convolution": 0.006, "lenet": 0.02, "resnet18": 4.0, "vgg16": 2.5}  # a batch of 100 on one thread
FORWARD = 1 / 3  # of a step: what looking at a batch takes
MESSAGE_SECONDS = 0.004  # of a worker and its server, to and fro
MESSAGE_SECONDS_A_PARAMETER = 1e-8
MIB_AN_IMAGE = {"convolution": 0.1, "lenet": 0.2, "resnet18": 12.0, "vgg16": 6.0}  # of what a gradient keeps
COPIES = 6  # of the weights in a worker: its own, gloo's, gradients of both, what is under way
SHARE_OF_MEMORY = 0.5  # that workers may take: processes, servers and the object store have the rest

Data = Literal["cifar10", "mnist-small-32", "synthetic-32"]


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    workers: Annotated[
        int, Meta(ge=1, le=1_000, description="Workers, the nodes in turn.", extra={"unit": "WORKERS", "scaling": True})
    ] = 2
    model: Annotated[
        models.Name,
        Meta(description="Network: one convolution; LeNet; ResNet-18; VGG16.", extra={"changes": "sample"}),
    ] = "convolution"
    data: Annotated[
        Data, Meta(description="Training set: cifar10 must be seeded; digits are included; synthetic is generated.")
    ] = "cifar10"
    batch: Annotated[
        int, Meta(ge=1, le=10_000, description="Images in each worker's batch.", extra={"unit": "IMAGES"})
    ] = 100
    learning_rate: Annotated[float, Meta(ge=0.0, le=100.0, description="Learning rate.", extra={"unit": "RATE"})] = 1e-4
    momentum: Annotated[
        float, Meta(ge=0.0, le=0.999, description="Momentum of gradient descent.", extra={"unit": "SHARE"})
    ] = 0.0
    iterations: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000_000,
            description="Updates of the weights; asynchronous arms do twice as many.",
            extra={"unit": "ITERATIONS", "size": True},
        ),
    ] = 10_000
    evaluate_every: Annotated[
        int,
        Meta(
            ge=1, le=1_000_000, description="Iterations between evaluations of accuracy.", extra={"unit": "ITERATIONS"}
        ),
    ] = 10
    target_accuracy: Annotated[
        float,
        Meta(
            ge=0.0,
            le=100.0,
            description="Target accuracy; 0: that of the study, 40, 60 or 55.",
            extra={"unit": "PERCENT"},
        ),
    ] = 0.0
    transport: Annotated[
        wire.Transport,
        Meta(
            description="objects: an array a tensor; flat: one buffer; inline: that in pieces which ride in the call;"
            " sharded: servers that have a part each; compressed: float16, its error made good; direct: TCP connections of the"
            " workers' own, past Ray's calls."
        ),
    ] = "direct"
    shards: Annotated[
        int,
        Meta(ge=1, le=100, description="Servers with transport=sharded, the nodes in turn.", extra={"unit": "SERVERS"}),
    ] = 2
    prefetch: Annotated[
        bool, Meta(description="Make the next batch while gradients travel.", extra={"unit": "FLAG"})
    ] = True
    staleness_bound: Annotated[
        int,
        Meta(
            ge=-1,
            le=1_000_000,
            description="Steps that an asynchronous worker may be ahead of the slowest; -1: unbounded.",
            extra={"unit": "STEPS"},
        ),
    ] = -1
    checkpoint_every: Annotated[
        int,
        Meta(ge=0, le=10_000_000, description="Iterations between checkpoints; 0: none.", extra={"unit": "ITERATIONS"}),
    ] = 1_000
    resume: Annotated[
        str,
        Meta(
            description="Checkpoint on the head node from which synchronous training resumes.", extra={"unit": "FILE"}
        ),
    ] = ""
    crowded: Annotated[
        bool, Meta(description="Allow more workers than CPUs; reports mark it.", extra={"unit": "FLAG"})
    ] = False
    chaos: faults.Choice = ""

    def __post_init__(self) -> None:
        if self.chaos and self.transport == "compressed":
            raise BadInput(
                "What half precision lost is lost with a worker: its weights are then no other run's.",
                "Take another transport with this chaos.",
            )

    @property
    def servers(self) -> int:
        return self.shards if self.transport == "sharded" else 1

    def target(self, arm: Arm) -> float:
        """Accuracy that `arm` is to reach, per cent."""
        return self.target_accuracy or STUDY_TARGETS[self.model][arm == arms.ASYNC]


_WORKER_COUNTS = (1, 2, 5, 10, 15, 20)
_TRANSPORTS = ("objects", "flat", "inline", "sharded", "compressed", "direct")
_AS_STUDIED: Mapping[str, tuple[Value, ...]] = {
    "transport": ("objects",),  # without any optimisation of what travels
    "crowded": (True,),
    "evaluate_every": (10,),
    "iterations": (10_000,),
    "batch": (100,),
    "learning_rate": (1e-4,),
    "data": ("cifar10",),
}
_LAB: tuple[Mapping[str, tuple[Value, ...]], ...] = (
    # The study's messages, without any optimisation of what travels; a ResNet's weights are kept less often.
    {"model": ("convolution",), "workers": _WORKER_COUNTS, "transport": ("objects",)},
    {"model": ("resnet18",), "workers": _WORKER_COUNTS, "transport": ("objects",), "evaluate_every": (1_000,)},
)
PROFILES = {
    "tiny": Profile(
        help="One convolution on digits, 2 workers, 200 iterations.",
        grids=(
            {
                "model": ("convolution",),
                "data": ("mnist-small-32",),
                "workers": (2,),
                "iterations": (200,),
                "learning_rate": (0.05,),
                "evaluate_every": (20,),
                "target_accuracy": (90.0,),
            },
        ),
        blocks=1,
        warmups=0,
        samples=1,
        sample_seconds=0.25,
    ),
    "lab": Profile(
        help="The study's scaling series of workers with CIFAR-10, as far as there are CPUs.",
        grids=_LAB,
        blocks=6,
        warmups=0,
        samples=1,
        sample_seconds=0.25,
        deadline_seconds=7 * 24 * 3600.0,
    ),
    "full": Profile(
        help="As lab, VGG16, every transport and bounded staleness.",
        grids=(
            *_LAB,
            {"model": ("vgg16",), "workers": _WORKER_COUNTS, "transport": ("objects",), "evaluate_every": (1_000,)},
            {"model": ("convolution", "lenet"), "workers": (2, 10), "transport": _TRANSPORTS, "evaluate_every": (50,)},
            {"model": ("lenet",), "workers": (10,), "staleness_bound": (0, 2, 10), "evaluate_every": (50,)},
        ),
        blocks=6,
        warmups=0,
        samples=1,
        sample_seconds=0.25,
        deadline_seconds=7 * 24 * 3600.0,
    ),
    "study": Profile(
        help="The study's workers, 1 to 20: one convolution to 40 %, over 4.0 times as fast by ten; ResNet-18 to 60 and 55 %.",
        grids=(
            {"model": ("convolution",), "workers": SIMPLE_WORKERS, **_AS_STUDIED},
            {"model": ("resnet18",), "workers": DEEP_WORKERS, **_AS_STUDIED},
        ),
        blocks=1,
        warmups=0,
        samples=1,
        sample_seconds=0.25,
        deadline_seconds=7 * 24 * 3600.0,
        arms=(arms.ASYNC.name, arms.ONE_WORKER.name),
    ),
}


def busy_workers(params: Params, _: Topology) -> int:
    """Every worker trains at once."""
    return params.workers


def data_sets(params: Params) -> tuple[str, ...]:
    """The sets that a run needs."""
    return (params.data,)


def check_fits(params: Params, topology: Topology) -> None:
    """Raise DoesNotFit where workers have no CPU each, or take more of a node than they may: the kernel would kill them."""
    if params.workers > topology.totals["CPUs"] and not params.crowded:
        raise DoesNotFit(
            f"parameter-server with workers={params.workers} needs as many CPUs, and {topology.name} has"
            f" {topology.totals['CPUs']}.",
            "Give more --cpus, or fewer workers, or --set crowded=true to run them all the same.",
        )
    weights = 4 * COPIES * (models.PARAMETERS[params.model] + models.STATISTICS[params.model])
    each = params.batch * MIB_AN_IMAGE[params.model] * 2**20 + weights
    needed = math.ceil(params.workers / topology.nodes) * each
    if needed > SHARE_OF_MEMORY * topology.memory_bytes_per_node:
        raise DoesNotFit(
            f"Workers with {params.model} and batches of {params.batch} need {needed / 2**20:.0f} MiB on each node of"
            f" {topology.name}, and half of its memory is {SHARE_OF_MEMORY * topology.memory_bytes_per_node / 2**20:.0f}"
            " MiB.",
            "Lower batch or workers, or give the nodes more with --memory-mib.",
        )


def without_effect(params: Params) -> Collection[str]:
    """What only allows a run; the number of servers, where the transport has one; a target that is the study's."""
    idle = {"crowded"} | (set() if params.transport == "sharded" else {"shards"})
    is_study = {params.target(arm) for arm in arms.ARMS} == set(STUDY_TARGETS[params.model])
    return idle | ({"target_accuracy"} if is_study else set())


def arm_checks(params: Params) -> tuple[ArmCheck, ...]:
    """The weights of synchronous training, which half precision changes."""
    if params.transport == "compressed":
        return ()
    return (
        ArmCheck(
            what=f"that {arms.SYNC.name} and {arms.GLOO.name} have the same weights after one iteration",
            needs=(arms.GLOO,),
        ),
    )


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """One training by every arm, of workers that share two cores."""
    step = STEP_SECONDS[params.model] * params.batch / 100
    message = MESSAGE_SECONDS + models.PARAMETERS[params.model] * MESSAGE_SECONDS_A_PARAMETER
    together = step * max(1.0, params.workers / 2)  # a step of all workers
    sync = (params.iterations * (together + message),)
    return {
        arms.SYNC.name: sync,
        arms.ASYNC.name: (2 * params.iterations * (step + message) / min(2, params.workers),),
        arms.ONE_WORKER.name: (params.iterations * (step + message),),
        arms.ONE_THREAD.name: (params.iterations * step,),
        arms.ALL_THREADS.name: (params.iterations * step,),
        arms.GLOO.name: (params.iterations * (together + message / 2),),
        arms.UNWATCHED.name: sync,
    }


def guess_other_seconds(params: Params) -> float:
    """Workers import torch and join."""
    return 14.0 + 2.0 * params.workers


def guess_after_seconds(params: Params) -> dict[str, float]:
    """What each arm trained is evaluated, but for that of the control."""
    batches = images.HELD_OUT[params.data] / 100
    states = params.iterations / params.evaluate_every
    once = states * batches * STEP_SECONDS[params.model] * FORWARD
    return {
        arm.name: once * (2 if arm == arms.ASYNC else 1)  # whose iterations are twice as many
        for arm in arms.ARMS
        if arm != arms.UNWATCHED
    }
