"""Declares the arms: the ways to have all inputs answered."""

from __future__ import annotations

from bench.model import Arm

RAY = Arm(name="ray", help="Ray actors that hold the network.", role="subject")
EMPTY_CALLS = Arm(
    name="empty-calls",
    help="The same calls to the same actors with the same arguments, without arithmetic.",
    role="calls",
)
BARE_CALLS = Arm(name="bare-calls", help="As many calls to the same actors, without arguments or work.", role="calls")
ONE_BY_ONE = Arm(name="numpy-one-by-one", help="numpy, one input at a time, on one thread of the first node.")
ALL_CPUS = Arm(
    name="numpy-all-cpus", help="numpy, up to 1,000 inputs at a time, on all threads of all nodes.", role="ceiling"
)
POOL = Arm(name="pool", help="multiprocessing.Pool with one process per CPU, the same batches by value.")
UNWATCHED = Arm(name="ray-unwatched", help="As ray, without raymeter's probes.", role="control", probed=False)
ARMS = (RAY, EMPTY_CALLS, BARE_CALLS, ONE_BY_ONE, ALL_CPUS, POOL, UNWATCHED)
IN_PEERS = (ONE_BY_ONE, ALL_CPUS, POOL)  # processes of their own
