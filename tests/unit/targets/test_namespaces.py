from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import BadInput, TargetFailed
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


@pytest.mark.parametrize(
    ("taken", "subnet"),
    [
        ([], "10.231.1.0/24"),
        (["10.231.1.0/24", "127.0.0.0/8"], "10.231.2.0/24"),
        (["10.231.1.77"], "10.231.2.0/24"),
        (["10.231.0.0/22"], "10.231.4.0/24"),
        (["0.0.0.0/0"], "10.231.1.0/24"),
    ],
)
def test_the_first_free_subnet_is_chosen(taken: list[str], subnet: str):
    assert namespaces.free_subnet(taken) == subnet


@given(st.sets(st.integers(1, 254), max_size=253))
def test_a_chosen_subnet_is_never_in_use(used: set[int]):
    taken = [f"10.231.{third}.0/24" for third in used]
    assert namespaces.free_subnet(taken) not in taken


def test_a_full_range_says_so():
    with pytest.raises(TargetFailed, match="in use"):
        namespaces.free_subnet(["10.0.0.0/8"])


@pytest.mark.parametrize(("text", "bits"), [("1gbit", 1e9), ("100mbit", 1e8), ("2.5gbit", 2.5e9), ("1500kbit", 1.5e6)])
def test_a_rate_is_read(text: str, bits: float):
    assert namespaces.rate_bits_per_second(text) == bits


@pytest.mark.parametrize("text", ["", "fast", "1", "1gb", "-1gbit", "1 gbit", "0mbit", "1kbit", "1e3mbit", "999gbit"])
def test_what_is_no_rate_is_refused(text: str):
    with pytest.raises(BadInput, match="no rate"):
        namespaces.rate_bits_per_second(text)


@pytest.fixture
def lan(isolated: None) -> Iterator[str]:
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
def test_what_is_half_made_is_removed(isolated: None):
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
