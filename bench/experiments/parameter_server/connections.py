"""Carries gradients and weights by TCP connections of the workers' own to the servers, past Ray's calls.

A worker begins with the key. Then a question is a head and, but for the first one, a message; its answer is a head and
the weights. Vectors are float32 as they lie in memory: both ends are of one kind of machine, as the nodes of a cluster are.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from hmac import compare_digest
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.experiments.toolkit import connections
from bench.experiments.toolkit.connections import receive, receive_into

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

KEY_BYTES = 16
QUESTION = struct.Struct("<qqd?")  # rank, version, CPU seconds, whether a message follows
ANSWER = struct.Struct("<q")  # version


class Address(NamedTuple):
    """Where a server listens, and what those who call must know, for others may reach the port too."""

    host: str
    port: int
    key: bytes


class ShardListener:
    """The server's end: a thread for each connection, which calls `pull` and `push` as Ray would."""

    def __init__(
        self, host: str, length: int, *, pull: Callable[..., Sequence[Any]], push: Callable[..., Sequence[Any]]
    ) -> None:
        self._length, self._pull, self._push = length, pull, push
        self._key = token_bytes(KEY_BYTES)
        self.address = Address(host, connections.ConnectionListener(host, self._serve).port, self._key)

    def _serve(self, connection: socket.socket) -> None:
        import numpy as np

        if not compare_digest(receive(connection, KEY_BYTES), self._key):
            return
        message = np.empty(self._length, np.float32)  # of this connection alone: a worker's successor has another one
        while True:
            rank, version, cpu_seconds, has_message = QUESTION.unpack(receive(connection, QUESTION.size))
            if has_message:
                receive_into(connection, message, socket.MSG_WAITALL)
                version, state = self._push(rank, version, cpu_seconds, message)
            else:
                version, state = self._pull(rank, cpu_seconds)
            _send(connection, ANSWER.pack(version), state)


class Connection:
    """A worker's end, with one question under way at most."""

    def __init__(self, address: Address) -> None:
        self._socket = connections.connect(address.host, address.port)
        self._socket.sendall(address.key)

    def pull(self, rank: int, cpu_seconds: float) -> None:
        """Ask for the weights."""
        self._socket.sendall(QUESTION.pack(rank, 0, cpu_seconds, False))

    def push(self, rank: int, version: int, cpu_seconds: float, pieces: Sequence[Any]) -> None:
        """Send a message, and ask for the weights after it; `pieces` may be written to afterwards."""
        (message,) = pieces
        _send(self._socket, QUESTION.pack(rank, version, cpu_seconds, True), message)

    def take(self, answer: None, out: Vector) -> int:
        """Wait for the weights, into `out`; gives their version. Raises ConnectionError where the server is gone."""
        del answer
        (version,) = ANSWER.unpack(receive(self._socket, ANSWER.size))
        receive_into(self._socket, out, socket.MSG_WAITALL)
        return int(version)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _send(connection: socket.socket, head: bytes, vector: Vector) -> None:
    connection.sendall(head, socket.MSG_MORE)  # one packet with what follows: the other end wakes once
    connection.sendall(vector.data.cast("B"))
