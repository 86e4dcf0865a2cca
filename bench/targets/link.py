"""Limits the link of a node: reads its rate, and gives the command that limits what the node's eth0 sends, on every target."""

from __future__ import annotations

import re

from bench.errors import BadInput

_RATE = re.compile(r"(\d+(?:\.\d+)?)(k|m|g)bit")
_SCALE = {"k": 1e3, "m": 1e6, "g": 1e9}
HINT = (
    "Leave --link-rate out, or provide what it needs: the capability NET_ADMIN, `tc` in the image (`task image` adds it),"
    " and sch_tbf in the kernel."
)


def bits_per_second(rate: str) -> float:
    """The value of `rate`, such as 100mbit. Raises BadInput."""
    match = _RATE.fullmatch(rate)
    bits = float(match[1]) * _SCALE[match[2]] if match else 0.0
    if not 1e6 <= bits <= 100e9:
        raise BadInput(f"--link-rate must be a rate from 1mbit to 100gbit, got {rate!r}.", "Examples: 100mbit, 1gbit.")
    return bits


def describe(network: str, rate: str | None) -> str:
    """The network between the nodes as a record names it, such as `veth at 1gbit`."""
    return f"{network} at {rate}" if rate else network


def shaping_command(rate: str) -> list[str]:
    """The command that limits what eth0 sends, for root with NET_ADMIN in the network namespace of a node."""
    bytes_per_second = bits_per_second(rate) / 8
    # A bucket of 4 ms: smaller ones are empty between two ticks of the kernel, and the rate is never reached. Larger
    # ones would let bursts through that no real link does. At least ten frames.
    burst = max(int(bytes_per_second * 0.004), 16 * 1024)
    # Two of TCP's largest sends, and 50 ms: a shorter queue drops data that the kernel has not split into frames yet.
    limit = max(burst, 128 * 1024) + int(bytes_per_second * 0.05)
    bucket = ["rate", rate, "burst", str(burst), "limit", str(limit)]
    return ["tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *bucket]
