"""Finds free ports for nodes that share one machine's loopback."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack

from bench.errors import TargetFailed
from bench.targets.local.state import Ports

# Below the ports of outgoing connections, so that no connection takes a port between choice and use.
FIRST, LAST, BLOCK = 20_000, 32_000, 250
_WORKERS_FROM = 20


class Claim:
    """Ports of all nodes, reserved against other deployments until they are released."""

    def __init__(self, nodes: int) -> None:
        self._stack = ExitStack()
        blocks = random.SystemRandom().sample(range(FIRST, LAST, BLOCK), (LAST - FIRST) // BLOCK)
        ports: list[Ports] = []
        for block in blocks:
            if len(ports) == nodes:
                break
            if self._take(block):
                ports.append(layout(block))
        if len(ports) < nodes:
            self.release()
            raise TargetFailed(
                f"Ports {FIRST} to {LAST - 1} are in use: {len(ports)} of {nodes} nodes found {BLOCK} free ports in a row.",
                "End other deployments first: bench down.",
            )
        self.ports: Sequence[Ports] = ports

    def release(self) -> None:
        """Release the ports: Ray listens by now, or has failed."""
        self._stack.close()

    def _take(self, block: int) -> bool:
        # The first port of a block is not used: holding it reserves the others.
        try:
            self._stack.enter_context(_bound(block))
            for port in range(block + 1, block + BLOCK):
                _bound(port).close()
        except OSError:
            return False
        return True


def layout(block: int) -> Ports:
    """The ports of a node, from its block."""
    return Ports(
        gcs=block + 1,
        dashboard=block + 2,
        exporter=block + 3,
        metrics=block + 4,
        agent=block + 5,
        agent_grpc=block + 6,
        dashboard_metrics=block + 7,
        node_manager=block + 8,
        object_manager=block + 9,
        runtime_env_agent=block + 10,
        workers=(block + _WORKERS_FROM, block + BLOCK - 1),
    )


def _bound(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.bind(("0.0.0.0", port))  # noqa: S104 - free means free on every address; nothing listens
    except OSError:
        bound.close()
        raise
    return bound
