"""Declares the arms: the transports of the same bytes, and the points at which each is measured."""

from __future__ import annotations

from bench.experiments.network.points import Point, format_size
from bench.experiments.network.ray_transports import SMALL_BYTES
from bench.experiments.network.tcp import BLOCK_BYTES
from bench.model import Arm

PUT_GET = Arm(name="ray-put-get", help="ray.put at one end, ray.get at the other.", role="subject")
GET = Arm(
    name="ray-get", help="ray.get of an object that was put at the other end before the clock started.", role="ceiling"
)
CALL = Arm(name="ray-call", help="The argument of an actor call.", means="actor call")
MANY_SMALL = Arm(name="ray-many-small", help="Pieces of 1 KiB, all arguments of one actor call.")
BROADCAST = Arm(
    name="ray-broadcast", help="ray.put at one end, ray.get by all receivers, one after another on the nodes."
)
TCP = Arm(name="tcp", help="Plain sockets, one connection per payload in flight.", means="raw TCP")
DISCARD = Arm(
    name="tcp-discard", help="Plain sockets as iperf3 uses them: one block again and again, discarded.", role="ceiling"
)
IPERF = Arm(name="iperf3", help="iperf3, one connection per payload in flight; if it is installed.", role="ceiling")
SEND_RECV = Arm(name="gloo-send-recv", help="Send and receive of torch.distributed with gloo.")
ALL_REDUCE = Arm(
    name="gloo-all-reduce", help="All-reduce of torch.distributed with gloo, of as many bytes, between both ends."
)
UNWATCHED = Arm(
    name="ray-put-get-unwatched", help="As ray-put-get, without raymeter's probes.", role="control", probed=False
)
ARMS = (PUT_GET, GET, CALL, MANY_SMALL, BROADCAST, TCP, DISCARD, IPERF, SEND_RECV, ALL_REDUCE, UNWATCHED)
SOCKETS = (TCP, DISCARD, IPERF, SEND_RECV)  # that are a socket and little else

LEAST_OF_IPERF = 2**20  # bytes: below it its own start is what it measures
MOST_OF_MANY_SMALL = 2**20  # bytes: 1,024 arguments
NO_HEADLINE = {
    MANY_SMALL.name: f"pieces of 1 KiB: it goes up to {format_size(MOST_OF_MANY_SMALL)}",
    BROADCAST.name: "it goes to several receivers: see its points",
}


def applies(arm: Arm, point: Point, reference: Point) -> bool:
    """Whether `arm` is measured at `point`; `reference` is that of the headline."""
    if arm == MANY_SMALL:
        return 2 * SMALL_BYTES <= point.size <= MOST_OF_MANY_SMALL
    if arm == BROADCAST:
        return point.streams == 1
    if arm == DISCARD and point.size % BLOCK_BYTES:
        return False
    if arm in (DISCARD, IPERF):
        return point.size >= LEAST_OF_IPERF and point.size == reference.size
    return arm != UNWATCHED or point == reference
