"""Declares what can be varied in a sweep of transfers, its profiles, and what a run needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from bench.errors import BadInput, DoesNotFit
from bench.experiments import ArmCheck, Profile
from bench.experiments.network import fits
from bench.experiments.network.arms import ARMS, IPERF, SOCKETS, applies
from bench.experiments.network.points import WORD_BYTES, Point, sweep
from bench.model import Topology

CHUNK_BYTES = 5 * 2**20  # in which Ray 2.60 sends objects where nothing is set
BYTES_PER_SECOND = 0.6e9  # of all transports alike: only to guess how long a session takes


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    smallest: Annotated[
        int, Meta(ge=64, le=2**26, description="Smallest payload; a multiple of 8.", extra={"unit": "BYTES"})
    ] = 64
    largest: Annotated[int, Meta(ge=64, le=2**28, description="Largest payload.", extra={"unit": "BYTES"})] = 64 * 2**20
    growth: Annotated[
        int, Meta(ge=2, le=2**22, description="Factor from one payload size to the next.", extra={"unit": "TIMES"})
    ] = 32
    most_streams: Annotated[
        int,
        Meta(ge=1, le=64, description="Most payloads in flight: 1, 4, 16 up to this.", extra={"unit": "PAYLOADS"}),
    ] = 4
    receivers: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="Receivers of a broadcast, the nodes in turn; at least one a node.",
            extra={"unit": "ENDS"},
        ),
    ] = 2

    chunk_bytes: Annotated[
        int,
        Meta(
            ge=2**16,
            le=2**28,
            description="Chunks in which nodes send an object; other than the default takes a cluster of its own.",
            extra={"unit": "BYTES"},
        ),
    ] = CHUNK_BYTES
    store_pages: Annotated[
        Literal["at-use", "at-start"],
        Meta(description="When the pages of the object store are allocated; at-start takes a cluster of its own."),
    ] = "at-use"

    def __post_init__(self) -> None:
        if self.smallest % WORD_BYTES:
            raise BadInput(f"smallest={self.smallest} is no multiple of {WORD_BYTES}.", "Give one that is.")
        if self.smallest > self.largest:
            raise BadInput(
                f"smallest={self.smallest} is more than largest={self.largest}.", "Lower smallest, or raise largest."
            )

    @property
    def points(self) -> list[Point]:
        """The sweep of one run."""
        return sweep(smallest=self.smallest, largest=self.largest, growth=self.growth, most_streams=self.most_streams)

    @property
    def reference(self) -> Point:
        """The point of the headline: the largest payload, one at a time."""
        return max((point for point in self.points if point.streams == 1), key=lambda point: point.size)


PROFILES = {
    "tiny": Profile(
        help="64 B, 64 KiB and 64 MiB, one at a time. 2 blocks: too few for a verdict.",
        grids=({"growth": (1024,), "most_streams": (1,)},),
        blocks=2,  # most of a run goes by before it times anything
        warmups=1,
        samples=1,
        sample_seconds=0.01,
    ),
    "lab": Profile(
        help="64 B to 64 MiB by powers of 8 and 32, 1 to 16 at once.",
        grids=({"growth": (8,), "largest": (2**24,), "most_streams": (16,)}, {"growth": (32,), "most_streams": (16,)}),
        blocks=6,
        warmups=1,
        samples=5,
        sample_seconds=0.2,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="64 B to 64 MiB by powers of 2, 1 to 16 at once.",
        grids=({"growth": (2,), "most_streams": (16,)},),
        blocks=12,
        warmups=1,
        samples=5,
        sample_seconds=0.2,
        deadline_seconds=4 * 3600.0,
    ),
}


def ray_settings(params: Params) -> dict[str, str]:
    """What the nodes are started with: nothing, where Ray's own settings are meant."""
    settings = {}
    if params.chunk_bytes != CHUNK_BYTES:
        settings["object_manager_default_chunk_size"] = str(params.chunk_bytes)
    if params.store_pages == "at-start":
        settings["preallocate_plasma_memory"] = "1"
    return settings


def check_fits(params: Params, topology: Topology) -> None:
    """Raise DoesNotFit where receivers are fewer than nodes, or the largest payloads take more memory or object store than a node has."""
    if topology.nodes > params.receivers:
        raise DoesNotFit(
            f"network with receivers={params.receivers} does not reach the {topology.nodes} nodes of {topology.name}.",
            f"Use --set receivers={topology.nodes}, or fewer --nodes.",
        )
    fits.check(params.points, params.receivers, topology)


def arm_checks(_: Params) -> tuple[ArmCheck, ...]:
    """What shows a fault of the harness: inside a node Ray shares memory, and uses no socket."""
    what = "that no transport of Ray is faster between nodes than the socket it goes through"
    return (ArmCheck(what=what, needs=SOCKETS, between_nodes=True),)


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """Every arm at each point that it has: rounds, and bytes."""
    return {
        arm.name: tuple(
            point.rounds * (0.003 + point.round_bytes / BYTES_PER_SECOND)
            for point in params.points
            if applies(arm, point, params.reference)
        )
        for arm in ARMS
        if arm != IPERF  # which is seldom installed
    }


def guess_other_seconds(params: Params) -> float:
    """Both ends import torch and join, and send the largest payload once by each transport."""
    return 4.0 + len(ARMS) * params.reference.round_bytes / BYTES_PER_SECOND


def without_effect(params: Params) -> Collection[str]:
    """The factor between sizes, where there is one size."""
    return ("growth",) if len({point.size for point in params.points}) == 1 else ()
