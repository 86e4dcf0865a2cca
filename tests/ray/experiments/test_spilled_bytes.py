"""What Ray spills to a disk is counted, by the node's own word: no made-up record can show that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from builders import a_spec

from bench.cluster.invocation import Invocation, NodeProbe
from bench.cluster.recorder import Recorder
from bench.context import NodeSlot

ARRAY = np.zeros(32 * 2**20, dtype=np.uint8)


def test_a_store_that_overflows_has_spilled_what_it_had_no_room_for_and_less_where_references_are_dropped(
    local_ray: Sequence[NodeSlot], tmp_path: Path
) -> None:
    import ray

    (node,) = ray.nodes()
    store_bytes = int(node["Resources"]["object_store_memory"])
    probe = NodeProbe(
        actor=None,
        slot=local_ray[0],
        address=node["NodeManagerAddress"],
        port=node["NodeManagerPort"],
        object_store_bytes=store_bytes,
    )
    invocation = Invocation(spec=a_spec(), probes=[probe], recorder=Recorder(tmp_path / "run", a_spec()))
    puts = store_bytes // ARRAY.nbytes + 4

    before = invocation._spilled_bytes(probe)
    for _ in range(puts):
        ray.put(ARRAY)
    dropped = invocation._spilled_bytes(probe)
    kept = [ray.put(ARRAY) for _ in range(puts)]
    overflowed = invocation._spilled_bytes(probe)
    assert overflowed - dropped >= len(kept) * ARRAY.nbytes - store_bytes
    assert dropped - before < overflowed - dropped  # nothing, unless Ray hears late that nobody needs an array
