"""Finds the network interface of an address, for libraries that take an interface's name: gloo would look up the host's name."""

from __future__ import annotations

import ipaddress


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
