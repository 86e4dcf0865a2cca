"""Starts one Ray node by `ray start`, without its slow waits and without Ray's client server.

Run as `python -m bench.targets.ray_start [--after GCS_ADDRESS] start ...`, the rest being what `ray` is given.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from importlib import import_module
from typing import Any

_HOOK = "RAY_START_HOOK"
_POLL_SECONDS = 0.1


def main() -> None:
    """Load Ray, wait for the head if one is given, and run the command `ray`."""
    arguments = sys.argv[1:]
    scripts: Any = import_module("ray.scripts.scripts")
    if arguments[:1] == ["--after"]:
        _wait_for_head(arguments[1])
        arguments = arguments[2:]
    os.environ[_HOOK] = f"{__spec__.name}.without_client_server"
    sys.argv = ["ray", *arguments]
    scripts.main()


def without_client_server(ray_params: Any, head: bool) -> None:  # noqa: ARG001 - this is how Ray calls it
    """Ray calls this hook before it starts anything; there is no option for it."""
    os.environ.pop(_HOOK, None)  # for this process only, not for its children
    ray_params.ray_client_server_port = None


def _wait_for_head(gcs_address: str) -> None:
    # `ray start` itself sleeps 2 s each time it is earlier than the head's raylet, and gives up after 20.
    host, port = gcs_address.rsplit(":", 1)
    while not _answers(host, int(port)):
        time.sleep(_POLL_SECONDS)
    printed = ""
    while reason := _why_head_does_not_answer(gcs_address):
        if reason != printed:  # the end of the log is part of the error if this node does not start
            print(f"The head at {gcs_address} is not ready: {reason}", flush=True)  # noqa: T201
        printed = reason
        time.sleep(_POLL_SECONDS)


def _why_head_does_not_answer(gcs_address: str) -> str:
    """Why a node cannot join yet; empty if the head's raylet has registered."""
    gcs_client: Any = import_module("ray._raylet").GcsClient
    node_selector: Any = import_module("ray.core.generated.gcs_service_pb2").GetAllNodeInfoRequest.NodeSelector
    selector = node_selector()
    selector.is_head_node = True
    try:
        heads = gcs_client(address=gcs_address).get_all_node_info(timeout=5, node_selectors=[selector])
    except import_module("ray.exceptions").RpcError as error:  # a head that starts on a busy machine cancels calls
        return " ".join(str(error).split())
    return "" if heads else "it has not registered"


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
