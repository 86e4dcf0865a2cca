"""Declares the arms: the ways to do the same jobs."""

from __future__ import annotations

from bench.model import Arm

RAY = Arm(name="ray-tasks", help="Ray tasks, each with a batch of jobs, spread over the nodes.", role="subject")
SERIAL = Arm(name="serial", help="A plain loop over the same jobs in one process, started by Ray.", required=True)
ARMS = (RAY, SERIAL)
