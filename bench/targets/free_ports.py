"""Finds free ports of this machine's loopback, for what outlives a cluster: forwarded ports, and Prometheus."""

from __future__ import annotations

import random
import socket

from bench.errors import TargetFailed

FIRST, LAST = 32_000, 32_700  # below the ports of outgoing connections, above those of local nodes


def find(count: int) -> list[int]:
    """Free ports. Raises TargetFailed if there are too few."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(FIRST, LAST), LAST - FIRST):
        if len(ports) == count:
            break
        if not listens(port):
            ports.append(port)
    if len(ports) < count:
        raise TargetFailed(
            f"Ports {FIRST} to {LAST - 1} of 127.0.0.1 are in use, and {count} are needed.",
            "End the programs that listen there: ss -tlnp.",
        )
    return ports


def listens(port: int) -> bool:
    """Whether a port of this machine's loopback is in use."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
