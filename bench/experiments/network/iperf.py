"""Runs iperf3, where it is installed: our own sockets must agree with it where they throw away what comes, as it does."""

from __future__ import annotations

import json
import shutil
import subprocess

from bench.errors import RunFailed
from bench.experiments.network.points import Point
from bench.experiments.network.tcp import BLOCK_BYTES
from bench.experiments.network.transports import Burst

TIMEOUT_SECONDS = 60.0
PORT = 5201  # iperf3's own, in the node's network namespace


def is_installed() -> bool:
    """Whether there is an iperf3 on this node."""
    return shutil.which("iperf3") is not None


class IperfServer:
    """The receiving end: one test, then it ends by itself."""

    def __init__(self, address: str) -> None:
        self._process = subprocess.Popen(
            ["iperf3", "--server", "--one-off", "--bind", address, "--port", str(PORT), "--forceflush"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output = self._process.stdout
        said = ""
        while output and "listening" not in said:
            line = output.readline()
            if not line:
                raise RunFailed(f"iperf3 could not listen on {address}:{PORT}: {said.strip()[-200:]}")
            said += line

    def close(self) -> None:
        """Wait for the end of the test; end it where it does not."""
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def send(address: str, point: Point) -> Burst:
    """One test that sends what a pass of `point` sends. Raises RunFailed where iperf3 does."""
    total = point.round_bytes * point.rounds
    done = subprocess.run(
        [
            *("iperf3", "--client", address, "--port", str(PORT), "--json"),
            *("--bytes", str(total), "--parallel", str(point.streams), "--length", str(BLOCK_BYTES)),
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return read(done.stdout)


def read(text: str) -> Burst:
    """What iperf3 reported: the bytes that came, and the seconds that it took for them."""
    try:
        found = json.loads(text)
        if "error" in found:
            raise RunFailed(f"iperf3 failed: {found['error']}")
        received = found["end"]["sum_received"]
        return Burst(round_bytes=int(received["bytes"]), seconds=[float(received["seconds"])])
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailed(f"iperf3 gave no report that can be read: {text[:100]!r}") from error
