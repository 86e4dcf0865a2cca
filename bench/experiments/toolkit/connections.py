"""Opens TCP connections of the experiments' own, past Ray, and fills buffers from them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

WAITING_CONNECTIONS = 128  # before they are accepted


class ConnectionListener:
    """Accepts connections at a free port of `host`. Each has a thread, in which `serve` is called with it."""

    def __init__(self, host: str, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._socket = socket.create_server((host, 0), backlog=WAITING_CONNECTIONS)
        self.port: int = self._socket.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more; connections that there are go on."""
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed: the only way to end a wait for a connection
            while True:
                connection, _ = self._socket.accept()
                Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):  # the other end has gone: if that was too early, it reports it
            _send_short_messages_at_once(connection)
            self._serve(connection)


def connect(host: str, port: int, timeout_seconds: float | None = None) -> socket.socket:
    """A connection to a `ConnectionListener`."""
    connection = socket.create_connection((host, port), timeout=timeout_seconds)
    _send_short_messages_at_once(connection)
    return connection


def receive_into(connection: socket.socket, buffer: Any, flags: int = 0) -> None:
    """Fill `buffer`. Raises ConnectionError where the other end stops before."""
    rest = memoryview(buffer).cast("B")
    while rest:
        count = connection.recv_into(rest, 0, flags)
        if not count:
            raise ConnectionResetError(f"the connection ended {len(rest)} bytes early")
        rest = rest[count:]


def receive(connection: socket.socket, size: int) -> bytearray:
    """The next `size` bytes. Raises ConnectionError where the other end stops before."""
    taken = bytearray(size)
    receive_into(connection, taken)
    return taken


def _send_short_messages_at_once(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
