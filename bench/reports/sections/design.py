"""Says how a session was measured: repetition, order, what the quiet check saw, what the exclusion took away, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.analysis import Report
from bench.analysis.answer import shape
from bench.analysis.exclusions import QuietChecks
from bench.analysis.number_format import plain, quantity
from bench.analysis.scheduling import Scheduling
from bench.counts import plural
from bench.model import Metric

RUNS = "Runs"  # caveats and notes refer to it
_COPY = Metric(name="copy", unit="B/s", better="higher", kind="rate")


def entries(report: Report) -> Iterator[tuple[str, str]]:
    """Names and what they stand for."""
    if report.topologies:
        yield "topologies", ", ".join(shape(topology) for topology in report.topologies)
    yield "link", (report.link or "not known") + (", all nodes on one machine" if report.same_host else "")
    yield (
        "repetition",
        (
            f"{plural(report.blocks, 'block')}; in each, every cell is one invocation on each topology, which"
            f" takes {plural(report.samples, 'sample')} of each metric, over {report.sample_seconds:g} s or more each,"
            f" after {plural(report.warmups, 'warm-up')}"
        ),
    )
    yield "randomised", report.randomised
    yield RUNS, _runs(report)
    yield from _chosen(report)
    for experiment, params in report.common_params.items():
        if params:
            yield f"{experiment}", ", ".join(f"{name}={value}" for name, value in params.items())
    if report.quiet_checks:
        yield "quiet check", quiet_check(report.quiet_checks)
    for found in report.scheduling:
        yield f"scheduling, {found.topology}", scheduling(found)
    if report.versions:
        yield "versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield "estimators", report.estimator
    if report.order_test:
        drift = report.order_test
        yield "drift", f"rank correlation of value and position in the session {drift.rho:.2f}, p {plain(drift.p)}"
    yield "do it again", report.command


def _chosen(report: Report) -> Iterator[tuple[str, str]]:
    """What was asked about beforehand, and what was left out."""
    if report.primary:
        yield (
            "asked about",
            f"{', '.join(report.primary)}: named beforehand, so that Holm's correction is for these alone",
        )
    if report.ended:
        yield "ended early", f"{report.ended}; {plural(report.left_out_blocks, 'block')} left out"
    if report.unfit:
        yield "left out", f"too large for these nodes: {'; '.join(report.unfit)}"
    if report.stand_ins:
        yield "data", "; ".join(report.stand_ins)
    if report.scaled:
        yield "scale", f"{report.scale:g} of the profile's sizes: {'; '.join(report.scaled)}"
    if report.dropped:
        yield "dropped", f"the budget had no room for {', '.join(report.dropped)}"


def _runs(report: Report) -> str:
    done = ", ".join(f"{count} {status}" for status, count in sorted(report.runs.items())) or "none done"
    blocks = f"; {excluded(report.excluded_blocks)}" if report.excluded_blocks else ""
    return f"{done}, of {report.planned} planned{blocks}"


def quiet_check(seen: QuietChecks) -> str:
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
            f"the deployment itself uses {_cpus(seen.deployment_cpus)} at rest beside Ray's nodes, which are not"
            " counted as others'"
        )
    return "; ".join(parts)


def _cpus(amount: float) -> str:
    words = plain(amount)
    return f"{words} CPU{'' if words == '1' else 's'}"


def scheduling(found: Scheduling) -> str:
    """Per second of CPU time: 0.31 s of waiting for a CPU, 900 voluntary context switches; CPU clock 2,450 to 3,100 MHz."""
    met = [
        text.format(plain(count))
        for text, count in (
            ("{} s of waiting for a CPU", found.waited_per_cpu_second),
            ("{} voluntary context switches", found.voluntary_switches_per_cpu_second),
            ("{} involuntary context switches", found.involuntary_switches_per_cpu_second),
        )
        if count is not None
    ]
    parts = [f"per second of CPU time: {', '.join(met)}"] if met else []
    if found.least_mhz is not None and found.most_mhz is not None:
        ends = dict.fromkeys(f"{mhz:,.0f}" for mhz in (found.least_mhz, found.most_mhz))
        parts.append(f"CPU clock {' to '.join(ends)} MHz")
    if found.most_celsius is not None:
        parts.append(f"temperature at most {found.most_celsius:.0f} °C")
    if found.cores is not None:
        parts.append(f"cores: {found.cores}")
    if found.copy_bytes_per_second is not None:
        parts.append(f"one core copies memory at {quantity(_COPY, found.copy_bytes_per_second)}")
    return "; ".join(parts)


def excluded(reasons: Mapping[int, Sequence[str]]) -> str:
    """Each block of which nothing is used, and the first of the reasons."""
    return "; ".join(
        f"block {block} excluded for interference: {those[0]}"
        + (f", and {plural(len(those) - 1, 'reason')} more" if len(those) > 1 else "")
        for block, those in reasons.items()
    )
