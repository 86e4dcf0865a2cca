"""What the gate saw before each block, and what the veto took away, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.analysis.circumstances import Circumstances
from bench.analysis.numbers import plain, plural, quantity
from bench.analysis.veto import Gates
from bench.model import Metric

_COPY = Metric(name="copy", unit="B/s", better="higher", kind="rate")


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
    if seen.deployment_cpus is not None:
        parts.append(
            f"the deployment itself uses {plain(seen.deployment_cpus)} CPUs at rest beside Ray's nodes, which are not"
            " counted as others'"
        )
    return "; ".join(parts)


def circumstances(found: Circumstances) -> str:
    """single: for each CPU second threads waited 0.31 s, left the CPU 900 times and had to 12 times; 2,450 to 3,100 MHz."""
    met = [
        text.format(plain(count))
        for text, count in (
            ("threads waited {} s for a CPU", found.waited_per_cpu_second),
            ("left it {} times by themselves", found.voluntary_switches_per_cpu_second),
            ("had to leave it {} times", found.involuntary_switches_per_cpu_second),
        )
        if count is not None
    ]
    parts = [f"for each CPU second {', '.join(met)}"] if met else []
    if found.least_mhz is not None and found.most_mhz is not None:
        ends = dict.fromkeys(f"{mhz:,.0f}" for mhz in (found.least_mhz, found.most_mhz))
        parts.append(f"CPUs at {' to '.join(ends)} MHz")
    if found.most_celsius is not None:
        parts.append(f"{found.most_celsius:.0f} degrees Celsius at most")
    if found.cores is not None:
        parts.append(f"on {found.cores}")
    if found.copy_bytes_per_second is not None:
        parts.append(f"a core copied memory at {quantity(_COPY, found.copy_bytes_per_second)}")
    return f"{found.topology}: {', '.join(parts)}"


def vetoed(reasons: Mapping[int, Sequence[str]]) -> str:
    """Each block of which nothing is used, and the first of the reasons."""
    return "; ".join(
        f"block {block}: {those[0]}" + (f", and {plural(len(those) - 1, 'reason')} more" if len(those) > 1 else "")
        for block, those in reasons.items()
    )
