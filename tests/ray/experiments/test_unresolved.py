"""References and streams of a real Ray are found in what measured work returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.cluster.work_checks import unresolved


def numbers() -> Iterator[int]:
    yield 1


def test_references_and_streams_of_ray_are_found(context: Any) -> None:
    import ray

    @ray.remote
    class Actor:
        def one(self) -> int:
            return 1

    stream = ray.remote(num_returns="streaming")(numbers).remote()
    actor = Actor.remote()
    called = actor.one.remote()
    assert unresolved([{"a": (called,)}, stream]) == {"ObjectRef": 1, "ObjectRefGenerator": 1}
    assert unresolved([actor, ray.get(called)]) == {}
    ray.kill(actor)
