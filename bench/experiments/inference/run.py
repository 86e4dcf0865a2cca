"""Runs inference: actors and peers start, then every arm answers all inputs in each turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from bench.context import Context, Measured, over_turns
from bench.counts import plural
from bench.data import digits
from bench.experiments.inference import mlp
from bench.experiments.inference.arms import (
    ALL_CPUS,
    ARMS,
    BARE_CALLS,
    EMPTY_CALLS,
    IN_PEERS,
    ONE_BY_ONE,
    POOL,
    RAY,
    UNWATCHED,
)
from bench.experiments.inference.metrics import (
    END_TO_END,
    FIRST_RESULT,
    STARTUP,
    Pass,
    latencies,
    payload_bytes_per_input,
    sample_or_reason,
    samples,
)
from bench.experiments.inference.params import Params
from bench.experiments.inference.peers import InferencePeers, start_peers
from bench.experiments.inference.predictors import Answers, Predictors
from bench.experiments.toolkit import parts, response_times
from bench.experiments.toolkit.load import RayCalls
from bench.experiments.toolkit.placement import Place, Span, places, spans
from bench.experiments.toolkit.response_times import ResponseTimes, Subject
from bench.model import Interval, Sample

if TYPE_CHECKING:
    from bench.experiments.inference.mlp import Layers

MOST_BYTES = 64 * 2**20  # that requests without an answer carry: they lie in the object store

Work = tuple[Callable[[], Pass], Callable[[Pass], Mapping[str, float]]]


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: actors and peers start, then every arm answers all inputs in each turn."""
    context.data(params.data, digits.checksum(params.data, context.seed))
    layers = mlp.make_layers(context.seed, params.dtype)
    vectors = mlp.make_vectors(params.data, context.seed, params.dtype)
    expected = expected_answers(layers, vectors, params.inputs)
    checks = ConsistencyChecks(context, params)
    checks.same_answers(sha256(expected).hexdigest())

    slots = places(params.actors, context.nodes)
    context.leaves_idle([node.name for node in context.nodes if node not in [slot.node for slot in slots]])

    with ExitStack() as ends:
        started = context.time_once(RAY.name, partial(_start, params, context, layers, slots))
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
            yield sample_or_reason(since_begin, metric, since_begin.interval.seconds, problem)
        if problem is not None:
            context.invalid(problem)

        peers = start_peers(
            context.nodes if any(map(context.wants, IN_PEERS)) else [],
            layers,
            vectors,
            inputs=params.inputs,
            batch=params.batch,
            has_pool=context.wants(POOL),
        )
        ends.callback(peers.processes.close)
        peers.ready()
        checks.same_weights(predictors.ready())
        work = _work(predictors, peers, batches, expected, progress=context.progress if params.chaos else None)
        responses = _response_times(predictors, expected, params, context)
        kept: dict[str, list[Measured[Pass]]] = {RAY.name: [], EMPTY_CALLS.name: []}
        for turn in context.turns():
            for arm in turn.order(ARMS):
                if arm == RAY:
                    predictors.take_work_done()  # what other arms did is none of its work
                measured = turn.measure(arm, *work[arm.name])
                if arm == RAY:
                    yield from parts.work_samples(measured, [predictors.take_work_done()])
                checks.keep(measured.results)
                yield from samples(arm, measured, params)
                if arm.name in kept and not turn.warmup:
                    kept[arm.name].append(measured)
            yield from responses.measure(turn)
        checks.same_weights(predictors.ready())
    for timed in kept.values():
        yield from over_turns(timed, latencies)
    yield from responses.percentiles()


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


def most_outstanding(bytes_per_request: float, in_flight: int) -> int:
    """Requests without an answer, at most: what the object store has room for, or twice what the closed loop has."""
    return max(2 * in_flight, min(response_times.MOST_OUTSTANDING, int(MOST_BYTES / bytes_per_request)))


def _response_times(predictors: Predictors, expected: bytes, params: Params, context: Context) -> ResponseTimes:
    """Those of the actors' answers to one batch each, over and over; `expected` has the answer to every input."""
    batches = spans(0, params.inputs, params.batch)

    def batch(number: int) -> Span:
        return batches[number % len(batches)]

    def is_right(number: int, answer: Any) -> bool:
        start, stop = batch(number)
        return bool(answer == expected[start:stop])

    def by_node(actors: Sequence[int]) -> Mapping[str, float]:
        nodes = [predictors.node_of(actor) for actor in actors]
        return predictors.inputs_by_node(nodes, [batch(number) for number in range(len(actors))])

    subject = Subject(
        arm=RAY,
        calls=RayCalls(lambda actor, number: predictors.request(actor, batch(number)), params.actors),
        in_flight=params.in_flight,
        is_right=is_right,
        by_node=by_node,
        most_outstanding=most_outstanding(
            params.batch * payload_bytes_per_input(params), params.in_flight * params.actors
        ),
    )
    return ResponseTimes(context=context, subject=subject, choice=params.open_loop, seconds=params.open_loop_seconds)


def _start(params: Params, context: Context, layers: Layers, slots: Sequence[Place]) -> Predictors:
    """Actors that have the network, and have said so."""
    predictors = Predictors(
        slots,
        layers,
        vectors=(params.data, context.seed, params.dtype),
        data_path=params.data_path,
        in_flight=params.in_flight,
    )
    predictors.ready()
    return predictors


def _work(
    predictors: Predictors,
    peers: InferencePeers,
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
class ConsistencyChecks:
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


def _fault(calls: Answers, *, is_faulty: bool = False) -> str | None:
    if is_faulty or not calls.failures:
        return None
    replaced = plural(calls.replaced, "actor was", "actors were")
    return f"{plural(calls.failures, 'call')} failed, and {replaced} replaced"


def _digest(answers: bytes) -> str:
    return sha256(answers).hexdigest()
