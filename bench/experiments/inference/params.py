"""Declares what can be varied in inference, and what follows from it before a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from bench.data import digits
from bench.errors import BadInput
from bench.experiments import Profile
from bench.experiments.inference import arms, mlp
from bench.experiments.inference.predictors import DataPath
from bench.experiments.toolkit import faults, response_times
from bench.model import Topology, Value


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    actors: Annotated[
        int, Meta(ge=1, le=1_000, description="Actors, the nodes in turn.", extra={"unit": "ACTORS", "scaling": True})
    ] = 2
    batch: Annotated[int, Meta(ge=1, le=100_000, description="Inputs in one call.", extra={"unit": "INPUTS"})] = 10
    inputs: Annotated[
        int,
        Meta(ge=1, le=100_000_000, description="Inputs in one pass.", extra={"unit": "INPUTS", "size": True}),
    ] = 10_000
    data: Annotated[digits.Source, Meta(description="Handwritten digits, or random grey values.")] = "mnist"
    data_path: Annotated[
        DataPath,
        Meta(description="by-value: the driver sends each batch; by-reference: put once; local: made by each actor."),
    ] = "by-value"
    # No scaling series: calls that wait in an actor's queue add no worker, and only hide the way there and back.
    in_flight: Annotated[
        int, Meta(ge=1, le=1_000, description="Calls that one actor has in flight, at most.", extra={"unit": "CALLS"})
    ] = 4
    dtype: Annotated[mlp.Dtype, Meta(description="Type of inputs and weights.")] = "float64"
    open_loop: response_times.Choice = "poisson"
    open_loop_seconds: response_times.Seconds = 0.5
    chaos: faults.Choice = ""

    def __post_init__(self) -> None:
        if self.batch > self.inputs:
            raise BadInput(
                f"A batch of {self.batch} does not fit into {self.inputs} inputs.", "Lower batch, or raise inputs."
            )


_LAB: tuple[Mapping[str, tuple[Value, ...]], ...] = (
    # The study's two steps, 1 actor unbatched and 10 actors x 10, are corners of this; it changed both at once.
    {"actors": (1, 10), "batch": (1, 10, 100, 1_000), "inputs": (100_000,), "open_loop_seconds": (3.0,)},
    {
        "actors": (10,),
        "batch": (1_000,),
        "inputs": (100_000,),
        "data_path": ("by-reference", "local"),
        "open_loop_seconds": (3.0,),
    },
    # Long enough for a reading of CPU and network.
    {"actors": (10,), "batch": (10,), "inputs": (1_000_000,), "open_loop_seconds": (3.0,)},
)
_AS_STUDIED: Mapping[str, tuple[Value, ...]] = {
    "inputs": (100_000,),
    "data": ("random",),
    "in_flight": (100,),  # the study sends all calls at once: no actor ever waits for one
    "open_loop": ("off",),
}
PROFILES = {
    "tiny": Profile(
        help="Batches of 1,000 by value, which a second node slows down, and by reference.",
        grids=(
            {
                "actors": (2,),
                "batch": (1_000,),
                "inputs": (20_000,),
                "data_path": ("by-value", "by-reference"),
                "open_loop": ("off",),
            },
        ),
        blocks=6,
        warmups=1,
        samples=2,
        sample_seconds=1.5,
        peer_sample_seconds=0.25,
        arms=(arms.EMPTY_CALLS.name, arms.ALL_CPUS.name),
    ),
    "lab": Profile(
        help="1 and 10 actors by batches of 1 to 1,000; 100,000 inputs, and 1,000,000 once.",
        grids=_LAB,
        blocks=6,
        warmups=1,
        samples=5,
        sample_seconds=1.0,
        deadline_seconds=4 * 3600.0,
    ),
    "full": Profile(
        help="As lab, and sizes about Ray's inline limit, data paths, float32 and calls in flight.",
        grids=(
            *_LAB,
            # 16 float64 inputs go with the call, 17 through the object store; 32 and 33 of float32.
            {"actors": (1, 2, 4), "batch": (1, 10, 16, 17, 100, 1_000), "inputs": (100_000,)},
            {"actors": (1, 2, 4), "batch": (10_000,), "inputs": (100_000,), "in_flight": (1,)},  # 63 MB a call
            {"actors": (2,), "batch": (32, 33, 1_000), "inputs": (100_000,), "dtype": ("float32",)},
            {"actors": (2,), "batch": (10, 1_000), "inputs": (100_000,), "data_path": ("by-reference", "local")},
            {"actors": (2,), "batch": (1, 10), "inputs": (100_000,), "in_flight": (1, 2, 8)},
        ),
        blocks=12,
        warmups=1,
        samples=5,
        sample_seconds=1.0,
        deadline_seconds=4 * 3600.0,
    ),
    "study": Profile(
        help="The study's cells: 1 actor 1,519 inputs/s, 10 actors x 10 15,201, on two nodes 14,749; and two between.",
        grids=(
            # The study went from 1 x 1 to 10 x 10 at once; the two cells between them say which of both brought it.
            {"actors": (1, 10), "batch": (1, 10), **_AS_STUDIED},
            {"actors": (10,), "batch": (10,), **_AS_STUDIED, "inputs": (1_000_000,)},
        ),
        blocks=1,
        warmups=1,
        samples=5,
        sample_seconds=0.1,
        deadline_seconds=4 * 3600.0,
        arms=(arms.EMPTY_CALLS.name, arms.ALL_CPUS.name),
    ),
}


def busy_workers(params: Params, _: Topology) -> int:
    """Every actor answers at once."""
    return params.actors


def without_effect(params: Params) -> Collection[str]:
    """How long a load lasts that never comes."""
    return ("open_loop_seconds",) if params.open_loop == "off" else ()


FIRST_CALL_SECONDS, CALL_SECONDS = 0.015, 0.00024  # the rest is in flight with others
CARRIED_SECONDS = {"by-value": 5.5e-6, "by-reference": 1e-7, "local": 0.0}  # of an input with its call, in float64
NUMPY_SECONDS = 1.15e-5  # of an input, in batches, on two cores
ONE_BY_ONE_SECONDS = 3e-5  # of an input by itself


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """What calls cost, what their arguments do, and what numpy takes for the inputs."""
    calls = FIRST_CALL_SECONDS + -(-params.inputs // params.batch) * CALL_SECONDS
    carried = params.inputs * CARRIED_SECONDS[params.data_path]
    answered = params.inputs * NUMPY_SECONDS
    loads = response_times.guess_pass_seconds(params.open_loop, params.open_loop_seconds)
    return {
        arms.RAY.name: (calls + carried + answered, *loads),
        arms.EMPTY_CALLS.name: (calls + carried,),
        arms.ALL_CPUS.name: (answered,),
        arms.BARE_CALLS.name: (calls,),
        arms.ONE_BY_ONE.name: (params.inputs * ONE_BY_ONE_SECONDS,),
        arms.POOL.name: (calls / 4 + params.inputs * CARRIED_SECONDS["by-value"] + answered,),
        arms.UNWATCHED.name: (calls + carried + answered,),
    }


def guess_other_seconds(params: Params) -> float:
    """Actors and peers start, and the actors answer all inputs once."""
    return 4.0 + guess_pass_seconds(params)[arms.RAY.name][0]
