"""An end of the transfers: a process that Ray places on a node, which sends or receives by every way."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

from bench.experiments.network import gloo, iperf, payload, ray_ways, tcp, ways
from bench.experiments.toolkit.placement import get_in_time

if TYPE_CHECKING:
    from bench.experiments.network.points import Point

ANSWER_SECONDS = 60.0
CHUNK_BYTES = 5 * 2**20  # what Ray 2.60 takes where nothing is set


@dataclass(frozen=True, kw_only=True)
class Seat:
    """Where an end sits. Two ends with one boot id share a clock."""

    address: str
    boot_id: str
    raylet: int  # process id
    tcp_port: int
    has_iperf: bool
    chunk_bytes: int  # in which this node's raylet sends an object


class Endpoint:
    """One end. It receives in threads, as many calls at once as it was started with, and sends one pass at a time."""

    def __init__(self, seed: int, largest: int) -> None:
        self._checker = payload.Checker(payload.draw(seed, largest))
        self._address = _own_address()
        self._server = tcp.Server(self._address, self._checker)
        self._held: list[Any] = []
        self._iperf: iperf.Server | None = None
        self._ways: dict[str, ways.Way] = {}
        self._numbers = itertools.count(1)
        self._receiver: Any = None
        self._receiver_seat = self.seat()

    def seat(self) -> Seat:
        """Where this end is."""
        return Seat(
            address=self._address,
            boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            raylet=os.getppid(),
            tcp_port=self._server.port,
            has_iperf=iperf.is_installed(),
            # This process has the environment of its raylet, and no interface tells what is in force.
            chunk_bytes=int(os.environ.get("RAY_object_manager_default_chunk_size", CHUNK_BYTES)),  # noqa: SIM112 Ray spells it so
        )

    # Receiving.

    def accept(self, words: Any) -> float:
        """A payload as an argument; says when it was there."""
        arrival = monotonic()
        self._held.append(words)
        return arrival

    def accept_pieces(self, *pieces: Any) -> float:
        """A payload in pieces; says when they were there."""
        arrival = monotonic()
        self._held.append(pieces)
        return arrival

    def take(self, references: Sequence[Any]) -> float:
        """Payloads from the object store; says when they were there."""
        import ray

        words = ray.get(list(references))
        arrival = monotonic()
        self._held.extend(words)
        return arrival

    def numbers(self) -> list[int]:
        """The numbers of the payloads that came since the last time; it lets go of them."""
        import numpy as np

        held, self._held = self._held, []
        whole = (np.concatenate(one) if isinstance(one, tuple) else one for one in held)
        return [self._checker.number_of(one) for one in whole]

    def serve_gloo(self, kind: gloo.Kind, point: Point) -> None:
        """The receiving end of one pass by gloo."""
        gloo.serve(kind, point, self._checker)

    def serve_iperf(self) -> None:
        """Have an iperf3 listen, for one test."""
        if self._iperf:
            self._iperf.close()
        self._iperf = iperf.Server(self._address)

    def cpu_seconds(self, *, with_raylet: bool) -> float:
        """What this end has used so far: its process, without the checks, and its node's raylet."""
        return process_time() - self._checker.cpu_seconds + (_raylet_cpu_seconds() if with_raylet else 0.0)

    # Joining and sending.

    def join_gloo(self, rank: int, store_address: str, port: int) -> str:
        """Be one of the two that gloo joins; the reason where PyTorch is not there: a task that raises makes the run invalid."""
        try:
            gloo.join(rank, own_address=self._address, store_address=store_address, port=port)
        except ImportError as error:
            return f"PyTorch is not installed: {error}"
        return ""

    def free_port(self) -> int:
        """A port of this node that is free."""
        return gloo.free_port(self._address)

    def connect(self, receivers: Sequence[Any], seat: Seat) -> None:
        """Be the sender. The first of `receivers`, at `seat`, is the other end of the pair; all of them get broadcasts."""
        self._receiver, self._receiver_seat = receivers[0], seat
        pair = receivers[:1]
        self._ways = {
            "tcp": tcp.Tcp(seat.address, seat.tcp_port),
            "tcp-discard": tcp.Tcp(seat.address, seat.tcp_port, tcp.BLOCK_BYTES),
            "gloo-send-recv": gloo.Gloo("send-recv", self._start_gloo, self._checker),
            "gloo-all-reduce": gloo.Gloo("all-reduce", self._start_gloo, self._checker),
            "ray-call": ray_ways.Call(pair),
            "ray-many-small": ray_ways.ManySmall(pair),
            "ray-put-get": ray_ways.PutGet(pair),
            "ray-get": ray_ways.Get(pair),
            "ray-broadcast": ray_ways.PutGet(receivers),
        }

    def send(self, way: str, point: Point) -> ways.Burst:
        """One pass, timed and checked."""
        if way == "iperf3":
            get_in_time([self._receiver.serve_iperf.remote()], ANSWER_SECONDS, "The server of iperf3")
            return iperf.send(self._receiver_seat.address, point)
        is_shared = self._receiver_seat.raylet == os.getppid() and self._receiver_seat.address == self._address
        before = _raylet_cpu_seconds(), self._receiver_cpu_seconds(with_raylet=not is_shared)
        burst = ways.run(self._ways[way], point, self._checker.words, lambda: next(self._numbers))
        after = _raylet_cpu_seconds(), self._receiver_cpu_seconds(with_raylet=not is_shared)
        if self._ways[way].copies > 1:  # a broadcast has many receivers, and this knows of one
            burst.sender_cpu_seconds = None
            return burst
        burst.sender_cpu_seconds = (burst.sender_cpu_seconds or 0.0) + after[0] - before[0]
        burst.receiver_cpu_seconds = after[1] - before[1]
        return burst

    def _start_gloo(self, kind: gloo.Kind, point: Point) -> Callable[[], None]:
        serving = self._receiver.serve_gloo.remote(kind, point)
        return partial(_wait, serving)

    def _receiver_cpu_seconds(self, *, with_raylet: bool) -> float:
        call = self._receiver.cpu_seconds.remote(with_raylet=with_raylet)
        seconds: float = get_in_time([call], ANSWER_SECONDS, "The receiver")[0]
        return seconds


def _wait(serving: Any) -> None:
    get_in_time([serving], ANSWER_SECONDS, "The other end of gloo")


def _own_address() -> str:
    import ray

    return str(ray.util.get_node_ip_address())


def _raylet_cpu_seconds() -> float:
    """Of the process that started this one: it moves objects, and passes tasks on."""
    import psutil

    times = psutil.Process(os.getppid()).cpu_times()
    return float(times.user + times.system)
