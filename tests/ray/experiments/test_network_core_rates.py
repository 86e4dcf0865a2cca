"""Core rates: every answer is counted, and Ray's own microbenchmark says the same."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from sweeping import SweepContext

from bench.analysis.stats import estimates
from bench.analysis.stats.estimates import Estimate
from bench.experiments import core_rates
from bench.experiments.core_rates import HEADLINE, MULTI_PUT_GIGABYTES, PUT_GIGABYTES, Params

NAME = "1:1 actor calls async"


def names_of_ray() -> set[str]:
    """What `ray microbenchmark` calls what it measures."""
    import ray

    source = (Path(ray.__file__).parent / "_private" / "ray_perf.py").read_text()
    return set(re.findall(r'timeit\(\s*"([^"]+)"', source))


def test_every_rate_has_a_name_of_ray_and_answers_all_its_calls(local_ray: Sequence[Any]) -> None:
    context = SweepContext(nodes=local_ray)
    params = Params(calls=20, put_bytes=2**20, open_loop="off")
    found = list(core_rates.run(params, context))  # type: ignore[arg-type]
    assert context.reasons == []
    assert all(sample.value and sample.value > 0 for sample in found)
    points = {sample.point for sample in found if sample.point}
    assert len(points) == 14
    assert points <= names_of_ray()
    assert {s.point for s in found if s.metric == "put_bytes_per_second"} == {PUT_GIGABYTES, MULTI_PUT_GIGABYTES}
    assert context.credits["ray", PUT_GIGABYTES] == {"head": 1.0}  # calls at every point, and not bytes at some
    assert context.credits["ray", MULTI_PUT_GIGABYTES] == {"head": 10.0}
    assert context.credits["ray", NAME] == {"head": 20.0}
    assert {s.arm for s in found if not s.point} == {"ray", "ray-unwatched"}


def test_actor_calls_have_response_times_at_each_load(local_ray: Sequence[Any], tmp_path: Path) -> None:
    context = SweepContext(nodes=local_ray, folder=tmp_path)
    params = Params(calls=20, put_bytes=2**20, open_loop="both", open_loop_seconds=0.5)
    found = list(core_rates.run(params, context))  # type: ignore[arg-type]
    assert context.reasons == []
    maxima = [s.value for s in found if s.metric == "closed_loop_maximum_calls_per_second"]
    offered = {s.point: s.value for s in found if s.metric == "offered_calls_per_second"}
    assert list(offered) == [f"{share} % {when}" for when in ("poisson", "constant") for share in (50, 70, 90)]
    assert list(offered.values()) == pytest.approx([top * share for top in maxima for share in (0.5, 0.7, 0.9)])  # type: ignore[operator]
    of_p50 = [s for s in found if s.metric == "response_time_p50_seconds"]
    assert {s.point for s in of_p50} == set(offered)
    assert all((s.value is None) == bool(s.reason) for s in of_p50)
    assert any(s.value and s.value > 0 for s in of_p50)
    assert len((tmp_path / "response_times.jsonl").read_text().splitlines()) == 6
    # Half of each load is the driver's and half the actor's, and here both are one node's.
    assert context.credits["ray", "50 % poisson"]["head"] == pytest.approx(offered["50 % poisson"] * 0.5, abs=1)  # type: ignore[operator]


def test_an_answer_that_is_lost_makes_the_run_invalid(local_ray: Sequence[Any]) -> None:
    context = SweepContext(nodes=local_ray)
    rate = core_rates.Rate(name=HEADLINE, work=lambda: 9, amount=10)
    timed = next(context.turns()).measure(core_rates.RAY, rate.work, lambda _: {}, point=rate.name)
    (only,) = core_rates._samples(timed, rate, context)  # type: ignore[arg-type]
    assert only.value is None
    assert context.reasons == [f"{HEADLINE}: 9 of 10 were answered"]


def test_rays_own_microbenchmark_agrees_within_the_intervals(
    local_ray: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one cluster, from one driver, pass by pass in turn: what other work does to one, it does to the other."""
    import ray
    from ray._private import ray_perf

    ratios: dict[str, Estimate] = {}
    with ExitStack() as exits:
        rates = [
            *core_rates.store_rates(Params(calls=100)),
            *core_rates.one_to_one_rates(Params(), local_ray[0], exits),
        ]
        ours = {rate.name: rate for rate in rates if rate.name in SAME_AS_RAY}

        def timeit(name: str, work: Callable[[], object], calls: int = 1) -> list[None]:
            if name in ours:
                sleep(SETTLE_SECONDS)
                ratios[name] = ratio_of(ours[name], work, calls)
            if len(ratios) == len(SAME_AS_RAY):
                raise EnoughError
            return [None]

        monkeypatch.setattr(ray_perf, "timeit", timeit)
        monkeypatch.setattr(ray, "init", lambda: None)  # the one that is there
        # A task for a benchmark that is not done here, which would go on beside those that are.
        monkeypatch.setattr(ray_perf, "create_object_containing_ref", ray_perf.small_value)
        with suppress(EnoughError):
            ray_perf.main()
    assert ratios.keys() == SAME_AS_RAY
    for name, ratio in ratios.items():
        assert ratio.low is not None
        assert ratio.high is not None
        # A tenth, for ours checks each answer; and so narrow that what is counted twice, or by half, is outside.
        assert 1 / 2 < ratio.low < 1.1, (name, ratio)
        assert 1 / 1.1 < ratio.high < 2, (name, ratio)


SAME_AS_RAY = {"single client put calls (Plasma Store)", HEADLINE, NAME}
SETTLE_SECONDS = 3.0  # Ray's own has just asked for actors, and waits too
PAIRS_SECONDS = (4.0, 15.0)  # at least, and at most: until the interval is narrow enough
FEWEST_PAIRS = 10  # at which an interval reaches 99.8 %
NARROW = 1.5  # its upper end by its lower one


class EnoughError(Exception):
    """All that is compared was measured."""


def ratio_of(ours: core_rates.Rate, theirs: Callable[[], object], calls: int) -> Estimate:
    """Our rate over theirs, of pairs of passes with as many calls each. The first pair is a warm-up."""
    draw = random.Random(ours.name)

    def by_theirs() -> int:
        for _ in range(ours.amount // calls):
            theirs()
        return ours.amount

    logs: list[float] = []
    begin = monotonic()
    while True:
        seconds = {}
        for work in draw.sample((ours.work, by_theirs), 2):
            pass_begin = monotonic()
            assert work() == ours.amount
            seconds[work] = monotonic() - pass_begin
        logs.append(math.log(seconds[by_theirs] / seconds[ours.work]))
        least, most = PAIRS_SECONDS
        if (passed := monotonic() - begin) > least and len(logs) > FEWEST_PAIRS:
            found = estimates.exponential(estimates.hodges_lehmann(logs[1:], level=0.999))
            if passed > most or (found.low and found.high and found.high / found.low < NARROW):
                return found
