"""Declares the arms: the ways to have all jobs done."""

from __future__ import annotations

from bench.model import Arm

RAY = Arm(name="ray", help="Actors that pull parts as they have room; a journal; a merge.", role="subject")
EMPTY_PARTS = Arm(name="empty-parts", help="As many parts without any job in them, by the same actors.", role="calls")
TASKS = Arm(name="tasks", help="A task of Ray for each part.")
POOL = Arm(name="pool", help="A multiprocessing.Pool on each node, the parts dealt out by CPUs.")
SERIAL = Arm(name="serial", help="One process of the first node: the base case.")
ARMS = (RAY, EMPTY_PARTS, TASKS, POOL, SERIAL)
