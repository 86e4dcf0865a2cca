"""A node that joins waits for its head, through all that a head does while it starts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from bench.targets import ray_start


@pytest.fixture
def gcs_address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


class FakeGcs:
    """Answers each call with the next of `answers`, which it raises where it is an error."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def __call__(self, *, address: str) -> FakeGcs:
        return self

    def get_all_node_info(self, **_: Any) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_node_waits_through_calls_that_a_busy_head_cancels_and_says_what_for(
    gcs_address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ray import _raylet
    from ray.exceptions import RpcError

    cancelled = RpcError("CANCELLED:\n  the server goes", rpc_code=1)
    gcs = FakeGcs(cancelled, cancelled, {}, {"head": "is there"})
    monkeypatch.setattr(_raylet, "GcsClient", gcs)
    monkeypatch.setattr(ray_start, "_POLL_SECONDS", 0.0)
    ray_start._wait_for_head(gcs_address)
    assert gcs.answers == []
    assert capsys.readouterr().out.splitlines() == [
        f"The head at {gcs_address} is not ready: CANCELLED: the server goes",
        f"The head at {gcs_address} is not ready: it has not registered",
    ]


def test_a_head_that_refuses_the_token_is_not_waited_for(gcs_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray import _raylet
    from ray.exceptions import AuthenticationError

    monkeypatch.setattr(_raylet, "GcsClient", FakeGcs(AuthenticationError("no token")))
    with pytest.raises(AuthenticationError):
        ray_start._wait_for_head(gcs_address)
