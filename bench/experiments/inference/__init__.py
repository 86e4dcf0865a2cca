"""Inference: a small neural network in a pool of actors answers many inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from math import fsum
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from bench.context import Context, Measured, over_turns
from bench.data import digits
from bench.errors import BadInput
from bench.experiments import Profile
from bench.experiments.inference import load as inference_load
from bench.experiments.inference import mlp
from bench.experiments.inference.peers import Peers, start_peers
from bench.experiments.inference.predictors import Answers, DataPath, Predictors, success_rate
from bench.experiments.toolkit import faults, parts, response_times
from bench.experiments.toolkit.placement import Place, Span, places, spans
from bench.metrics import rate, ratio, seconds, size
from bench.model import Arm, Interval, Metric, Sample, Topology, Value

if TYPE_CHECKING:
    from bench.experiments.inference.mlp import Layers

THROUGHPUT = rate("throughput_inputs_per_second", "inputs/s", "Inputs answered and checked per second.")
END_TO_END = seconds(
    "end_to_end_seconds",
    "Start-up, and all inputs once, for the first time: what a person waits for.",
    means="end to end",
)
STARTUP = seconds("startup_seconds", "Until every actor has the network and answers.")
FIRST_RESULT = seconds("first_result_seconds", "Start-up, and the first batch by the data path.")
LATENCIES = {
    share: seconds(
        f"closed_loop_latency_p{share}_seconds",
        f"A call from its submission until it is seen to be ready, {share} % of calls; closed loop.",
        means="median latency" if share == 50 else "",
    )
    for share in (50, 90, 99)
}
SUCCESS = ratio("success_ratio", "calls/call", "Calls that gave an answer, of all made.", better="higher")
PAYLOAD = size(
    "payload_bytes_per_input",
    "B/input",
    "What the calls themselves carry by the data path, to and fro.",
    means="payload",
)
METRICS = (
    *(THROUGHPUT, END_TO_END, STARTUP, FIRST_RESULT, *LATENCIES.values(), SUCCESS, PAYLOAD),
    *(parts.BUSY, parts.COMPUTE, parts.STRAGGLER, parts.SERIALISE),
    *response_times.METRICS,
)

RAY = Arm(name="ray", help="Actors of Ray hold the network.", role="subject")
EMPTY_CALLS = Arm(
    name="empty-calls", help="The same calls of the same actors with the same arguments, no arithmetic.", role="calls"
)
BARE_CALLS = Arm(name="bare-calls", help="As many calls of the same actors, with nothing in them.", role="calls")
ONE_BY_ONE = Arm(name="numpy-one-by-one", help="numpy, each input by itself, one thread of the first node.")
ALL_CPUS = Arm(
    name="numpy-all-cpus", help="numpy, up to 1,000 inputs at a time, all threads of all nodes.", role="ceiling"
)
POOL = Arm(name="pool", help="multiprocessing.Pool, a process per CPU, the same batches by value.")
UNWATCHED = Arm(name="ray-unwatched", help="As ray, while raymeter does not watch.", role="control", probed=False)
ARMS = (RAY, EMPTY_CALLS, BARE_CALLS, ONE_BY_ONE, ALL_CPUS, POOL, UNWATCHED)
CHAOS = faults.ToleratedFaults(kinds=("worker",), workers="Predictor")

SPAN_BYTES = 16  # two integers, in place of the rows
ANSWER_BYTES = 1


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    actors: Annotated[int, Meta(ge=1, le=1_000, description="Actors, the nodes in turn.", extra={"unit": "ACTORS"})] = 2
    batch: Annotated[int, Meta(ge=1, le=100_000, description="Inputs in one call.", extra={"unit": "INPUTS"})] = 10
    inputs: Annotated[int, Meta(ge=1, le=100_000_000, description="Inputs in one pass.", extra={"unit": "INPUTS"})] = (
        10_000
    )
    data: Annotated[digits.Source, Meta(description="Handwritten digits, or random grey values.")] = "mnist"
    data_path: Annotated[
        DataPath,
        Meta(description="by-value: the driver sends each batch; by-reference: put once; local: made by each actor."),
    ] = "by-value"
    in_flight: Annotated[
        int, Meta(ge=1, le=1_000, description="Calls that one actor has in flight, at most.", extra={"unit": "CALLS"})
    ] = 4
    dtype: Annotated[mlp.Dtype, Meta(description="Type of inputs and weights.")] = "float64"
    open_loop: response_times.Choice = "poisson"
    open_loop_seconds: response_times.Seconds = 0.5
    chaos: faults.Choice = ""

    def __post_init__(self) -> None:
        if self.batch > self.inputs:
            raise BadInput(
                f"A batch of {self.batch} does not fit into {self.inputs} inputs.", "Lower batch, or raise inputs."
            )


_LAB: tuple[Mapping[str, tuple[Value, ...]], ...] = (
    # The study's two steps, 1 actor unbatched and 10 actors x 10, are corners of this; it changed both at once.
    {"actors": (1, 10), "batch": (1, 10, 100, 1_000), "inputs": (100_000,), "open_loop_seconds": (3.0,)},
    {"actors": (10,), "batch": (1_000,), "inputs": (100_000,), "data_path": ("by-reference", "local")},
    {"actors": (10,), "batch": (10,), "inputs": (1_000_000,)},  # long enough for a reading of CPU and network
)
PROFILES = {
    "tiny": Profile(
        help="Minutes: unbatched by value, and batches of 1,000 by reference.",
        grids=(
            {"actors": (2,), "batch": (1,), "inputs": (500,)},
            {"actors": (2,), "batch": (1_000,), "inputs": (10_000,), "data_path": ("by-reference",)},
        ),
        blocks=6,
        warmups=1,
        samples=2,
        sample_seconds=0.25,
    ),
    "lab": Profile(
        help="Hours: 1 and 10 actors by batches of 1 to 1,000; 100,000 inputs, and 1,000,000 once.",
        grids=_LAB,
        blocks=6,
        warmups=1,
        samples=5,
        sample_seconds=1.0,
        deadline_seconds=4 * 3600.0,
    ),
    "full": Profile(
        help="Days: as lab, and sizes about Ray's inline limit, data paths, float32 and calls in flight.",
        grids=(
            *_LAB,
            # 16 float64 inputs go with the call, 17 through the object store; 32 and 33 of float32.
            {"actors": (1, 2, 4), "batch": (1, 10, 16, 17, 100, 1_000), "inputs": (100_000,)},
            {"actors": (1, 2, 4), "batch": (10_000,), "inputs": (100_000,), "in_flight": (1,)},  # 63 MB a call
            {"actors": (2,), "batch": (32, 33, 1_000), "inputs": (100_000,), "dtype": ("float32",)},
            {"actors": (2,), "batch": (10, 1_000), "inputs": (100_000,), "data_path": ("by-reference", "local")},
            {"actors": (2,), "batch": (1, 10), "inputs": (100_000,), "in_flight": (1, 2, 8)},
        ),
        blocks=12,
        warmups=1,
        samples=5,
        sample_seconds=1.0,
        deadline_seconds=4 * 3600.0,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Pass:
    """All inputs, once: checked, and what it took."""

    problem: str | None
    digest: str | None = None  # of the answers; None where there are none
    calls: Answers | None = None  # None where Ray did not carry them


Work = tuple[Callable[[], Pass], Callable[[Pass], Mapping[str, float]]]


def busy_workers(params: Params, _: Topology) -> int:
    """Every actor answers at once."""
    return params.actors


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: actors and peers start, then every arm answers all inputs in each turn."""
    context.data(params.data, digits.checksum(params.data, context.seed))
    layers = mlp.make_layers(context.seed, params.dtype)
    vectors = mlp.make_vectors(params.data, context.seed, params.dtype)
    expected = expected_answers(layers, vectors, params.inputs)
    vow = _Vow(context, params)
    vow.same_answers(sha256(expected).hexdigest())

    seats = places(params.actors, context.nodes)
    context.leaves_idle([node.name for node in context.nodes if node not in [seat.node for seat in seats]])

    with ExitStack() as ends:
        started = context.time_once(RAY.name, partial(_start, params, context, layers, seats))
        predictors = started.results[0]
        ends.callback(predictors.close)
        yield started.sample(STARTUP, started.interval.seconds)
        batches = spans(0, params.inputs, params.batch)
        first = context.time_once(RAY.name, partial(predictors.predict, batches[:1]))
        rest = context.time_once(RAY.name, partial(predictors.predict, batches[1:]))
        answers = b"".join((*first.results[0].values, *rest.results[0].values))
        problem = check(answers, expected)
        for part, metric in ((first, FIRST_RESULT), (rest, END_TO_END)):
            since_begin = replace(part, interval=Interval(started.interval.begin, part.interval.end))
            yield _sample(since_begin, metric, since_begin.interval.seconds, problem)
        if problem is not None:
            context.invalid(problem)

        peers = start_peers(context.nodes, layers, vectors, inputs=params.inputs, batch=params.batch)
        ends.callback(peers.processes.close)
        peers.ready()
        vow.same_weights(predictors.ready())
        work = _work(predictors, peers, batches, expected, progress=context.progress if params.chaos else None)
        request_bytes = params.batch * payload_bytes_per_input(params)
        responses = inference_load.response_times(
            RAY, predictors, expected, params=params, context=context, bytes_per_request=request_bytes
        )
        kept: dict[str, list[Measured[Pass]]] = {RAY.name: [], EMPTY_CALLS.name: []}
        for turn in context.turns():
            for arm in turn.order(ARMS):
                if arm == RAY:
                    predictors.take_work_done()  # what other arms did is none of its work
                measured = turn.measure(arm, *work[arm.name])
                if arm == RAY:
                    yield from parts.work_samples(measured, [predictors.take_work_done()])
                vow.keep(measured.results)
                yield from samples(arm, measured, params)
                if arm.name in kept and not turn.warmup:
                    kept[arm.name].append(measured)
            yield from responses.measure(turn)
        vow.same_weights(predictors.ready())
    for timed in kept.values():
        yield from over_turns(timed, latencies)
    yield from responses.percentiles()


def without_effect(params: Params) -> Collection[str]:
    """How long a load lasts that never comes."""
    return ("open_loop_seconds",) if params.open_loop == "off" else ()


def guess_pass_seconds(params: Params) -> float:
    """One pass of every arm, on two cores: calls cost a millisecond each and inputs what numpy takes for them."""
    calls = -(-params.inputs // params.batch)
    load = response_times.turn_seconds(params.open_loop, params.open_loop_seconds)
    return calls * 0.0033 + params.inputs * 0.00013 + load


def expected_answers(layers: Layers, vectors: mlp.Array, inputs: int) -> bytes:
    """The class of every input: the distinct vectors' classes, over and over."""
    import numpy as np

    distinct = mlp.answer_all(layers, vectors, 0, min(inputs, len(vectors)), mlp.BLOCK)
    return np.resize(np.frombuffer(distinct, dtype=np.uint8), inputs).tobytes()


def check(answers: bytes, expected: bytes) -> str | None:
    """What is wrong with the answers; None: nothing."""
    import numpy as np

    if len(answers) != len(expected):
        return f"{len(answers)} answers to {len(expected)} inputs"
    if answers == expected:
        return None
    wrong = np.count_nonzero(np.frombuffer(answers, dtype=np.uint8) != np.frombuffer(expected, dtype=np.uint8))
    return f"{wrong} of {len(expected)} answers are wrong"


def samples(arm: Arm, measured: Measured[Pass], params: Params) -> Iterator[Sample]:
    """The values of one arm in one turn, or the reason that there are none."""
    problem = next((done.problem for done in measured.results if done.problem), None)
    seconds, passes = measured.interval.seconds, len(measured.results)
    yield _sample(measured, THROUGHPUT, passes * params.inputs / seconds, problem)
    if arm == RAY:
        yield measured.sample(SUCCESS, success_rate([done.calls for done in measured.results if done.calls]))
        yield measured.sample(PAYLOAD, payload_bytes_per_input(params))
    if arm in (RAY, EMPTY_CALLS, BARE_CALLS):
        yield measured.sample(
            parts.SERIALISE, fsum(done.calls.driver_seconds for done in measured.results if done.calls)
        )


def latencies(timed: Sequence[Measured[Pass]]) -> Iterator[Sample]:
    """Percentiles over all calls of these turns: those of samples must not be averaged."""
    whole = replace(timed[-1], interval=Interval(timed[0].interval.begin, timed[-1].interval.end))
    passes = [done for measured in timed for done in measured.results]
    problem = next((done.problem for done in passes if done.problem), None)
    calls = sorted(one for done in passes if done.calls for one in done.calls.latencies)
    for share, metric in LATENCIES.items():
        needed = 1000 // (100 - share)
        few = None if len(calls) >= needed else f"{len(calls)} calls; p{share} needs {needed}"
        yield _sample(whole, metric, percentile(calls, share) if calls else 0.0, problem or few)


def percentile(ordered: Sequence[float], share: int) -> float:
    """The least of `ordered` values that `share` per cent of them do not exceed: one that was measured."""
    return ordered[-(-len(ordered) * share // 100) - 1]


def payload_bytes_per_input(params: Params) -> float:
    """What the calls carry for one input: its numbers or its share of two integers, and its answer."""
    if params.data_path == "by-value":
        return digits.PIXELS * (8 if params.dtype == "float64" else 4) + ANSWER_BYTES
    return SPAN_BYTES / params.batch + ANSWER_BYTES


def _start(params: Params, context: Context, layers: Layers, seats: Sequence[Place]) -> Predictors:
    """Actors that have the network, and have said so."""
    predictors = Predictors(
        seats,
        layers,
        vectors=(params.data, context.seed, params.dtype),
        data_path=params.data_path,
        in_flight=params.in_flight,
    )
    predictors.ready()
    return predictors


def _work(
    predictors: Predictors,
    peers: Peers,
    batches: Sequence[Span],
    expected: bytes,
    progress: Callable[[float, float], None] | None,
) -> dict[str, Work]:
    """How each arm does one pass, and how much of it each node did. `progress` is told how far the network is, and may inject faults."""
    fault = partial(_fault, is_faulty=progress is not None)

    def with_network() -> Pass:
        calls = predictors.predict(batches, progress)
        answers = b"".join(calls.values)
        return Pass(problem=check(answers, expected) or fault(calls), digest=_digest(answers), calls=calls)

    def without_network() -> Pass:
        calls = predictors.skip(batches)
        return Pass(problem=check(b"".join(calls.values), bytes(len(expected))) or fault(calls), calls=calls)

    def without_arguments() -> Pass:
        calls = predictors.call(batches)
        return Pass(problem=fault(calls), calls=calls)

    def by(peer: Callable[[], bytes]) -> Pass:
        answers = peer()
        return Pass(problem=check(answers, expected), digest=_digest(answers))

    def by_node(done: Pass) -> Mapping[str, float]:
        return predictors.inputs_by_node(done.calls.nodes, batches) if done.calls else {}

    return {
        RAY.name: (with_network, by_node),
        UNWATCHED.name: (with_network, by_node),
        EMPTY_CALLS.name: (without_network, by_node),
        BARE_CALLS.name: (without_arguments, by_node),
        ONE_BY_ONE.name: (partial(by, peers.one_by_one), lambda _: peers.all_on_first),
        ALL_CPUS.name: (partial(by, peers.all_cpus), lambda _: peers.spread),
        POOL.name: (partial(by, peers.pool), lambda _: peers.spread),
    }


@dataclass(frozen=True)
class _Vow:
    """What must be equal over turns, arms, cells and topologies, or the run is invalid."""

    context: Context
    params: Params

    def same_answers(self, digest: str) -> None:
        of = f"{self.params.inputs} {self.params.data} inputs, seed {self.context.seed}"
        self.context.same_everywhere(f"inference: answers to {of}", digest)

    def same_weights(self, found: set[str]) -> None:
        for weights in found:
            self.context.same_everywhere(f"inference: weights, seed {self.context.seed}", weights)

    def keep(self, passes: Sequence[Pass]) -> None:
        """Declare what each pass gave."""
        for done in passes:
            if done.digest is not None:
                self.same_answers(done.digest)
            if done.problem is not None:
                self.context.invalid(done.problem)


def _sample(measured: Measured[Any], metric: Metric, value: float, problem: str | None) -> Sample:
    return measured.sample(metric, value) if problem is None else measured.missing(metric, problem)


def _fault(calls: Answers, *, is_faulty: bool = False) -> str | None:
    if is_faulty or not calls.failures:
        return None
    return f"{calls.failures} calls failed, and {calls.replaced} actors were replaced"


def _digest(answers: bytes) -> str:
    return sha256(answers).hexdigest()
