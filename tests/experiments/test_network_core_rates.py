"""Core rates: every answer is counted, and Ray's own microbenchmark says the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from sweeping import SweepContext

from bench.experiments import core_rates
from bench.experiments.core_rates import HEADLINE, MULTI_PUT_GIGABYTES, PUT_GIGABYTES, Params

NAME = "1:1 actor calls async"


def names_of_ray() -> set[str]:
    """What `ray microbenchmark` calls what it measures."""
    import ray

    source = (Path(ray.__file__).parent / "_private" / "ray_perf.py").read_text()
    return set(re.findall(r'timeit\(\s*"([^"]+)"', source))


@pytest.mark.ray
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


@pytest.mark.ray
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


@pytest.mark.ray
def test_an_answer_that_is_lost_makes_the_run_invalid(local_ray: Sequence[Any]) -> None:
    context = SweepContext(nodes=local_ray)
    rate = core_rates.Rate(name=HEADLINE, work=lambda: 9, amount=10)
    timed = next(context.turns()).measure(core_rates.RAY, rate.work, lambda _: {}, point=rate.name)
    (only,) = core_rates._samples(timed, rate, context)  # type: ignore[arg-type]
    assert only.value is None
    assert context.reasons == [f"{HEADLINE}: 9 of 10 were answered"]


@pytest.mark.ray
@pytest.mark.slow
def test_rays_own_microbenchmark_agrees_within_the_intervals(local_ray: Sequence[Any]) -> None:
    """Ours before and after theirs, with a Ray of its own beside: what other work does to one, it does to the other."""
    before = _ours(local_ray)
    code = (
        "from ray._private import ray_perf, ray_microbenchmark_helpers as helpers; import functools;"
        # It sleeps before it measures. With no sleep its own Ray is still starting, and takes half of the calls away.
        "ray_perf.timeit = functools.partial(helpers.timeit, warmup_time_sec=5);"
        "ray_perf.client_microbenchmark_main = lambda results: results;"
        "ray_perf.main()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "TESTS_TO_RUN": NAME},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    match = re.search(rf"^{NAME} per second ([\d.]+) \+- ([\d.]+)$", done.stdout, re.MULTILINE)
    assert match, done.stdout
    theirs, spread = float(match[1]), float(match[2])
    after = _ours(local_ray)
    ours = sorted(before + after)
    # Intervals of four windows on each side: the range of ours, three standard errors of theirs, and a quarter for a
    # busy machine. A wrong count, by the factor of a batch or of two, is far outside.
    assert ours[0] / 1.25 <= theirs + 3 * spread
    assert theirs - 3 * spread <= ours[-1] * 1.25


def _ours(nodes: Sequence[Any], windows: int = 4, seconds: float = 1.0) -> list[float]:
    """Calls per second by core_rates, in as many windows as Ray's."""
    found = []
    with ExitStack() as exits:
        (rate,) = (rate for rate in core_rates.start(Params(), nodes, exits) if rate.name == NAME)
        rate.work()
        for _ in range(windows):
            begin, calls = monotonic(), 0
            while (passed := monotonic() - begin) < seconds:
                assert rate.work() == rate.amount
                calls += rate.amount
            found.append(calls / (monotonic() - begin))
            assert passed >= seconds
    return found
