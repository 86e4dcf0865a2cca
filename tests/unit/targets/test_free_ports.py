"""Free ports of this machine, for what outlives a cluster."""

from __future__ import annotations

import socket

import pytest

from bench.errors import TargetFailed
from bench.targets import free_ports


def test_too_few_free_ports_are_an_error_and_no_shorter_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_ports, "listens", lambda port: port != 32_500)
    assert free_ports.find(1) == [32_500]
    with pytest.raises(TargetFailed, match=r"32000 to 32699 of 127\.0\.0\.1 are in use, and 2 are needed"):
        free_ports.find(2)


@pytest.mark.parametrize("count", [0, 2])
def test_as_many_free_ports_are_found_as_were_asked_for(count: int) -> None:
    found = free_ports.find(count)
    assert len(set(found)) == count
    for port in found:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
