"""Connects processes over gloo, torch.distributed's transport, on the network interface of their addresses."""

from __future__ import annotations

import ipaddress
import os
import socket
from datetime import timedelta


def free_meeting(address: str) -> str:
    """Return a URL at a free port of this node's `address`, at which processes can meet by `join`."""
    with socket.create_server((address, 0)) as probe:
        return f"tcp://{address}:{probe.getsockname()[1]}"


def join(meeting: str, *, own_address: str, rank: int, processes: int, seconds: float) -> None:
    """Join the group of processes that meet at `meeting`, and leave an earlier group. Raises ImportError without torch."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()  # a member of the earlier group has died
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(own_address)  # otherwise gloo resolves the host's name
    dist.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=processes, timeout=timedelta(seconds=seconds)
    )


def interface_of(address: str) -> str:
    """Return the network interface that has `address`. Raises OSError if none has.

    The loopback interface has all addresses of its network, but lists the first only: 127.0.0.2 belongs to it too.
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
    except ValueError:  # a link-layer address
        return False
