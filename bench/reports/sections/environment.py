"""What the gate saw before each block, and what the veto took away, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.analysis.numbers import plain, plural
from bench.analysis.veto import Gates


def gate(seen: Gates) -> str:
    """How many blocks began on a quiet machine, how long that took, and what others used of it."""
    blocks = seen.quiet + len(seen.busy)
    waited = f" after {plain(seen.waited_seconds)} s of waiting in all" if seen.waited_seconds >= 1 else ""
    parts = [f"the machine was quiet before {seen.quiet} of {plural(blocks, 'block')}{waited}"]
    if seen.elsewhere:
        parts.append("it is none of those that the nodes ran on")
    used = [
        f"{plain(cpus)} {when}"
        for cpus, when in (
            (seen.others_cpus_idle, "while nothing ran"),
            (seen.others_cpus, "while something was timed"),
        )
        if cpus is not None
    ]
    if used:
        parts.append(f"CPUs that others used there, at most: {', '.join(used)}")
    return "; ".join(parts)


def vetoed(reasons: Mapping[int, Sequence[str]]) -> str:
    """Each block of which nothing is used, and the first of the reasons."""
    return "; ".join(
        f"block {block}: {those[0]}" + (f", and {plural(len(those) - 1, 'reason')} more" if len(those) > 1 else "")
        for block, those in reasons.items()
    )
