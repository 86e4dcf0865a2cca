"""Counts the processes that the kernel killed because a node was out of memory, from the node's control group."""

from __future__ import annotations

from collections.abc import Mapping

# One of the two files exists, by the version of control groups; a container sees its own group at the root.
COMMAND = ("sh", "-c", "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null; true")


def count(text: str) -> int:
    """The number of killed processes in the output of `COMMAND`."""
    for line in text.splitlines():
        name, _, number = line.partition(" ")
        if name == "oom_kill":
            return int(number)
    return 0


def describe(outputs: Mapping[str, str]) -> str:
    """Killed processes by node, for the record of a run; empty if there are none."""
    killed = {node: kills for node, text in outputs.items() if (kills := count(text))}
    return "; ".join(
        f"the memory of {node} was full, and the kernel killed {kills} of its processes"
        for node, kills in sorted(killed.items())
    )
