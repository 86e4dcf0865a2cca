"""The check of raymeter by itself: the same work twice, with a known slow-down, with known stalls, and while it does not watch.

Hidden from the lists of experiments: what it measures is the machine and the harness, and not Ray. `bench selfcheck` runs it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter, sleep
from typing import Annotated, Any

from msgspec import Meta

from bench.context import Context, Measured
from bench.experiments import Experiment, Profile
from bench.metrics import seconds
from bench.model import Arm, Sample

UNIT = seconds("unit_seconds", "One call, of those in a sample.")
CALL_P50 = seconds("call_p50_seconds", "Of all calls of the run.", means="median of all calls")
CALL_P99 = seconds("call_p99_seconds", "Of all calls of the run.", means="99th percentile of all calls")
TIMER = seconds("timer_seconds", "Least step of the driver's clock.", means="timer step")
METRICS = (UNIT, CALL_P50, CALL_P99, TIMER)
PLAIN = Arm(name="plain", help="A call that computes for a hundredth of a second.", role="subject")
TWIN = Arm(name="twin", help="The very same again.")
SLOWED = Arm(name="slowed", help="The same with a busy loop added, a known share of its CPU.")
STALLED = Arm(name="stalled", help="The same with a sleep in one of 50 calls.")
UNWATCHED = Arm(name="unwatched", help="The same while raymeter does not watch.", role="control", probed=False)
ARMS = (PLAIN, TWIN, SLOWED, STALLED, UNWATCHED)
CALLS = 10  # in one sample
STALL_EVERY = 50
UNIT_SECONDS = 0.01
CALIBRATION_LOOPS = 200_000


@dataclass(frozen=True, kw_only=True)
class Params:
    """What is injected."""

    slow_down_percent: Annotated[
        int, Meta(ge=0, le=100, description="More CPU for each call of `slowed`.", extra={"unit": "PERCENT"})
    ] = 10
    stall_milliseconds: Annotated[
        int, Meta(ge=0, le=1000, description="Sleep in one of 50 calls of `stalled`.", extra={"unit": "MS"})
    ] = 20


PROFILES = {
    "quick": Profile(
        help="20 comparisons of 12 turns, one after the other in one invocation.",
        grids=({},),
        blocks=1,
        warmups=3,
        samples=240,
        sample_seconds=0.01,
    ),
    "full": Profile(
        help="20 comparisons of 12 invocations, each on a fresh cluster.",
        grids=({},),
        blocks=12,
        warmups=3,
        samples=80,
        sample_seconds=0.01,
    ),
}


def guess_pass_seconds(_params: Params) -> dict[str, tuple[float, ...]]:
    """Three arms in every turn, and now and then one or two more."""
    return {arm.name: (CALLS * UNIT_SECONDS,) for arm in (PLAIN, TWIN, SLOWED, UNWATCHED)}


class Worker:
    """An actor that computes."""

    def loops_of_a_unit(self) -> int:
        """How many loops take a unit's time here: the best of five, so that what disturbs one does not matter."""
        seconds = min(self._seconds(CALIBRATION_LOOPS) for _ in range(5))
        return max(1, round(CALIBRATION_LOOPS * UNIT_SECONDS / seconds))

    def work(self, loops: int, sleep_seconds: float) -> int:
        """Loop so often, and then sleep."""
        done = _spin(loops)
        if sleep_seconds:
            sleep(sleep_seconds)
        return done

    def _seconds(self, loops: int) -> float:
        begin = perf_counter()
        _spin(loops)
        return perf_counter() - begin


def _spin(loops: int) -> int:
    done = 0
    for _ in range(loops):
        done += 1
    return done


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: every arm's calls in each turn, in the turn's order."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    node = context.nodes[0]
    here = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
    worker = ray.remote(num_cpus=1)(Worker).options(scheduling_strategy=here).remote()
    loops = ray.get(worker.loops_of_a_unit.remote())
    slowed = round(loops * (1 + params.slow_down_percent / 100))
    latencies: dict[str, list[float]] = {arm.name: [] for arm in ARMS}
    numbers = {arm.name: itertools.count(1) for arm in ARMS}
    last: dict[str, Measured[list[float]]] = {}
    for number, turn in enumerate(context.turns()):
        for arm in turn.order(arms_of(number)):
            calls = partial(
                _calls,
                worker,
                loops=slowed if arm == SLOWED else loops,
                stall_seconds=params.stall_milliseconds / 1000 if arm == STALLED else 0.0,
                numbers=numbers[arm.name],
            )
            timed = turn.measure(arm, calls, lambda done: {node.name: float(len(done))})
            done = [seconds for result in timed.results for seconds in result]
            yield timed.sample(UNIT, timed.interval.seconds / len(done))
            if not turn.warmup:
                latencies[arm.name] += done
                last[arm.name] = timed
    for name, timed in last.items():
        yield timed.sample(CALL_P50, quantile(latencies[name], 0.5))
        yield timed.sample(CALL_P99, quantile(latencies[name], 0.99))
    yield last[PLAIN.name].sample(TIMER, timer_step_seconds())


def arms_of(number: int) -> Sequence[Arm]:
    """Those of the turn of a number from 0: enough of each arm for what it shows, in the time there is."""
    stalled = (STALLED,) if number % 4 == 3 else ()  # stalls are looked for in all calls together
    return PLAIN, TWIN, SLOWED, *stalled, *((UNWATCHED,) if number % 2 else ())


def _calls(worker: Any, *, loops: int, stall_seconds: float, numbers: Iterator[int]) -> list[float]:
    """How long each call took, one after the other; wrong results are an error."""
    import ray

    found = []
    for number in itertools.islice(numbers, CALLS):
        begin = perf_counter()
        done = ray.get(worker.work.remote(loops, 0.0 if number % STALL_EVERY else stall_seconds))
        found.append(perf_counter() - begin)
        if done != loops:
            raise ValueError(f"{loops} loops were asked for, and {done} were done")
    return found


def quantile(values: list[float], share: float) -> float:
    """The least value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def timer_step_seconds() -> float:
    """The least step between two different answers of the clock, of a thousand."""
    answers = [perf_counter() for _ in range(1000)]
    return min((b - a for a, b in itertools.pairwise(answers) if b > a), default=0.0)


EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    run=run,
)
