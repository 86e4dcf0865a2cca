"""Runs one invocation: two ends are joined by every transport, then each arm goes through all points in each turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from bench.context import Context, NodeSlot, Turn, over_turns
from bench.experiments.network import arms, metrics
from bench.experiments.network.endpoint import Endpoint
from bench.experiments.network.metrics import Key, Passes, RunTotals
from bench.experiments.network.params import Params
from bench.experiments.network.points import Point
from bench.experiments.network.transports import Burst
from bench.experiments.toolkit.placement import get_in_time
from bench.experiments.toolkit.process_pool import PeerProcesses
from bench.model import Arm, Sample

READY_SECONDS = 120.0
PASS_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The sender and its receivers, and which arms they have not got."""

    ends: PeerProcesses  # the sender first
    is_one_clock: bool
    chunk_bytes: int
    absent: Mapping[str, str]  # arm: the reason

    @property
    def nodes(self) -> Sequence[NodeSlot]:
        """Of the sender and its receiver."""
        return self.ends.nodes[:2]

    def send(self, arm: Arm, point: Point) -> Burst:
        """One pass."""
        transport = arms.PUT_GET.name if arm == arms.UNWATCHED else arm.name
        call = self.ends.actors[0].send.remote(transport, point)
        burst: Burst = get_in_time([call], PASS_SECONDS, f"{arm.name} at {point}")[0]
        return burst

    def credit(self, burst: Burst) -> dict[str, float]:
        """Half of the bytes to each end: one sends and one receives them."""
        first, last = (node.name for node in self.nodes)
        return {first: float(burst.bytes)} if first == last else {first: burst.bytes / 2, last: burst.bytes / 2}


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: two ends are joined by every transport, then each arm goes through all points in each turn."""
    nodes = [node for node in context.nodes if node.cpus > 0]
    with ExitStack() as ends:
        pair = start(params, context, nodes, ends)
        context.leaves_idle([node.name for node in context.nodes if node not in pair.nodes])
        wanted = {arm.name for arm in arms.ARMS if context.wants(arm)}
        for name, reason in (*pair.absent.items(), *arms.NO_HEADLINE.items()):
            if name not in wanted:
                continue
            yield context.time_once(name, lambda: None).missing(metrics.GOODPUT, reason)
        yield from _first_transfers(params, context, pair)
        yield from _turns(params, context, pair)


def start(params: Params, context: Context, nodes: Sequence[NodeSlot], stack: ExitStack) -> Pair:
    """The sender on the first node, receivers from the last one on, joined by every transport."""
    sender_node, *others = nodes
    usable = [*reversed(others), sender_node]
    ends = PeerProcesses.start(
        Endpoint,
        [sender_node, *(usable[number % len(usable)] for number in range(params.receivers))],
        lambda _: (context.seed, params.largest),
        max_concurrency=params.most_streams + 2,
    )
    stack.callback(ends.close)
    sender, receiver, *_ = ends.call("location", [()] * len(ends.nodes), seconds=READY_SECONDS)
    absent: dict[str, str] = {}
    if not (sender.has_iperf and receiver.has_iperf):
        absent[arms.IPERF.name] = "iperf3 is not installed on both nodes"
    of_gloo = [arm for arm in (arms.SEND_RECV, arms.ALL_REDUCE) if context.wants(arm)]
    if of_gloo and (reason := _join_gloo(ends)):
        absent |= {arm.name: reason for arm in of_gloo}
    ends.call("connect", [(ends.actors[1:], receiver)], seconds=READY_SECONDS)
    return Pair(
        ends=ends,
        is_one_clock=sender.boot_id == receiver.boot_id,
        chunk_bytes=sender.chunk_bytes,
        absent=absent,
    )


def _join_gloo(ends: PeerProcesses) -> str:
    """Join sender and receiver; the reason where torch is not there."""
    (meeting,) = ends.call("meeting", [()], seconds=READY_SECONDS)
    reasons = ends.call("join_gloo", [(rank, meeting) for rank in range(2)], seconds=READY_SECONDS)
    return next(filter(None, reasons), "")


def _first_transfers(params: Params, context: Context, pair: Pair) -> Iterator[Sample]:
    """The largest payload once by each transport that carries it, before anything is warm."""
    for arm in arms.ARMS:
        if (
            not context.wants(arm)
            or arm.name in pair.absent
            or arm in (arms.UNWATCHED, arms.DISCARD, arms.IPERF)
            or not arms.applies(arm, params.reference, params.reference)
        ):
            continue
        first = context.time_once(arm.name, partial(pair.send, arm, params.reference))
        burst = first.results[0]
        if burst.problem:
            context.invalid(burst.problem)
            yield first.missing(metrics.FIRST, burst.problem)
        else:
            yield first.sample(metrics.FIRST, burst.seconds[0])


def _turns(params: Params, context: Context, pair: Pair) -> Iterator[Sample]:
    """Every arm at every point in each turn, and what the turns say together."""
    totals = RunTotals(is_between_nodes=pair.nodes[0] != pair.nodes[1], smallest=params.points[0])
    for turn in context.turns():
        done: dict[Key, Passes] = {}
        for arm, point, passes in _sweep(params, turn, pair):
            problem = metrics.problem_of(passes)
            if problem is None:
                done[arm.name, point] = passes
            else:
                context.invalid(problem)
            # A broadcast goes to several at once: its goodput is not to be set beside the others'.
            yield from metrics.samples(passes, is_headline=point == params.reference and arm != arms.BROADCAST)
        yield from totals.turn(done, is_warmup=turn.warmup)
    for reason in totals.too_fast():
        context.invalid(reason)
    for timed in totals.kept.values():
        yield from over_turns(timed, partial(metrics.percentiles, is_one_clock=pair.is_one_clock))
    raw = totals.of(arms.TCP.name) if totals.is_between_nodes else {}
    yield from metrics.settings(totals.of(arms.PUT_GET.name), raw, pair.chunk_bytes)


def _sweep(params: Params, turn: Turn, pair: Pair) -> Iterator[tuple[Arm, Point, Passes]]:
    """Every arm at each point that it has, one arm after the other at one point: what is compared is close in time."""
    for point in params.points:
        for arm in turn.order(arms.ARMS):
            if arms.applies(arm, point, params.reference) and arm.name not in pair.absent:
                yield arm, point, turn.measure(arm, partial(pair.send, arm, point), pair.credit, point=str(point))
