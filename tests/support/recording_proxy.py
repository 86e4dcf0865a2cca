"""A proxy that takes every connection, keeps what is sent to it, and refuses: nothing of ours may ever arrive there."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class RecordingProxy:
    """What arrived, one item a connection."""

    port: int
    received: list[bytes] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which programs find their proxy."""
        url = f"http://127.0.0.1:{self.port}"
        names = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "grpc_proxy")
        return {name: url for lower in names for name in (lower, lower.upper())} | {"no_proxy": "", "NO_PROXY": ""}


@contextmanager
def recording_proxy() -> Iterator[RecordingProxy]:
    """One that listens on loopback."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(2)
            try:
                received = self.request.recv(65536)
            except OSError:
                received = b""
            proxy.received.append(received)
            self.request.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        proxy = RecordingProxy(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
