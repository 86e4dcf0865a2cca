"""Joins processes over gloo, torch.distributed's transport, by the network interface of an address of theirs."""

from __future__ import annotations

import ipaddress
import os
import socket
from datetime import timedelta


def free_meeting(address: str) -> str:
    """Where processes can meet: a free port of this node's `address`, as `join` takes it."""
    with socket.create_server((address, 0)) as taken:
        return f"tcp://{address}:{taken.getsockname()[1]}"


def join(meeting: str, *, own_address: str, rank: int, processes: int, seconds: float) -> None:
    """Meet the other processes. Raises ImportError without torch. A group that this process was in before is left."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()  # one of those that met has died
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(own_address)  # else gloo looks up the host's name
    dist.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=processes, timeout=timedelta(seconds=seconds)
    )


def interface_of(address: str) -> str:
    """The interface that has `address`. Raises OSError where none has.

    The loopback interface has all addresses of its network, and lists the first: 127.0.0.2 is its own too.
    """
    import psutil

    interfaces = psutil.net_if_addrs()
    for name, entries in interfaces.items():
        if any(entry.address == address for entry in entries):
            return str(name)
    if ipaddress.ip_address(address).is_loopback:
        for name, entries in interfaces.items():
            if any(_is_loopback(entry.address) for entry in entries):
                return str(name)
    raise OSError(f"no network interface has the address {address}")


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:  # an address of the link layer
        return False
