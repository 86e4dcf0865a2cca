"""Checks that the largest payloads fit on the nodes: else the kernel kills an end in mid-transfer, or objects go by way of the disk."""

from __future__ import annotations

from collections.abc import Sequence

from bench.errors import DoesNotFit
from bench.experiments.network.points import Point, format_size
from bench.model import Topology

MIB = 2**20
# Measured at the peak of a head with two ends: 1,231 MiB at 8 MiB x 1; at 64 MiB x 1 it was 1,735 MiB in two turns and 1,929 in six.
HEAD_BYTES = 783 * MIB  # Ray's own processes and the driver, before an end starts
END_BYTES = 188 * MIB  # of each process: Ray and PyTorch
SENDER_COPIES = 11  # of what is on its way: words, payloads, sums of gloo, those that the store has not let go of yet
RECEIVER_COPIES = 1  # its words: what it gets lies in the store, or in buffers of the worker
SHARE_OF_MEMORY = 0.95  # above it Ray ends workers
OBJECTS_IN_STORE = 3  # one on its way, and those before it: what is freed goes a little later


def check(points: Sequence[Point], receivers: int, topology: Topology) -> None:
    """Raise DoesNotFit where the largest of `points` takes more of the head's memory, or of an object store, than there is."""
    largest = max(points, key=lambda point: point.round_bytes)
    needed = head_bytes(largest, receivers, topology.nodes)
    if needed > SHARE_OF_MEMORY * topology.memory_bytes_per_node:
        raise DoesNotFit(
            f"Payloads of {largest} need {needed / MIB:.0f} MiB on the head of {topology.name}, and it may take"
            f" {SHARE_OF_MEMORY * topology.memory_bytes_per_node / MIB:.0f} MiB.",
            f"Lower largest, or give the nodes more, from --memory-mib {_memory_mib(needed, topology.nodes)} on.",
        )
    if OBJECTS_IN_STORE * largest.round_bytes > topology.object_store_bytes_per_node:
        raise DoesNotFit(
            f"Payloads of {largest} need room for {format_size(OBJECTS_IN_STORE * largest.round_bytes)} in the object store of"
            f" each node of {topology.name}, and it has {topology.object_store_bytes_per_node / MIB:.0f} MiB.",
            "Lower largest, or give the nodes more with --object-store-mib.",
        )


def head_bytes(point: Point, receivers: int, nodes: int) -> int:
    """What the head needs at `point`: it has the sender, and those receivers whose turn comes after the other nodes'."""
    receivers_here = receivers // nodes
    copies = SENDER_COPIES + RECEIVER_COPIES * receivers_here
    return HEAD_BYTES + END_BYTES * (1 + receivers_here) + copies * point.round_bytes


def _memory_mib(needed: int, nodes: int) -> int:
    """Of all nodes together, in steps of 512 MiB."""
    step = 512 * MIB
    return int(-(-needed * nodes / SHARE_OF_MEMORY // step)) * 512
