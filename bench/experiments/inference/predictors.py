"""Runs inference on Ray: actors that hold the network, and the calls that send every input through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from bench.data import digits
from bench.errors import RunInvalid
from bench.experiments.inference import mlp
from bench.experiments.toolkit.parts import WorkDone
from bench.experiments.toolkit.placement import Place, Span, get_in_time, on
from bench.experiments.toolkit.pool import Answer, WorkerPool

if TYPE_CHECKING:
    from bench.experiments.inference.mlp import Array, Layers

DataPath = Literal["by-value", "by-reference", "local"]
Recipe = tuple[digits.Source, int, mlp.Dtype]  # what input vectors are made from

READY_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What an actor holds once it is ready."""

    threads: int
    weights: str  # their checksum
    writable: bool


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the calls for all spans gave, and what they took."""

    values: list[Any]  # one a span, in their order
    nodes: list[str]  # the name of the node that answered each span
    latencies: list[float]  # seconds from a call's submission until it was seen to be ready; answered calls only
    failures: int  # calls that gave no answer
    replaced: int  # actors
    driver_seconds: float = 0.0  # to submit calls, and to take their answers out


def success_rate(passes: Sequence[Answers]) -> float:
    """Calls that gave an answer, of all that were made."""
    answered = sum(len(answers.latencies) for answers in passes)
    return answered / (answered + sum(answers.failures for answers in passes))


class Predictor:
    """The network in an actor. Its weights stay in the object store, which is read-only."""

    def __init__(self, layers: Layers, own_vectors: Recipe | None, threads: int) -> None:
        from threadpoolctl import threadpool_limits

        self._layers = layers
        self._own_vectors: Any = None if own_vectors is None else mlp.make_vectors(*own_vectors)
        self._limits = threadpool_limits(threads, user_api="blas")
        self._busy_seconds = 0.0
        self._inputs = 0

    def ready(self) -> Loaded:
        """Says that it is, and what it holds."""
        return Loaded(
            threads=mlp.native_threads(),
            weights=mlp.fingerprint(self._layers),
            writable=any(array.flags.writeable for layer in self._layers for array in layer),
        )

    def predict(self, rows: Array) -> bytes:
        """The classes of `rows`."""
        begin = monotonic()
        classes = mlp.answer(self._layers, rows).tobytes()
        self._inputs += len(classes)
        self._busy_seconds += monotonic() - begin
        return classes

    def predict_span(self, vectors: Array | None, start: int, stop: int) -> bytes:
        """The classes of inputs `start` to `stop` of `vectors`, or of its own."""
        return self.predict(mlp.rows_of(self._own_vectors if vectors is None else vectors, start, stop))

    def take_work_done(self) -> tuple[float, int]:
        """Seconds at work, and inputs answered, since this was asked before."""
        done = self._busy_seconds, self._inputs
        self._busy_seconds, self._inputs = 0.0, 0
        return done

    def skip(self, rows: Array) -> bytes:
        """As many bytes as `predict` gives, and no arithmetic."""
        return bytes(len(rows))

    def skip_span(self, _vectors: Array | None, start: int, stop: int) -> bytes:
        """As many bytes as `predict_span` gives, and no arithmetic."""
        return bytes(stop - start)

    def nothing(self) -> bytes:
        """What a call costs that carries nothing and does nothing."""
        return b""


class Predictors:
    """Actors on their nodes, and ways to have every input go through them: with the network, and with ever less."""

    def __init__(
        self, places: Sequence[Place], layers: Layers, *, vectors: Recipe, data_path: DataPath, in_flight: int
    ) -> None:
        import ray

        self.places = places
        # Put once: an actor is given the reference, and reads the store's own copy.
        self._weights = ray.put(layers)
        self._own_vectors = vectors if data_path == "local" else None
        self._predict, self._skip = _calls(data_path, vectors)
        self._pool = WorkerPool(self._spawn, lambda: places, in_flight=in_flight)

    def ready(self) -> set[str]:
        """Wait for every actor; gives the checksums of their weights. Raises RunInvalid if one is not as asked for."""
        loaded: list[Loaded] = get_in_time(
            [worker.actor.ready.remote() for worker in self._pool.workers],
            READY_SECONDS,
            "Actors that load the network",
        )
        for worker, found in zip(self._pool.workers, loaded, strict=True):
            place = worker.place
            if found.threads != place.threads:
                raise RunInvalid(
                    f"An actor on {place.node.name} has {found.threads} native threads, not {place.threads}."
                )
            if found.writable:
                raise RunInvalid(f"An actor on {place.node.name} has weights that can be written to.")
        return {found.weights for found in loaded}

    def predict(self, spans: Sequence[Span], progress: Callable[[float, float], None] | None = None) -> Answers:
        """Have each span answered by the network."""
        return self._call_all(self._predict, spans, progress)

    def skip(self, spans: Sequence[Span]) -> Answers:
        """The same calls of the same actors with the same arguments, without the network."""
        return self._call_all(self._skip, spans)

    def call(self, spans: Sequence[Span]) -> Answers:
        """As many calls of the same actors, with nothing in them."""
        return self._call_all(lambda actor, _: actor.nothing.remote(), spans)

    def take_work_done(self) -> list[WorkDone]:
        """What each actor did since this was asked before."""
        done: list[tuple[float, int]] = get_in_time(
            [worker.actor.take_work_done.remote() for worker in self._pool.workers],
            READY_SECONDS,
            "Actors that say what they did",
        )
        return [
            WorkDone(node=worker.place.node.name, busy_seconds=seconds, units=inputs)
            for worker, (seconds, inputs) in zip(self._pool.workers, done, strict=True)
        ]

    def request(self, number: int, span: Span) -> Any:
        """A reference to the network's answer to one span, by an actor of that number; nothing waits for it."""
        return self._predict(self._pool.workers[number].actor, span)

    def node_of(self, number: int) -> str:
        """The name of the node of an actor, by its number."""
        return self._pool.workers[number].place.node.name

    def inputs_by_node(self, nodes: Sequence[str], spans: Sequence[Span]) -> dict[str, float]:
        """How many inputs each node that has an actor answered; `nodes`: which one answered each span."""
        inputs: Counter[str] = Counter({place.node.name: 0 for place in self.places})
        for node, (start, stop) in zip(nodes, spans, strict=True):
            inputs[node] += stop - start
        return {name: float(count) for name, count in inputs.items()}

    def close(self) -> None:
        """End the actors."""
        self._pool.close()

    def _call_all(
        self,
        call: Callable[[Any, Span], Any],
        spans: Sequence[Span],
        progress: Callable[[float, float], None] | None = None,
    ) -> Answers:
        """`progress` is told how many calls are answered, of how many."""
        answers: list[Answer] = []

        def keep(new: Sequence[Answer]) -> None:
            answers.extend(new)
            if progress:
                progress(len(answers), len(spans))

        counts = self._pool.run(call, spans, keep)
        answers.sort(key=lambda answer: answer.number)
        return Answers(
            values=[answer.value for answer in answers],
            nodes=[answer.worker.place.node.name for answer in answers],
            latencies=[answer.seconds for answer in answers],
            failures=counts.failures,
            replaced=len(counts.losses),
            driver_seconds=counts.driver_seconds,
        )

    def _spawn(self, place: Place, _: str) -> Any:
        import ray

        actor = ray.remote(Predictor).options(num_cpus=place.cpus, scheduling_strategy=on(place.node))
        return actor.remote(self._weights, self._own_vectors, place.threads)


def _calls(data_path: DataPath, recipe: Recipe) -> tuple[Callable[[Any, Span], Any], Callable[[Any, Span], Any]]:
    """How an actor is called for a span, with the network and without: what goes with the call is the data path."""
    import ray

    if data_path == "by-value":
        vectors = mlp.make_vectors(*recipe)
        return (
            lambda actor, span: actor.predict.remote(mlp.rows_of(vectors, *span)),
            lambda actor, span: actor.skip.remote(mlp.rows_of(vectors, *span)),
        )
    held = ray.put(mlp.make_vectors(*recipe)) if data_path == "by-reference" else None
    return (
        lambda actor, span: actor.predict_span.remote(held, *span),
        lambda actor, span: actor.skip_span.remote(held, *span),
    )
