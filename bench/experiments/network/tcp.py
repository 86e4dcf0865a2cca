"""Carries payloads by raw TCP: a connection a stream, kept from one pass to the next, with a thread each where it is received.

The sender says how much room a payload gets. With as much as it has bytes it is kept and checked, as what Ray carries; with less
it is one block, sent again and again and each time written over the one before, as iperf3 does it, and the last is checked.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING

from bench.experiments.network import payload
from bench.experiments.network.points import WORD_BYTES, Point
from bench.experiments.network.transports import Transport
from bench.experiments.toolkit import connections
from bench.experiments.toolkit.connections import receive, receive_into

if TYPE_CHECKING:
    from bench.experiments.network.payload import Checker, Words

TIMEOUT_SECONDS = 60.0
ANNOUNCED = struct.Struct("<QQ")  # bytes of the room, and how often it is filled
ARRIVAL = struct.Struct("<d")
NUMBER = struct.Struct("<Q")
READY = b"r"
BLOCK_BYTES = 128 * 1024  # what iperf3 hands to TCP at once


class Receiver(connections.ConnectionListener):
    """The receiving end: it takes connections until it is closed."""

    def __init__(self, address: str, checker: Checker) -> None:
        self._checker = checker
        super().__init__(address, self._receive)

    def _receive(self, connection: socket.socket) -> None:
        """One stream: what comes, that there is room for it, the payload, when it was there, and then whether it is what was sent."""
        buffer = bytearray()
        while announced := connection.recv(ANNOUNCED.size, socket.MSG_WAITALL):
            room, times = ANNOUNCED.unpack(announced)
            if len(buffer) < room:
                buffer = bytearray(room)  # Python writes all of it, which takes as long as the payload
            view = memoryview(buffer)[:room]
            connection.sendall(READY)
            for _ in range(times):
                receive_into(connection, view)
            connection.sendall(ARRIVAL.pack(monotonic()))
            connection.sendall(NUMBER.pack(self._checker.number_of(view)))
            view.release()


class Tcp(Transport):
    """The sending end. `room` bytes are a divisor of every payload; None: a payload has room for all of it."""

    def __init__(self, address: str, port: int, room: int | None = None) -> None:
        self._address = address, port
        self._room = room
        self._connections: list[socket.socket] = []
        self._threads = ThreadPoolExecutor(64)
        self._used: list[socket.socket] = []

    def begin(self, point: Point) -> None:
        while len(self._connections) < point.streams:
            self._connections.append(connections.connect(*self._address, TIMEOUT_SECONDS))
        self._used = self._connections[: point.streams]

    def prepare(self, payloads: Sequence[Words]) -> None:
        for connection, words in zip(self._used, payloads, strict=True):
            block = self._block(words)
            payload.stamp(block, int(words[0]))
            connection.sendall(ANNOUNCED.pack(block.nbytes, words.nbytes // block.nbytes))
        for connection in self._used:
            receive(connection, len(READY))

    def carry(self, payloads: Sequence[Words]) -> list[float]:
        if len(payloads) == 1:  # a thread would add more than a small payload takes
            return [self._carry(self._used[0], payloads[0])]
        return list(self._threads.map(self._carry, self._used, payloads))

    def received(self) -> list[int]:
        return [NUMBER.unpack(receive(connection, NUMBER.size))[0] for connection in self._used]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._threads.shutdown()

    def _block(self, words: Words) -> Words:
        return words if self._room is None else words[: self._room // WORD_BYTES]

    def _carry(self, connection: socket.socket, words: Words) -> float:
        block = self._block(words).data.cast("B")
        for _ in range(words.nbytes // len(block)):
            connection.sendall(block)
        arrival: float = ARRIVAL.unpack(receive(connection, ARRIVAL.size))[0]
        return arrival
