"""Names the gauges of a whole session: its progress and its report so far, which the client sends to the exporter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CELL = ("session", "experiment", "cell", "parameters")
SENT = "bench_session_sent_timestamp_seconds"
FAMILIES = {
    SENT: (
        "When the values of a session were sent. A text is of this time, or it does not hold any more.",
        ("session",),
    ),
    "bench_session_runs_wanted": ("Runs that a session has.", ("session",)),
    "bench_session_runs_done": ("Runs of a session that have ended.", ("session",)),
    "bench_session_blocks_wanted": ("Blocks that a session has.", ("session",)),
    "bench_session_blocks_done": ("Blocks of a session whose runs have ended.", ("session",)),
    "bench_session_left_seconds": ("Time until the session ends, as estimated after its last run.", ("session",)),
    "bench_caveat": (
        "A caveat of the report: a text.",
        ("session", "severity", "about", "text"),
    ),
    "bench_block_excluded": ("A block that is excluded for interference: a text.", ("session", "block", "reason")),
    "bench_cell_verdict": ("The verdict on a cell's headline, and why: a text.", (*CELL, "verdict", "why")),
    "bench_cell_ratio": (
        "Headline of multi by that of single, with its interval; gain: above 1, multi is better.",
        (*CELL, "estimate"),
    ),
    "bench_cell_pairs": ("Blocks that the ratio rests on.", CELL),
    "bench_cell_value": (
        "Headline of the subject: the median of the invocations, with its interval.",
        (*CELL, "topology", "estimate"),
    ),
    "bench_cell_used": (
        "What the nodes of a topology used: the median of the invocations.",
        (*CELL, "topology", "resource", "unit"),
    ),
    "bench_cell_share": (
        "Headline of the subject beside that of another arm, above 1 where the subject is better.",
        (*CELL, "topology", "arm", "role"),
    ),
    "bench_cell_gap": (
        "Seconds per unit of work that multi needs beyond single, by part, divided by the seconds of single.",
        (*CELL, "part"),
    ),
    "bench_cell_node": (
        "What one node used: the median of the invocations.",
        (*CELL, "topology", "node", "quantity"),
    ),
    "bench_cell_percentile": (
        "A percentile at a point of a sweep of loads: the median of the invocations.",
        (*CELL, "topology", "point", "distribution", "percentile", "unit"),
    ),
}
"""Help and labels of each family. The value of a text is the time at which it was sent."""

MOST_BYTES = 4 * 2**20  # of all gauges of a session, as JSON


@dataclass(frozen=True, kw_only=True)
class Gauge:
    """One value: the name of its family, the values of the family's labels in order, and the number."""

    name: str
    labels: tuple[str, ...]
    value: float


def check(gauges: Sequence[Gauge], session: str) -> str:
    """What is wrong with the gauges of `session`; empty if nothing is."""
    for gauge in gauges:
        if gauge.name not in FAMILIES:
            return f"there is no family {gauge.name}"
        labels = FAMILIES[gauge.name][1]
        if len(gauge.labels) != len(labels) or gauge.labels[0] != session:
            return f"{gauge.name} must have the labels {', '.join(labels)}, of session {session}"
    if len({(gauge.name, gauge.labels) for gauge in gauges}) != len(gauges):
        return "two gauges have the same labels"
    return ""
