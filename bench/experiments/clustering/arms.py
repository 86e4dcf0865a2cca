"""Declares the arms: the ways to have all jobs done."""

from __future__ import annotations

from bench.model import Arm

_PACKAGE = "bench/experiments/clustering"  # as profilers name it

RAY = Arm(
    name="ray",
    help="A worker pool of Ray actors, with a journal of done parts and a merge of the results.",
    role="subject",
    profiled_in=f"do ({_PACKAGE}/workspace.py)",
)
EMPTY_PARTS = Arm(name="empty-parts", help="As many parts without jobs, by the same actors.", role="calls")
TASKS = Arm(name="tasks", help="A Ray task for each part.", profiled_in=f"do_there ({_PACKAGE}/peers.py)")
POOL = Arm(name="pool", help="A multiprocessing.Pool on each node, with a share of the parts by CPUs.")
SERIAL = Arm(
    name="serial",
    help="One process of the first node: the base case.",
    profiled_in=f"serial ({_PACKAGE}/peers.py)",
)
ARMS = (RAY, EMPTY_PARTS, TASKS, POOL, SERIAL)
