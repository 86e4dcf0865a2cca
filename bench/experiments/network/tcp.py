"""Raw TCP: a connection a stream, kept from one pass to the next, and a thread for each at the receiving end.

The sender says how much room a payload gets. With as much as it has bytes it is kept and checked, as what Ray carries; with less
it is one block, sent again and again and each time written over the one before, as iperf3 does it, and the last is checked.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from bench.experiments.network import payload
from bench.experiments.network.points import WORD_BYTES, Point
from bench.experiments.network.ways import Way

if TYPE_CHECKING:
    from bench.experiments.network.payload import Checker, Words

TIMEOUT_SECONDS = 60.0
ANNOUNCED = struct.Struct("<QQ")  # bytes of the room, and how often it is filled
ARRIVAL = struct.Struct("<d")
NUMBER = struct.Struct("<Q")
READY = b"r"
BLOCK_BYTES = 128 * 1024  # what iperf3 hands to TCP at once


class Server:
    """The receiving end: it takes connections until it is closed."""

    def __init__(self, address: str, checker: Checker) -> None:
        self._checker = checker
        self._listener = socket.create_server((address, 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed: the only way to end a wait for a connection
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """One stream: what comes, that there is room for it, the payload, when it was there, and then whether it is what was sent."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = bytearray()
        with connection, suppress(ConnectionError):  # the sender has gone: if that was too early, it knows
            while announced := connection.recv(ANNOUNCED.size, socket.MSG_WAITALL):
                room, times = ANNOUNCED.unpack(announced)
                if len(buffer) < room:
                    buffer = bytearray(room)  # Python writes all of it, which takes as long as the payload
                view = memoryview(buffer)[:room]
                connection.sendall(READY)
                for _ in range(times):
                    receive(connection, view)
                connection.sendall(ARRIVAL.pack(monotonic()))
                connection.sendall(NUMBER.pack(self._checker.number_of(view)))
                view.release()


class Tcp(Way):
    """The sending end. `room` bytes are a divisor of every payload; None: a payload has room for all of it."""

    def __init__(self, address: str, port: int, room: int | None = None) -> None:
        self._address = address, port
        self._room = room
        self._connections: list[socket.socket] = []
        self._threads = ThreadPoolExecutor(64)
        self._used: list[socket.socket] = []

    def begin(self, point: Point) -> None:
        while len(self._connections) < point.streams:
            connection = socket.create_connection(self._address, timeout=TIMEOUT_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(connection)
        self._used = self._connections[: point.streams]

    def prepare(self, payloads: Sequence[Words]) -> None:
        for connection, words in zip(self._used, payloads, strict=True):
            block = self._block(words)
            payload.stamp(block, int(words[0]))
            connection.sendall(ANNOUNCED.pack(block.nbytes, words.nbytes // block.nbytes))
        for connection in self._used:
            _read(connection, len(READY))

    def carry(self, payloads: Sequence[Words]) -> list[float]:
        if len(payloads) == 1:  # a thread would add more than a small payload takes
            return [self._carry(self._used[0], payloads[0])]
        return list(self._threads.map(self._carry, self._used, payloads))

    def received(self) -> list[int]:
        return [NUMBER.unpack(_read(connection, NUMBER.size))[0] for connection in self._used]

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
        arrival: float = ARRIVAL.unpack(_read(connection, ARRIVAL.size))[0]
        return arrival


def receive(connection: socket.socket, view: memoryview) -> None:
    """Fill `view`. Raises ConnectionError where the other end stops before."""
    done = 0
    while done < len(view):
        count = connection.recv_into(view[done:])
        if count == 0:
            raise ConnectionError(f"the connection ended {len(view) - done} bytes early")
        done += count


def _read(connection: socket.socket, count: int) -> bytes:
    buffer = bytearray(count)
    receive(connection, memoryview(buffer))
    return bytes(buffer)
