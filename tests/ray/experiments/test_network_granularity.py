"""The sweep of task lengths on a real Ray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sweeping import SweepContext

from bench.experiments import granularity
from bench.experiments.granularity.params import LABEL, Params


def test_the_real_sweep_counts_every_job_and_shows_the_speed_up_as_it_is(local_ray: Sequence[Any]) -> None:
    context = SweepContext(nodes=local_ray)
    params = Params(shortest=0.001, longest=0.02, growth=20, most_batch=10)
    found = list(granularity.run(params, context))  # type: ignore[arg-type]
    assert context.reasons == []
    points = {str(point): point for point in params.points}
    assert set(points) == {f"1 ms x 1, {LABEL}", "1 ms x 10", "20 ms x 1"}
    speed_ups = {s.point: s.value for s in found if s.metric == "speed_up"}
    efficiencies = {s.point: s.value for s in found if s.metric == "efficiency"}
    assert set(speed_ups) == set(points)
    for name, point in points.items():
        assert context.credits["ray-tasks", name] == {"head": point.tasks(2) * point.batch}
        assert efficiencies[name] == pytest.approx(speed_ups[name] / 2)  # type: ignore[operator]
        assert speed_ups[name] > 0  # type: ignore[operator]
    assert any(s.metric == "least_task_50_seconds" and s.arm == "ray-tasks" for s in found)
