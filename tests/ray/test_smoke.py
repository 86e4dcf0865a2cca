"""The smallest session on a real Ray: both topologies are stood up, measured, compared and removed."""

from __future__ import annotations

import os

import pytest
from person import SMALL, Bench, nothing_is_left

NAME = f"smoke-{os.getpid()}"  # of a deployment beside which others may be up


@pytest.mark.timeout(600)
def test_a_session_of_one_block_measures_both_topologies_and_leaves_nothing(bench: Bench) -> None:
    try:
        code, out, err = bench("run", "inference", *SMALL, "--name", NAME, "--blocks", "1", "--samples", "1")
        assert code == 0, err
        single, multi = sorted(bench.runs(), key=lambda run: run.spec.topology.nodes)
        assert (single.spec.topology.nodes, multi.spec.topology.nodes) == (1, 2)
        assert (single.status, multi.status) == ("ok", "ok")
        assert single.digests == multi.digests  # the answers to all inputs
        assert "a verdict needs 6" in out
        assert nothing_is_left(bench)
    finally:
        bench("down", "--target", "local", "--name", NAME)
