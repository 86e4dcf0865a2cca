"""Core rates: tasks, actor calls and puts per second.

The names are those of Ray's own microbenchmark, on one node and across nodes.

Same shapes as `ray microbenchmark`, so that people can compare; on several nodes the callers are on the first node and
those who answer on the last. Every answer is counted and checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from bench.context import Context, Measured, NodeSlot
from bench.experiments import Experiment, Profile
from bench.experiments.toolkit import response_times
from bench.experiments.toolkit.load import RayCalls
from bench.experiments.toolkit.placement import get_in_time, on
from bench.experiments.toolkit.response_times import ResponseTimes, Subject
from bench.metrics import rate
from bench.model import Arm, Metric, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CALLS = rate(
    "calls_per_second", "calls/s", "Calls answered and checked per second; without a point: 1:1 actor calls sync."
)
PUT = rate(
    "put_bytes_per_second",
    "B/s",
    "Bytes put into the object store per second. Ray's own figure counts its 839 MB as 0.8 GB: 5 % lower.",
)
METRICS = (CALLS, PUT, *response_times.METRICS)

RAY = Arm(name="ray", help="Ray's tasks, actors and object store.", role="subject")
UNWATCHED = Arm(name="ray-unwatched", help="As ray, without raymeter's probes.", role="control", probed=False)
ARMS = (RAY, UNWATCHED)

HEADLINE = "1:1 actor calls sync"
PUT_GIGABYTES = "single client put gigabytes"
MULTI_PUT_GIGABYTES = "multi client put gigabytes"
CLIENTS = 4  # of what Ray calls multi client, and n:n
CONCURRENCY = 16
PUTTERS = 10
PUTTER_CALLS = 100
ANSWER_SECONDS = 120.0
OK = b"ok"


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    calls: Annotated[
        int,
        Meta(ge=10, le=10_000, description="Calls in flight in the async rates.", extra={"unit": "CALLS"}),
    ] = 1000
    put_bytes: Annotated[
        int,
        Meta(
            ge=2**17, le=2**30, description="Size of one object in the rates of put gigabytes.", extra={"unit": "BYTES"}
        ),
    ] = 32 * 2**20
    open_loop: response_times.Choice = "poisson"
    open_loop_seconds: response_times.Seconds = 0.5


PROFILES = {
    "tiny": Profile(
        help="All rates, 200 calls in flight.",
        grids=({"calls": (200,)},),
        blocks=6,
        warmups=1,
        samples=1,
        sample_seconds=0.05,
    ),
    "lab": Profile(
        help="All rates, 1,000 calls in flight as in Ray's own.",
        grids=({"calls": (1000,), "open_loop_seconds": (3.0,)},),
        blocks=6,
        warmups=1,
        samples=4,
        sample_seconds=2.0,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="As lab, with 100 to 10,000 calls in flight.",
        grids=({"calls": (100, 1000, 10_000), "open_loop_seconds": (3.0,)},),
        blocks=12,
        warmups=1,
        samples=4,
        sample_seconds=2.0,
        deadline_seconds=4 * 3600.0,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One of the microbenchmark's: its name there, what one pass does, and how many calls or bytes that is."""

    name: str
    work: Callable[[], int]  # gives how many answers were right
    amount: int
    metric: Metric = CALLS
    bytes_per_call: int = 1  # where bytes are what is counted

    @property
    def calls(self) -> int:
        """Of one pass: what the work of a node is counted in, at every point alike."""
        return self.amount // self.bytes_per_call


class Server:
    """It answers."""

    def small_value(self) -> bytes:
        """No work."""
        return OK

    def small_value_arg(self, _: Any) -> bytes:
        """No work, with an argument."""
        return OK


class Client:
    """It calls tasks or servers."""

    def tasks(self, task: Any, calls: int) -> int:
        """As many tasks at once; how many answered."""
        return answered([task.remote() for _ in range(calls)])

    def servers(self, servers: Sequence[Any], calls: int) -> int:
        """As many calls of each server at once."""
        return answered([server.small_value.remote() for server in servers for _ in range(calls)])

    def servers_with_argument(self, servers: Sequence[Any], calls: int) -> int:
        """As many calls of each server at once, with a reference as argument."""
        import ray

        argument = ray.put(0)
        return answered([server.small_value_arg.remote(argument) for server in servers for _ in range(calls)])


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: every rate in each turn."""
    nodes = [node for node in context.nodes if node.cpus > 0]
    ends = {nodes[0].name, nodes[-1].name}
    context.leaves_idle([node.name for node in context.nodes if node.name not in ends])
    with ExitStack() as exits:
        rates = start(params, nodes, exits)
        responses = response_times_of(params, nodes, exits, context)
        for turn in context.turns():
            for rate in rates:
                credit = partial(_credit, ends, rate.calls)
                for arm in turn.order(ARMS):
                    if arm == UNWATCHED and rate.name != HEADLINE:
                        continue
                    timed = turn.measure(arm, rate.work, credit, point=rate.name)
                    yield from _samples(timed, rate, context)
            yield from responses.measure(turn)
        yield from responses.percentiles()


def without_effect(params: Params) -> Collection[str]:
    """How long a load lasts that never comes."""
    return ("open_loop_seconds",) if params.open_loop == "off" else ()


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """One pass of every rate, in the order in which they are measured, and of every load."""
    calls, few, clients = params.calls, _few(params), CLIENTS * params.calls
    sync = few * 6e-4
    rates = (
        calls * 2e-4,
        calls * 5e-4,
        0.3,
        params.put_bytes / 2e9,
        PUTTERS * params.put_bytes / 1e9,
        few * 1.6e-3,
        calls * 4e-4,
        clients * 4.5e-4,
        sync,
        calls * 2e-4,
        calls * 3e-4,
        calls * 2e-4,
        clients * 2.2e-4,
        calls * 4e-4,
    )
    loads = response_times.guess_pass_seconds(params.open_loop, params.open_loop_seconds)
    return {RAY.name: (*rates, *loads), UNWATCHED.name: (sync,)}


def guess_other_seconds(_params: Params) -> float:
    """A dozen actors start."""
    return 4.0


def start(params: Params, nodes: Sequence[NodeSlot], exits: ExitStack) -> list[Rate]:
    """The actors, ready, and what is done with them. `exits` ends them."""
    return [
        *store_rates(params),
        *task_rates(params, nodes, exits),
        *one_to_one_rates(params, nodes[-1], exits),
        *many_actors_rates(params, nodes, exits),
    ]


def store_rates(params: Params) -> list[Rate]:
    """Puts and gets, of the driver and of several at once. Nothing that is put is kept."""
    import numpy as np
    import ray

    put_many = ray.remote(_put_many).options(scheduling_strategy="SPREAD")
    put_large = ray.remote(_put_large).options(scheduling_strategy="SPREAD")
    value = ray.put(0)
    array = np.zeros(params.put_bytes // 8, dtype=np.int64)
    calls = params.calls
    return [
        Rate(name="single client get calls (Plasma Store)", work=lambda: _get(value, calls), amount=calls),
        Rate(name="single client put calls (Plasma Store)", work=lambda: _put_many(calls), amount=calls),
        Rate(
            name="multi client put calls (Plasma Store)",
            work=lambda: _together([put_many.remote(PUTTER_CALLS) for _ in range(PUTTERS)]),
            amount=PUTTERS * PUTTER_CALLS,
        ),
        Rate(
            name=PUT_GIGABYTES,
            work=lambda: _put(array),
            amount=array.nbytes,
            metric=PUT,
            bytes_per_call=array.nbytes,
        ),
        Rate(
            name=MULTI_PUT_GIGABYTES,
            work=lambda: _together([put_large.remote(params.put_bytes) for _ in range(PUTTERS)]),
            amount=PUTTERS * array.nbytes,
            metric=PUT,
            bytes_per_call=array.nbytes,
        ),
    ]


def task_rates(params: Params, nodes: Sequence[NodeSlot], exits: ExitStack) -> list[Rate]:
    """Tasks of the driver on the last node, and of several clients anywhere."""
    import ray

    there = ray.remote(_small_value).options(scheduling_strategy=on(nodes[-1]))
    anywhere = ray.remote(_small_value)
    clients = [_place(Client, nodes[index % len(nodes)], exits) for index in range(CLIENTS)]
    calls, few = params.calls, _few(params)
    return [
        Rate(name="single client tasks sync", work=lambda: _one_by_one(there.remote, few), amount=few),
        Rate(name="single client tasks async", work=lambda: _at_once(there.remote, calls), amount=calls),
        Rate(
            name="multi client tasks async",
            work=lambda: _together([client.tasks.remote(anywhere, calls) for client in clients]),
            amount=CLIENTS * calls,
        ),
    ]


def one_to_one_rates(params: Params, node: NodeSlot, exits: ExitStack) -> list[Rate]:
    """The driver calls one actor on `node`."""
    server = _place(Server, node, exits)
    threaded = _place(Server, node, exits, max_concurrency=CONCURRENCY)
    calls, few = params.calls, _few(params)
    return [
        Rate(name=HEADLINE, work=lambda: _one_by_one(server.small_value.remote, few), amount=few),
        Rate(name="1:1 actor calls async", work=lambda: _at_once(server.small_value.remote, calls), amount=calls),
        Rate(
            name="1:1 actor calls concurrent", work=lambda: _at_once(threaded.small_value.remote, calls), amount=calls
        ),
    ]


def many_actors_rates(params: Params, nodes: Sequence[NodeSlot], exits: ExitStack) -> list[Rate]:
    """Clients from the first node on call servers from the last one on; n is half of the CPUs, as in Ray's own."""
    import ray

    count = max(1, sum(node.cpus for node in nodes) // 2)
    servers = [_place(Server, nodes[-1 - index % len(nodes)], exits) for index in range(count)]
    clients = [_place(Client, nodes[index % len(nodes)], exits) for index in range(count)]
    work = ray.remote(_round_robin).options(scheduling_strategy="SPREAD")
    calls = params.calls
    return [
        Rate(
            name="1:n actor calls async",
            work=lambda: _together([clients[0].servers.remote(servers, calls)]),
            amount=calls * count,
        ),
        Rate(
            name="n:n actor calls async",
            work=lambda: _together([work.remote(servers, calls) for _ in range(CLIENTS)]),
            amount=CLIENTS * calls,
        ),
        Rate(
            name="n:n actor calls with arg async",
            work=lambda: _together(
                [
                    client.servers_with_argument.remote([server], calls)
                    for client, server in zip(clients, servers, strict=True)
                ]
            ),
            amount=count * calls,
        ),
    ]


def response_times_of(params: Params, nodes: Sequence[NodeSlot], exits: ExitStack, context: Context) -> ResponseTimes:
    """Those of actor calls from the driver: one actor on the last node, as in 1:1 actor calls."""
    server = _place(Server, nodes[-1], exits)
    ends = {nodes[0].name, nodes[-1].name}
    subject = Subject(
        arm=RAY,
        calls=RayCalls(lambda _slot, _number: server.small_value.remote(), slots=1),
        in_flight=CONCURRENCY,
        is_right=lambda _number, answer: answer == OK,
        by_node=lambda slots: _credit(ends, len(slots), 0),
    )
    return ResponseTimes(context=context, subject=subject, choice=params.open_loop, seconds=params.open_loop_seconds)


def _place(kind: type, node: NodeSlot, exits: ExitStack, **options: Any) -> Any:
    """An actor on `node`, that works."""
    import ray

    actor = ray.remote(kind).options(num_cpus=0, scheduling_strategy=on(node), **options).remote()
    exits.callback(ray.kill, actor)
    get_in_time([actor.__ray_ready__.remote()], ANSWER_SECONDS, f"An actor on {node.name}")
    return actor


def _few(params: Params) -> int:
    """Calls of one pass where each waits for its answer."""
    return max(1, params.calls // 20)


def _together(references: Sequence[Any]) -> int:
    """What all clients counted."""
    return sum(get_in_time(references, ANSWER_SECONDS, "Clients"))


def answered(references: Sequence[Any]) -> int:
    """How many of the calls gave the right answer."""
    return sum(answer == OK for answer in get_in_time(references, ANSWER_SECONDS, "Calls"))


def _samples(timed: Measured[int], rate: Rate, context: Context) -> Iterator[Sample]:
    wrong = [done for done in timed.results if done != rate.amount]
    if wrong:
        reason = f"{rate.name}: {wrong[0]} of {rate.amount} were answered"
        context.invalid(reason)
        yield timed.missing(rate.metric, reason)
        return
    sample = timed.sample(rate.metric, rate.amount * len(timed.results) / timed.interval.seconds)
    if timed.arm == RAY.name:
        yield sample
    if rate.name == HEADLINE:
        yield replace(sample, point="")


def _credit(ends: set[str], calls: int, _: int) -> Mapping[str, float]:
    """Half of the calls to those who call, half to those who answer."""
    return {name: calls / len(ends) for name in ends}


def _small_value() -> bytes:
    return OK


def _round_robin(servers: Sequence[Any], calls: int) -> int:
    return answered([servers[number % len(servers)].small_value.remote() for number in range(calls)])


def _one_by_one(call: Callable[[], Any], calls: int) -> int:
    return sum(answered([call()]) for _ in range(calls))


def _at_once(call: Callable[[], Any], calls: int) -> int:
    return answered([call() for _ in range(calls)])


def _get(value: Any, calls: int) -> int:
    import ray

    return sum(ray.get(value) == 0 for _ in range(calls))


def _put_many(calls: int) -> int:
    import ray

    for _ in range(calls):
        ray.put(0)
    return calls


def _put(array: NDArray[np.int64]) -> int:
    import ray

    ray.put(array)
    return array.nbytes


def _put_large(put_bytes: int) -> int:
    import numpy as np

    return _put(np.zeros(put_bytes // 8, dtype=np.int64))


EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    guess_other_seconds=guess_other_seconds,
    run=run,
    without_effect=without_effect,
)
