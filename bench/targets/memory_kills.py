"""Processes that the kernel killed since a node's memory was full, as the control group of the node counts them."""

from __future__ import annotations

from collections.abc import Mapping

# Either file, whichever kind of control groups there is: a container sees its own at the root.
COMMAND = ("sh", "-c", "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null; true")


def count(text: str) -> int:
    """How many, by what `COMMAND` prints on a node."""
    for line in text.splitlines():
        name, _, number = line.partition(" ")
        if name == "oom_kill":
            return int(number)
    return 0


def describe(said: Mapping[str, str]) -> str:
    """What was killed on which node, for the record of a run; empty where nothing was."""
    killed = {node: kills for node, text in said.items() if (kills := count(text))}
    return "; ".join(
        f"the memory of {node} was full, and the kernel killed {kills} of its processes"
        for node, kills in sorted(killed.items())
    )
