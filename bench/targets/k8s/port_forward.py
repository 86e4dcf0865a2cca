"""Restarts `kubectl port-forward`, which ends with its first failed connection, in a process that outlives the command.

A port-forward ends on the pod's loopback, so its bytes do not count as the node's traffic.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench.targets import processes

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.2, 5.0


def start(
    *, context: str, namespace: str, subject: str, ports: Mapping[int, int], mark: tuple[str, str], log: Path
) -> None:
    """Forward local ports to those of a pod or service. `mark`: the deployment, and an id to find the process by."""
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
    """Run `command` again whenever it ends, until SIGTERM."""
    # By an exception, so that the child is ended, too.
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
    """Forward ports until SIGTERM."""
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
