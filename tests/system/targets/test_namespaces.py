"""Real network namespaces: isolated, shaped, counted and removed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench.targets.local import namespaces
from bench.targets.local.state import new_id

SEND = """
import socket, sys, time
payload = b"x" * 65536
with socket.create_connection((sys.argv[1], 5000), timeout=20) as out:
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        out.sendall(payload)
"""

RECEIVE = """
import socket, time
with socket.create_server(("0.0.0.0", 5000)) as server:
    print("ready", flush=True)
    server.settimeout(20)
    connection, _ = server.accept()
    connection.settimeout(20)
    total, begin = 0, time.monotonic()
    while data := connection.recv(1 << 20):
        total += len(data)
    print(total / (time.monotonic() - begin))
"""


@pytest.fixture
def lan() -> Iterator[str]:
    deployment_id = new_id()
    with namespaces.subnet_lock():
        subnet = namespaces.free_subnet(namespaces.taken())
        namespaces.create_lan(deployment_id, subnet)
    try:
        for index in range(2):
            namespaces.create_node(deployment_id, subnet, index, None)
        yield deployment_id
    finally:
        namespaces.remove(deployment_id, 2)
        assert not namespaces.existing(deployment_id, 2)


@pytest.mark.root
def test_nothing_is_on_a_node_but_loopback_and_its_own_eth0(lan: str):
    assert interfaces(lan, 0).keys() == {"lo", "eth0"}


@pytest.mark.root
def test_a_link_rate_is_reached_and_not_exceeded(lan: str):
    free = bytes_per_second(lan, seconds=0.5)
    namespaces.shape(namespaces.node_name(lan, 0), "200mbit")
    before = interfaces(lan, 0)["eth0"]
    shaped = bytes_per_second(lan, seconds=2.0)
    assert shaped < free / 2
    assert 0.85 < shaped / (200e6 / 8) < 1.05
    sent = interfaces(lan, 0)["eth0"][1] - before[1]
    assert sent > shaped  # more than a second's worth left by this eth0
    assert interfaces(lan, 1)["eth0"][0] >= sent * 0.95


@pytest.mark.root
def test_a_slow_link_lets_little_more_through_after_a_pause_than_its_rate(lan: str):
    namespaces.shape(namespaces.node_name(lan, 0), "20mbit")
    assert bytes_per_second(lan, seconds=0.01) < 1.05 * 20e6 / 8


@pytest.mark.root
def test_what_is_half_made_is_removed():
    deployment_id = new_id()
    subprocess.run(["ip", "netns", "add", namespaces.node_name(deployment_id, 1)], check=True)
    assert namespaces.existing(deployment_id, 2)
    namespaces.remove(deployment_id, 2)
    assert not namespaces.existing(deployment_id, 2)


def interfaces(deployment_id: str, index: int) -> dict[str, tuple[int, int]]:
    """Bytes received and sent of each interface of a node."""
    command = [*namespaces.inside(namespaces.node_name(deployment_id, index)), "cat", "/proc/net/dev"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    found = {}
    for line in lines:
        name, numbers = line.split(":")
        fields = numbers.split()
        found[name.strip()] = (int(fields[0]), int(fields[8]))
    return {name: value for name, value in found.items() if name in ("lo", "eth0") or any(value)}


def bytes_per_second(deployment_id: str, *, seconds: float) -> float:
    """What node 0 can send to node 1."""
    to = address_of(deployment_id, 1)
    there, here = (namespaces.inside(namespaces.node_name(deployment_id, index)) for index in (1, 0))
    receiver = subprocess.Popen([*there, sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True)
    try:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        subprocess.run([*here, sys.executable, "-c", SEND, to, str(seconds)], check=True, timeout=30)
        return float(receiver.communicate(timeout=30)[0])
    finally:
        receiver.kill()
        receiver.wait()


def address_of(deployment_id: str, index: int) -> str:
    command = [*namespaces.inside(namespaces.node_name(deployment_id, index)), "ip", "-4", "-o", "addr", "show", "eth0"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[3].split("/")[0]
