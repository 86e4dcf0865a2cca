"""Opens TCP connections that bypass Ray, and fills buffers from them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

WAITING_CONNECTIONS = 128  # longest queue of connections that are not accepted yet


class ConnectionListener:
    """Accepts connections at a free port of `host`. `serve` is called with each of them, in a thread of its own."""

    def __init__(self, host: str, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._socket = socket.create_server((host, 0), backlog=WAITING_CONNECTIONS)
        self.port: int = self._socket.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop accepting connections; accepted ones stay open."""
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):  # `close` raises it in the waiting `accept`, which nothing else ends
            while True:
                connection, _ = self._socket.accept()
                Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):  # if the other end closed too early, it reports that itself
            _disable_nagle(connection)
            self._serve(connection)


def connect(host: str, port: int, timeout_seconds: float | None = None) -> socket.socket:
    """Connect to a `ConnectionListener`."""
    connection = socket.create_connection((host, port), timeout=timeout_seconds)
    _disable_nagle(connection)
    return connection


def receive_into(connection: socket.socket, buffer: Any, flags: int = 0) -> None:
    """Fill `buffer`. Raises ConnectionError if the other end closes before it is full."""
    rest = memoryview(buffer).cast("B")
    while rest:
        count = connection.recv_into(rest, 0, flags)
        if not count:
            raise ConnectionResetError(f"the connection ended {len(rest)} bytes early")
        rest = rest[count:]


def receive(connection: socket.socket, size: int) -> bytearray:
    """Return the next `size` bytes. Raises ConnectionError if the other end closes before."""
    buffer = bytearray(size)
    receive_into(connection, buffer)
    return buffer


def _disable_nagle(connection: socket.socket) -> None:
    """Send short messages at once, instead of waiting for more to send."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
