"""All transports between two actors of a real Ray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sweeping import SweepContext

from bench.experiments import network
from bench.experiments.network import arms


def test_every_way_carries_the_same_bytes_and_every_payload_is_checked(local_ray: Sequence[Any]) -> None:
    pytest.importorskip("torch")
    context = SweepContext(nodes=local_ray)
    params = network.Params(largest=2**22, growth=256, most_streams=4)
    found = list(network.run(params, context))  # type: ignore[arg-type]
    assert context.reasons == []

    reference = str(params.reference)
    assert reference == "4 MiB x 1"
    speeds = {(s.arm, s.point): s.value for s in found if s.metric == "goodput_bytes_per_second"}
    absent = {"iperf3"} if ("iperf3", reference) not in speeds else set()
    for arm in network.ARMS:
        for point in params.points:
            if arms.applies(arm, point, params.reference) and arm.name not in absent:
                assert speeds[arm.name, str(point)], (arm.name, point)
                copies = params.receivers if arm == arms.BROADCAST else 1
                credited = sum(context.credits[arm.name, str(point)].values())
                if arm != arms.IPERF:
                    assert credited == point.round_bytes * point.rounds * copies
    assert {arm for (arm, point) in speeds if point == ""} == {arm.name for arm in network.ARMS}
    parts = [s.value for s in found if s.metric.endswith("_share_of_transfer") and s.point == reference]
    assert sum(value for value in parts if value is not None) == pytest.approx(1.0)
    for arm in arms.NO_HEADLINE:
        assert ("", arm) not in {(point, arm) for (arm, point), value in speeds.items() if value is not None}
    by_metric = {s.metric for s in found if s.value is not None}
    assert {"first_transfer_seconds", "one_way_seconds", "recommended_object_bytes", "chunk_bytes"} <= by_metric
    assert "half_round_trip_seconds" not in by_metric
