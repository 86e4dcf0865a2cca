"""Sends or receives by every transport, in a process that Ray places on a node."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

from bench.experiments.network import gloo, iperf, payload, ray_transports, tcp, transports
from bench.experiments.network.params import CHUNK_BYTES
from bench.experiments.toolkit.gloo import free_meeting, join
from bench.experiments.toolkit.placement import get_in_time

if TYPE_CHECKING:
    from bench.experiments.network.points import Point

ANSWER_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Location:
    """Where an end is. Two ends with one boot id share a clock."""

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
        self._receiving = tcp.Receiver(self._address, self._checker)
        self._held: list[Any] = []
        self._iperf: iperf.IperfServer | None = None
        self._transports: dict[str, transports.Transport] = {}
        self._numbers = itertools.count(1)
        self._receiver: Any = None
        self._receiver_location = self.location()

    def location(self) -> Location:
        """Where this end is."""
        return Location(
            address=self._address,
            boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            raylet=os.getppid(),
            tcp_port=self._receiving.port,
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
        self._iperf = iperf.IperfServer(self._address)

    def cpu_seconds(self, *, with_raylet: bool) -> float:
        """What this end has used so far: its process, without the checks, and its node's raylet."""
        return process_time() - self._checker.cpu_seconds + (_raylet_cpu_seconds() if with_raylet else 0.0)

    # Joining and sending.

    def meeting(self) -> str:
        """A free address of this node, for both ends of gloo to meet at."""
        return free_meeting(self._address)

    def join_gloo(self, rank: int, meeting: str) -> str:
        """Be one of the two that gloo joins; the reason where PyTorch is not there: a task that raises makes the run invalid."""
        try:
            join(meeting, own_address=self._address, rank=rank, processes=2, seconds=gloo.TIMEOUT_SECONDS)
        except ImportError as error:
            return f"PyTorch is not installed: {error}"
        return ""

    def connect(self, receivers: Sequence[Any], location: Location) -> None:
        """Be the sender. The first of `receivers`, at `location`, is the other end of the pair; all of them get broadcasts."""
        self._receiver, self._receiver_location = receivers[0], location
        pair = receivers[:1]
        self._transports = {
            "tcp": tcp.Tcp(location.address, location.tcp_port),
            "tcp-discard": tcp.Tcp(location.address, location.tcp_port, tcp.BLOCK_BYTES),
            "gloo-send-recv": gloo.Gloo("send-recv", self._start_gloo, self._checker),
            "gloo-all-reduce": gloo.Gloo("all-reduce", self._start_gloo, self._checker),
            "ray-call": ray_transports.Call(pair),
            "ray-many-small": ray_transports.ManySmall(pair),
            "ray-put-get": ray_transports.PutGet(pair),
            "ray-get": ray_transports.Get(pair),
            "ray-broadcast": ray_transports.PutGet(receivers),
        }

    def send(self, transport: str, point: Point) -> transports.Burst:
        """One pass, timed and checked."""
        if transport == "iperf3":
            get_in_time([self._receiver.serve_iperf.remote()], ANSWER_SECONDS, "The server of iperf3")
            return iperf.send(self._receiver_location.address, point)
        is_shared = self._receiver_location.raylet == os.getppid() and self._receiver_location.address == self._address
        before = _raylet_cpu_seconds(), self._receiver_cpu_seconds(with_raylet=not is_shared)
        burst = transports.run(self._transports[transport], point, self._checker.words, lambda: next(self._numbers))
        after = _raylet_cpu_seconds(), self._receiver_cpu_seconds(with_raylet=not is_shared)
        if self._transports[transport].copies > 1:  # a broadcast has many receivers, and this knows of one
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
