"""A process that outlives the command: it keeps `kubectl port-forward` going, which ends when a connection first fails.

The way into a pod by a port-forward ends on the pod's loopback: what comes state_folder is not counted as the node's traffic.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench.targets import processes

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.2, 5.0
_FIRST, _LAST = 32_000, 32_700  # below what systems give to outgoing connections, above what local nodes use


def free_ports(count: int) -> list[int]:
    """Ports of this machine's loopback on which nothing listens."""
    found: list[int] = []
    for port in random.SystemRandom().sample(range(_FIRST, _LAST), _LAST - _FIRST):
        if len(found) == count:
            break
        if not listens(port):
            found.append(port)
    return found


def listens(port: int) -> bool:
    """Whether anything listens on a port of this machine's loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def start(
    *, context: str, namespace: str, subject: str, ports: Mapping[int, int], mark: tuple[str, str], log: Path
) -> None:
    """Forward local ports to a pod's or a service's. `mark`: the deployment, and the id by which the process is found."""
    deployment, identity = mark
    processes.start(
        [
            *(sys.executable, "-m", "bench.targets.k8s.port_forward", "--context", context, "--namespace", namespace),
            *(subject, *(f"{local}:{remote}" for local, remote in ports.items())),
        ],
        environment={**os.environ, processes.DEPLOYMENT: deployment, processes.DEPLOYMENT_ID: identity},
        cpus=(),
        log=log,
        folder=log.parent,
    )


def keep(command: list[str]) -> None:
    """Run `command` again whenever it ends, until this process is asked to end."""
    # An exception, so that the child is ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    wait_seconds = FIRST_WAIT_SECONDS
    while True:
        began = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            child.wait()
        finally:
            child.terminate()
        wait_seconds = FIRST_WAIT_SECONDS if time.monotonic() - began > LONGEST_WAIT_SECONDS else wait_seconds * 2
        time.sleep(min(wait_seconds, LONGEST_WAIT_SECONDS))


def main() -> None:
    """Forward until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("subject")
    parser.add_argument("ports", nargs="+")
    options = parser.parse_args()
    keep(
        [
            *("kubectl", "--context", options.context, "--namespace", options.namespace, "port-forward"),
            *("--address=127.0.0.1", options.subject, *options.ports),
        ]
    )


if __name__ == "__main__":
    main()
