"""Tune overhead: the time that Ray Tune adds to its trials.

Ray's three scalability tests with their own parameters, scaled to the CPUs of the nodes.

The names, the trainable and what counts as overhead are those of Ray's release tests; the trials sleep, so observed time
above the minimum is Tune's, and the network's where trials are on other nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from json import loads
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from msgspec import Meta

from bench.context import Context
from bench.errors import RunInvalid
from bench.experiments import Experiment, Profile
from bench.experiments.toolkit.environment import environment
from bench.metrics import rate, ratio, seconds
from bench.model import Arm, Sample

OVERHEAD = ratio(
    "overhead_ratio",
    "1",
    "Observed time divided by the minimum; without a point: result throughput on a cluster.",
    better="lower",
)
OBSERVED = seconds("observed_seconds", "Time from the start of Tune until its end.", is_total=True)
RESULTS = rate("results_per_second", "results/s", "Results reported by all trials, per second.")
METRICS = (OVERHEAD, OBSERVED, RESULTS)
RAY = Arm(name="ray-tune", help="Ray Tune, trials of one CPU that sleep and report.", role="subject")
ARMS = (RAY,)


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied. Published: 100 to 300 s a trial, 96 to 1,000 trials, on 96 to 1,024 CPUs."""

    trial_seconds: Annotated[
        int, Meta(ge=1, le=1000, description="Seconds that each trial sleeps.", extra={"unit": "SECONDS", "size": True})
    ] = 100
    waves: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="Trials for each CPU, one after the other.",
            extra={"unit": "WAVES", "amount": True},
        ),
    ] = 1


PROFILES = {
    "tiny": Profile(
        help="Trials of 2 s, whose start takes as long as they do; not comparable with published figures.",
        grids=({"trial_seconds": (2,)},),
        blocks=1,
        warmups=0,
        samples=1,
        sample_seconds=0.01,
    ),
    "lab": Profile(
        help="Trials of 30 s.",
        grids=({"trial_seconds": (30,)},),
        blocks=6,
        warmups=0,
        samples=2,
        sample_seconds=0.01,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="Trials of 100 s, as published.",
        grids=({"trial_seconds": (100,)}, {"trial_seconds": (100,), "waves": (4,)}),
        blocks=6,
        warmups=0,
        samples=2,
        sample_seconds=0.01,
        deadline_seconds=4 * 3600.0,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Test:
    """One of the three: its name there, and how many results each trial reports a second."""

    name: str
    published_per_second: float

    def per_second(self, trial_seconds: int) -> float:
        """How many results a trial of that length reports a second: at least one in all, or Tune calls it failed."""
        return max(self.published_per_second, (1.0 + 1e-9) / trial_seconds)

    def results(self, trial_seconds: int) -> int:
        """Of one trial, as Ray's harness counts them."""
        return int(trial_seconds / (1.0 / self.per_second(trial_seconds)))


# Published: 500 results/s on one node, 0.5 on a cluster, 0.01 for network overhead, where one result in 100 s is
# reported; a shorter trial reports one at its begin.
TESTS = (
    Test(name="result throughput single node", published_per_second=500),
    Test(name="result throughput cluster", published_per_second=0.5),
    Test(name="network overhead", published_per_second=0.01),
)
HEADLINE = TESTS[1].name
TUNE_SECONDS = 4.0  # to start and to end: a guess
RESULTS_PER_SECOND = 250.0  # that Tune takes on two cores, from two trials: a guess


@dataclass(frozen=True, kw_only=True)
class Done:
    """One test: its seconds, and how many trials ended in which state."""

    seconds: float
    states: Mapping[str, int]


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: the three tests in each turn."""
    cpus = {node.name: node.cpus for node in context.nodes}
    trials = sum(cpus.values()) * params.waves
    minimum_seconds = float(params.trial_seconds * params.waves)
    for turn in context.turns():
        for test in TESTS:
            timed = turn.measure(
                RAY,
                partial(run_test, test, trials, params.trial_seconds),
                lambda _: {name: float(count * params.waves) for name, count in cpus.items()},
                point=test.name,
            )
            done = timed.results[0]
            if done.states != {"TERMINATED": trials}:
                reason = f"{test.name}: trials ended {dict(done.states)}, and {trials} should have terminated"
                context.invalid(reason)
                yield timed.missing(OVERHEAD, reason)
                continue
            overhead = timed.sample(OVERHEAD, done.seconds / minimum_seconds)
            yield overhead
            if test.name == HEADLINE:
                yield replace(overhead, point="")
            yield timed.sample(OBSERVED, done.seconds)
            yield timed.sample(RESULTS, trials * test.results(params.trial_seconds) / done.seconds)


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """The three tests."""
    return {
        RAY.name: tuple(
            TUNE_SECONDS
            + params.waves * max(params.trial_seconds, 2 * test.results(params.trial_seconds) / RESULTS_PER_SECOND)
            for test in TESTS
        )
    }


def run_test(test: Test, trials: int, trial_seconds: int) -> Done:
    """One test by Ray's own harness, which writes what it found to a file."""
    from ray.tune.utils.release_test_util import timed_tune_run

    with TemporaryDirectory() as folder, environment({"TEST_OUTPUT_JSON": f"{folder}/tune_test.json"}):
        timed_tune_run(
            name=test.name,
            num_samples=trials,
            results_per_second=test.per_second(trial_seconds),
            trial_length_s=trial_seconds,
            max_runtime=100 * trial_seconds,
            resources_per_trial={"cpu": 1},
            storage_path=folder,
            verbose=0,
        )
        return read((Path(folder) / "tune_test.json").read_text())


def read(text: str) -> Done:
    """What the harness wrote. Raises RunInvalid where that is not what it writes."""
    try:
        found = loads(text)
        return Done(seconds=float(found["time_taken"]), states=dict(found["trial_states"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RunInvalid(f"Tune's harness left no result that can be read: {text[:100]!r}") from error


EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    run=run,
)
