"""Lines of the processes' own: a TCP connection from each worker to a server, past Ray's calls.

A worker begins with the key. Then a question is a head and, but for the first one, a message; its answer is a head and
the weights. Vectors are float32 as they lie in memory: both ends are of one kind of machine, as the nodes of a cluster are.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from hmac import compare_digest
from secrets import token_bytes
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Listener:
    """The server's end: a thread for each line, which calls `pull` and `push` as Ray would."""

    def __init__(
        self, host: str, length: int, *, pull: Callable[..., Sequence[Any]], push: Callable[..., Sequence[Any]]
    ) -> None:
        self._length, self._pull, self._push = length, pull, push
        self._socket = socket.create_server((host, 0))
        self.address = Address(host, self._socket.getsockname()[1], token_bytes(KEY_BYTES))
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            line, _ = self._socket.accept()
            Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        import numpy as np

        message = np.empty(self._length, np.float32)  # of this line alone: a worker's successor has another one
        with line, suppress(ConnectionError):
            _hurry(line)
            if not compare_digest(_take(line, KEY_BYTES), self.address.key):
                return
            while True:
                rank, version, cpu_seconds, has_message = QUESTION.unpack(_take(line, QUESTION.size))
                if has_message:
                    _fill(line, message)
                    version, state = self._push(rank, version, cpu_seconds, message)
                else:
                    version, state = self._pull(rank, cpu_seconds)
                _send(line, ANSWER.pack(version), state)


class Line:
    """A worker's end, with one question under way at most."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection((address.host, address.port))
        _hurry(self._socket)
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
        (version,) = ANSWER.unpack(_take(self._socket, ANSWER.size))
        _fill(self._socket, out)
        return int(version)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _hurry(line: socket.socket) -> None:
    """Let what is short go at once."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _send(line: socket.socket, head: bytes, vector: Vector) -> None:
    line.sendall(head, socket.MSG_MORE)  # one packet with what follows: the other end wakes once
    line.sendall(vector.data.cast("B"))


def _take(line: socket.socket, size: int) -> bytearray:
    taken = bytearray(size)
    _fill(line, taken)
    return taken


def _fill(line: socket.socket, room: Any) -> None:
    """Read as much as there is room for. Raises ConnectionError at the end of the line."""
    rest = memoryview(room).cast("B")
    while rest:
        count = line.recv_into(rest, 0, socket.MSG_WAITALL)
        if not count:
            raise ConnectionResetError("the other end hung up")
        rest = rest[count:]
