from __future__ import annotations

import socket

import pytest

from bench.errors import TargetFailed
from bench.targets.local import ports
from bench.targets.local.state import Ports


def test_no_port_is_given_twice():
    claim = ports.Claim(3)
    try:
        given = [port for node in claim.ports for port in every_port(node)]
        assert len(given) == len(set(given))
        assert all(ports.FIRST <= port < ports.LAST for port in given)
    finally:
        claim.release()


def test_two_deployments_that_choose_at_once_do_not_meet():
    first, second = ports.Claim(5), ports.Claim(5)
    try:
        assert not {p.gcs for p in first.ports} & {p.gcs for p in second.ports}
    finally:
        first.release()
        second.release()


def test_a_block_with_a_busy_port_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ports, "LAST", ports.FIRST + ports.BLOCK)
    with socket.create_server(("127.0.0.1", ports.FIRST + 100)), pytest.raises(TargetFailed, match="0 of 1 nodes"):
        ports.Claim(1)


def every_port(node: Ports) -> list[int]:
    workers = range(node.workers[0], node.workers[1] + 1)
    named = [node.gcs, node.dashboard, node.exporter, node.metrics, node.agent, node.agent_grpc]
    named += [node.dashboard_metrics, node.node_manager, node.object_manager, node.runtime_env_agent]
    return [*named, *workers]
