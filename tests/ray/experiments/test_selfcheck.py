"""What is injected is really done, and nothing else differs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.cluster.local_context import LocalContext
from bench.context import NodeSlot
from bench.experiments import NAMES, load, selfcheck


def test_slow_downs_and_stalls_are_those_that_were_asked_for(local_ray: Sequence[NodeSlot]) -> None:
    context = LocalContext(nodes=local_ray, repeats=20, passes=1)
    params = selfcheck.Params(slow_down_percent=100, stall_milliseconds=300)
    samples = list(selfcheck.run(params, context))  # type: ignore[arg-type]  # as far as it is used
    units = {
        arm.name: [s.value for s in samples if (s.metric, s.arm) == ("unit_seconds", arm.name) and s.value]
        for arm in selfcheck.ARMS
    }
    assert {name: len(values) for name, values in units.items()} == {
        "plain": 20,
        "twin": 20,
        "slowed": 20,
        "stalled": 5,  # 50 calls, the last of which sleeps
        "unwatched": 10,
    }
    assert median(units["slowed"]) / median(units["plain"]) > 1.4
    calls = {(s.metric, s.arm): s.value or 0.0 for s in samples if s.metric.startswith("call_")}
    assert calls["call_p99_seconds", "stalled"] > 0.3 + 0.5 * calls["call_p50_seconds", "plain"]
    assert calls["call_p50_seconds", "stalled"] < 0.3
    assert 0 < next(s.value for s in samples if s.metric == "timer_seconds" and s.value) < 0.001


def test_a_quantile_is_a_value_that_was_measured() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert (selfcheck.quantile(values, 0.5), selfcheck.quantile(values, 0.99)) == (51.0, 100.0)


def test_it_is_in_no_list_and_can_be_loaded() -> None:
    assert "selfcheck" not in NAMES
    assert load("selfcheck").metrics == selfcheck.METRICS
