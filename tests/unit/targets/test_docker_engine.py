"""What the engine counts of a deployment's containers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import docker
import pytest

from bench.errors import TargetFailed
from bench.targets.docker import Options, engine
from bench.targets.docker.target import DockerTarget, limit_link
from bench.targets.link import shaping_command


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


def test_a_link_is_limited_by_root_and_a_failure_says_what_is_missing() -> None:
    asked: list[dict[str, Any]] = []

    def a_node(exit_code: int, output: bytes) -> Any:
        def exec_run(command: list[str], **how: Any) -> Any:
            asked.append({"command": command, **how})
            return SimpleNamespace(exit_code=exit_code, output=output)

        return SimpleNamespace(name="raymeter-mine-head", exec_run=exec_run)

    limit_link(a_node(0, b""), "head", "100mbit")
    assert asked == [{"command": shaping_command("100mbit"), "user": "0", "privileged": True}]
    with pytest.raises(TargetFailed) as caught:
        limit_link(a_node(2, b"Error: Specified qdisc kind is unknown.\n"), "head", "100mbit")
    assert str(caught.value).startswith(
        "The link of head cannot be limited: Error: Specified qdisc kind is unknown. Leave --link-rate out"
    )
