"""Network: what the network costs, and what Ray adds to it. The same bytes between two processes, by every way there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta

from bench.context import Context, NodeSlot, Turn, over_turns
from bench.errors import BadInput, DoesNotFit
from bench.experiments import Profile
from bench.experiments.network import figures, fits
from bench.experiments.network.endpoint import CHUNK_BYTES, Endpoint, Seat
from bench.experiments.network.figures import FIRST, GOODPUT, Key, Passes
from bench.experiments.network.points import WORD_BYTES, Point, in_words, sweep
from bench.experiments.network.ray_ways import SMALL_BYTES
from bench.experiments.network.tcp import BLOCK_BYTES
from bench.experiments.network.ways import Burst
from bench.experiments.toolkit.placement import get_in_time, on
from bench.model import Arm, Sample, Topology

METRICS = figures.METRICS

PUT_GET = Arm(name="ray-put-get", help="ray.put at one end, ray.get at the other.", role="subject")
GET = Arm(name="ray-get", help="ray.get of what was put at the other end before the clock.", role="ceiling")
CALL = Arm(name="ray-call", help="The argument of an actor call.", means="actor call")
MANY_SMALL = Arm(name="ray-many-small", help="Pieces of 1 KiB, all arguments of one actor call.")
BROADCAST = Arm(name="ray-broadcast", help="ray.put at one end, ray.get by all receivers, the nodes in turn.")
TCP = Arm(name="tcp", help="Our own sockets, a connection a payload on its way.", means="raw TCP")
DISCARD = Arm(
    name="tcp-discard", help="Our own sockets as iperf3 uses its: a block again and again, thrown away.", role="ceiling"
)
IPERF = Arm(name="iperf3", help="iperf3, a connection a payload on its way; where it is installed.", role="ceiling")
SEND_RECV = Arm(name="gloo-send-recv", help="torch.distributed's send and receive, by gloo.")
ALL_REDUCE = Arm(name="gloo-all-reduce", help="torch.distributed's all-reduce of as many bytes, by gloo, of both ends.")
UNWATCHED = Arm(
    name="ray-put-get-unwatched", help="As ray-put-get, while raymeter does not watch.", role="control", probed=False
)
ARMS = (PUT_GET, GET, CALL, MANY_SMALL, BROADCAST, TCP, DISCARD, IPERF, SEND_RECV, ALL_REDUCE, UNWATCHED)

READY_SECONDS = 120.0
PASS_SECONDS = 120.0
LEAST_OF_IPERF = 2**20  # bytes: below it its own start is what it measures
MOST_OF_MANY_SMALL = 2**20  # bytes: 1,024 arguments
NO_HEADLINE = {
    MANY_SMALL.name: f"pieces of 1 KiB: it goes up to {in_words(MOST_OF_MANY_SMALL)}",
    BROADCAST.name: "it goes to several at once: see it point by point",
}


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    smallest: Annotated[
        int, Meta(ge=64, le=2**26, description="Least payload; a multiple of 8.", extra={"unit": "BYTES"})
    ] = 64
    largest: Annotated[int, Meta(ge=64, le=2**28, description="Greatest payload.", extra={"unit": "BYTES"})] = (
        64 * 2**20
    )
    growth: Annotated[
        int, Meta(ge=2, le=2**22, description="How much larger each payload is.", extra={"unit": "TIMES"})
    ] = 32
    most_streams: Annotated[
        int,
        Meta(
            ge=1, le=64, description="On their way at once, at most: 1, 4, 16 up to this.", extra={"unit": "PAYLOADS"}
        ),
    ] = 4
    receivers: Annotated[
        int,
        Meta(
            ge=1, le=100, description="Of a broadcast, the nodes in turn; no fewer than nodes.", extra={"unit": "ENDS"}
        ),
    ] = 2

    chunk_bytes: Annotated[
        int,
        Meta(
            ge=2**16,
            le=2**28,
            description="In which nodes send an object; others take a cluster of their own.",
            extra={"unit": "BYTES"},
        ),
    ] = CHUNK_BYTES
    store_pages: Annotated[
        Literal["at-use", "at-start"],
        Meta(description="When the object store's memory is touched first; at-start takes a cluster of its own."),
    ] = "at-use"

    def __post_init__(self) -> None:
        if self.smallest % WORD_BYTES:
            raise BadInput(f"smallest={self.smallest} is no multiple of {WORD_BYTES}.", "Give one that is.")
        if self.smallest > self.largest:
            raise BadInput(
                f"smallest={self.smallest} is more than largest={self.largest}.", "Lower smallest, or raise largest."
            )

    @property
    def points(self) -> list[Point]:
        """The sweep of one run."""
        return sweep(smallest=self.smallest, largest=self.largest, growth=self.growth, most_streams=self.most_streams)

    @property
    def reference(self) -> Point:
        """The point of the headline: the largest payload, one at a time."""
        return max((point for point in self.points if point.streams == 1), key=lambda point: point.size)


PROFILES = {
    "tiny": Profile(
        help="Two minutes: 64 B, 64 KiB and 64 MiB, one at a time. 2 blocks: for a look, and too few for a verdict.",
        grids=({"growth": (1024,), "most_streams": (1,)},),
        blocks=2,  # a run takes 24 s, 14 of them before it times anything, and its cluster 8 s more
        warmups=1,
        samples=1,
        sample_seconds=0.01,
    ),
    "lab": Profile(
        help="An hour: 64 B to 64 MiB by powers of 8 and 32, 1 to 16 at once.",
        grids=({"growth": (8,), "largest": (2**24,), "most_streams": (16,)}, {"growth": (32,), "most_streams": (16,)}),
        blocks=6,
        warmups=1,
        samples=5,
        sample_seconds=0.2,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="Hours: 64 B to 64 MiB by powers of 2, 1 to 16 at once.",
        grids=({"growth": (2,), "most_streams": (16,)},),
        blocks=12,
        warmups=1,
        samples=5,
        sample_seconds=0.2,
        deadline_seconds=4 * 3600.0,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Both ends, and which arms they have not got."""

    sender: Any
    receivers: Sequence[Any]
    nodes: tuple[NodeSlot, NodeSlot]  # of the sender and its receiver
    is_one_clock: bool
    chunk_bytes: int
    absent: Mapping[str, str]  # arm: the reason

    def send(self, arm: Arm, point: Point) -> Burst:
        """One pass."""
        way = PUT_GET.name if arm == UNWATCHED else arm.name
        call = self.sender.send.remote(way, point)
        burst: Burst = get_in_time([call], PASS_SECONDS, f"{arm.name} at {point}")[0]
        return burst

    def credit(self, burst: Burst) -> dict[str, float]:
        """Half of the bytes to each end: one sends and one receives them."""
        first, last = (node.name for node in self.nodes)
        return {first: float(burst.bytes)} if first == last else {first: burst.bytes / 2, last: burst.bytes / 2}

    def close(self) -> None:
        """End both."""
        import ray

        for end in (self.sender, *self.receivers):
            ray.kill(end)


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: two ends are joined by every way, then each arm goes through all points in each turn."""
    nodes = [node for node in context.nodes if node.cpus > 0]
    pair = start(params, context.seed, nodes)
    context.leaves_idle([node.name for node in context.nodes if node not in pair.nodes])
    with ExitStack() as ends:
        ends.callback(pair.close)
        for name, reason in (*pair.absent.items(), *NO_HEADLINE.items()):
            yield context.time_once(name, lambda: None).missing(GOODPUT, reason)
        yield from _first_transfers(params, context, pair)
        yield from _turns(params, context, pair)


def ray_settings(params: Params) -> dict[str, str]:
    """What the nodes are started with: nothing, where Ray's own settings are meant."""
    settings = {}
    if params.chunk_bytes != CHUNK_BYTES:
        settings["object_manager_default_chunk_size"] = str(params.chunk_bytes)
    if params.store_pages == "at-start":
        settings["preallocate_plasma_memory"] = "1"
    return settings


def check_fits(params: Params, topology: Topology) -> None:
    """Raise DoesNotFit where receivers are fewer than nodes, or the largest payloads take more memory or object store than a node has."""
    if topology.nodes > params.receivers:
        raise DoesNotFit(
            f"network with receivers={params.receivers} does not reach the {topology.nodes} nodes of {topology.name}.",
            f"Use --set receivers={topology.nodes}, or fewer --nodes.",
        )
    fits.check(params.points, params.receivers, topology)


def guess_pass_seconds(params: Params) -> float:
    """One pass of all arms at all points, on two cores."""
    return sum(len(ARMS) * (0.03 + point.round_bytes * point.rounds / 0.3e9) for point in params.points)


def applies(arm: Arm, point: Point, params: Params) -> bool:
    """Whether `arm` says anything at `point`."""
    if arm == MANY_SMALL:
        return 2 * SMALL_BYTES <= point.size <= MOST_OF_MANY_SMALL
    if arm == BROADCAST:
        return point.streams == 1
    if arm == DISCARD and point.size % BLOCK_BYTES:
        return False
    if arm in (DISCARD, IPERF):
        return point.size >= LEAST_OF_IPERF and point.size == params.reference.size
    return arm != UNWATCHED or point == params.reference


def start(params: Params, seed: int, nodes: Sequence[NodeSlot]) -> Pair:
    """The sender on the first node, receivers from the last one on, joined by every way."""
    import ray

    make = ray.remote(Endpoint)
    sender_node, *others = nodes
    usable = [*reversed(others), sender_node]
    places = [usable[number % len(usable)] for number in range(params.receivers)]
    options = {"num_cpus": 0, "max_concurrency": params.most_streams + 2}
    sender = make.options(**options, scheduling_strategy=on(sender_node)).remote(seed, params.largest)
    receivers = [make.options(**options, scheduling_strategy=on(node)).remote(seed, params.largest) for node in places]
    seats: list[Seat] = get_in_time([end.seat.remote() for end in (sender, *receivers)], READY_SECONDS, "Both ends")
    absent: dict[str, str] = {}
    if not (seats[0].has_iperf and seats[1].has_iperf):
        absent[IPERF.name] = "iperf3 is not installed on both nodes"
    if reason := _join_gloo(sender, receivers[0], seats[0].address):
        absent |= {SEND_RECV.name: reason, ALL_REDUCE.name: reason}
    get_in_time([sender.connect.remote(receivers, seats[1])], READY_SECONDS, "The sender")
    return Pair(
        sender=sender,
        receivers=receivers,
        nodes=(sender_node, places[0]),
        is_one_clock=seats[0].boot_id == seats[1].boot_id,
        chunk_bytes=seats[0].chunk_bytes,
        absent=absent,
    )


def _join_gloo(sender: Any, receiver: Any, address: str) -> str:
    """Join both ends; the reason where torch is not there."""
    (port,) = get_in_time([sender.free_port.remote()], READY_SECONDS, "The sender")
    joining = [end.join_gloo.remote(rank, address, port) for rank, end in enumerate((sender, receiver))]
    reasons: list[str] = get_in_time(joining, READY_SECONDS, "The two ends of gloo")
    return next(filter(None, reasons), "")


def _first_transfers(params: Params, context: Context, pair: Pair) -> Iterator[Sample]:
    """The largest payload once by each way that carries it, before anything is warm."""
    for arm in ARMS:
        if arm.name in pair.absent or arm in (UNWATCHED, DISCARD, IPERF) or not applies(arm, params.reference, params):
            continue
        first = context.time_once(arm.name, partial(pair.send, arm, params.reference))
        burst = first.results[0]
        if burst.problem:
            context.invalid(burst.problem)
            yield first.missing(FIRST, burst.problem)
        else:
            yield first.sample(FIRST, burst.seconds[0])


def _turns(params: Params, context: Context, pair: Pair) -> Iterator[Sample]:
    """Every arm at every point in each turn, and what the turns say together."""
    story = figures.Story(is_between_nodes=pair.nodes[0] != pair.nodes[1], smallest=params.points[0])
    for turn in context.turns():
        done: dict[Key, Passes] = {}
        for arm, point, passes in _sweep(params, turn, pair):
            problem = figures.problem_of(passes)
            if problem is None:
                done[arm.name, point] = passes
            else:
                context.invalid(problem)
            # A broadcast goes to several at once: its goodput is not to be set beside the others'.
            yield from figures.samples(passes, is_headline=point == params.reference and arm != BROADCAST)
        yield from story.turn(done, is_warmup=turn.warmup)
    for reason in story.too_fast():
        context.invalid(reason)
    for timed in story.kept.values():
        yield from over_turns(timed, partial(figures.percentiles, is_one_clock=pair.is_one_clock))
    raw = story.of(TCP.name) if story.is_between_nodes else {}
    yield from figures.settings(story.of(PUT_GET.name), raw, pair.chunk_bytes)


def _sweep(params: Params, turn: Turn, pair: Pair) -> Iterator[tuple[Arm, Point, Passes]]:
    """Every arm at each point that it has, one arm after the other at one point: what is compared is close in time."""
    for point in params.points:
        for arm in turn.order(ARMS):
            if applies(arm, point, params) and arm.name not in pair.absent:
                yield arm, point, turn.measure(arm, partial(pair.send, arm, point), pair.credit, point=str(point))
