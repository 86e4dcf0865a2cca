"""Declares the arms: the ways to train the same network."""

from __future__ import annotations

from bench.model import Arm

SYNC = Arm(
    name="ray-sync", help="The server averages one gradient of each worker.", role="subject", reference="ddp-gloo"
)
ASYNC = Arm(
    name="ray-async",
    help="The server applies each gradient as it comes: not deterministic.",
    reference="torch-one-thread",
    repeatable=False,
)
ONE_WORKER = Arm(
    name="ray-one-worker",
    help="As ray-sync, with a single worker: the base of the speed-ups.",
    reference="torch-one-thread",
    scales=False,
)
ONE_THREAD = Arm(
    name="torch-one-thread", help="torch in one process of the first worker's node, on one thread.", scales=False
)
ALL_THREADS = Arm(
    name="torch-all-threads", help="torch in one process of the first worker's node, on all threads.", scales=False
)
GLOO = Arm(name="ddp-gloo", help="DistributedDataParallel of torch over gloo, one process for each worker.")
UNWATCHED = Arm(name="ray-unwatched", help="As ray-sync, without raymeter's probes.", role="control", probed=False)
ARMS = (SYNC, ASYNC, ONE_WORKER, ONE_THREAD, ALL_THREADS, GLOO, UNWATCHED)
RAY_ARMS = (SYNC, ASYNC, ONE_WORKER)  # that have figures of servers and workers
