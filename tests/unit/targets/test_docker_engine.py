"""What the engine counts of a deployment's containers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import docker
import pytest

from bench.errors import TargetFailed
from bench.targets.docker import Options, engine
from bench.targets.docker.target import DockerTarget


def a_container(cpu_seconds: float) -> Any:
    counted = {"cpu_stats": {"cpu_usage": {"total_usage": round(cpu_seconds * 1e9)}}}
    return SimpleNamespace(stats=lambda stream, one_shot: counted)


def test_cpu_time_of_a_deployment_is_that_of_all_its_running_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def running(**wanted: Any) -> list[Any]:
        asked.append(wanted)
        return [a_container(1.5), a_container(0.25)]

    client = SimpleNamespace(containers=SimpleNamespace(list=running))
    target = DockerTarget(Options(name="mine"))
    monkeypatch.setattr(DockerTarget, "_used_engine", lambda _: client)
    assert target.cpu_seconds() == 1.75
    assert "all" not in asked[0]
    assert any("mine" in label for label in asked[0]["filters"]["label"])
    monkeypatch.setattr(DockerTarget, "_used_engine", lambda _: None)
    assert target.cpu_seconds() == 0.0


def test_an_engine_that_does_not_answer_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> list[Any]:
        raise docker.errors.DockerException("gone")

    client = SimpleNamespace(containers=SimpleNamespace(list=refuse))
    monkeypatch.setattr(DockerTarget, "_used_engine", lambda _: client)
    assert DockerTarget(Options()).cpu_seconds() is None
    with pytest.raises(TargetFailed):
        engine.running(client, {})  # type: ignore[arg-type]  # a fake
