"""What a deployment uses at rest, by what an engine counts of the containers that are its Kubernetes nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import docker
import pytest

from bench.errors import TargetFailed
from bench.model import IdleLoad
from bench.targets.docker import engine
from bench.targets.k8s import idle_load
from bench.targets.k8s.idle_load import measure, seconds_of


@dataclass
class Machine:
    """An engine with containers that use `cpus`, of which Ray's pods use `ray_cpus`; time passes when it is waited for."""

    cpus: float
    ray_cpus: float
    names: tuple[str, ...] = ("control-plane", "worker")
    bursts: Sequence[float] = ()  # CPU seconds beside that, of the windows in turn
    now: float = 100.0
    windows: int = 0
    spent: float = field(default=0.0)

    @property
    def containers(self) -> Machine:
        return self

    def get(self, name: str) -> Machine:
        if name not in self.names:
            raise docker.errors.NotFound(name)
        return self

    def stats(self, *, stream: bool, one_shot: bool) -> dict[str, Any]:
        assert not stream
        assert one_shot
        used = (self.cpus * self.now + self.spent) / len(self.names)
        return {"cpu_stats": {"cpu_usage": {"total_usage": round(used * 1e9)}}}

    def pause(self, seconds: float) -> None:
        self.now += seconds
        if self.windows < len(self.bursts):
            self.spent += self.bursts[self.windows]
        self.windows += 1

    def ask_pods(self, words: Sequence[str]) -> Mapping[str, str]:
        assert tuple(words) == idle_load.CPU_TIME
        half = round(self.ray_cpus * self.now / 2 * 1e6)
        return {"head": f"usage_usec {half}\nuser_usec 1\n", "worker-1": f"{half * 1000}\n"}

    def measured(self, *nodes: str) -> IdleLoad | None:
        return measure(nodes or self.names, self.ask_pods, pause=self.pause)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(machine: Machine) -> Machine:
        monkeypatch.setattr(engine, "connect", lambda: machine)
        monkeypatch.setattr(idle_load.time, "monotonic", lambda: machine.now)
        return machine

    return use


def test_what_the_nodes_use_is_parted_into_rays_and_the_rest(use: Any) -> None:
    assert use(Machine(cpus=0.35, ray_cpus=0.1)).measured() == IdleLoad(cpus=0.25, ray_cpus=0.1)


def test_a_probe_or_a_scrape_in_a_window_is_no_load_at_rest(use: Any) -> None:
    machine = use(Machine(cpus=0.35, ray_cpus=0.1, bursts=(3.0, 0.0, 0.9, 0.0, 0.0, 0.9)))
    assert machine.measured() == IdleLoad(cpus=0.25, ray_cpus=0.1)


def test_nodes_that_are_no_containers_of_this_engine_are_not_seen(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert use(Machine(cpus=0.35, ray_cpus=0.1)).measured("control-plane", "elsewhere") is None
    assert use(Machine(cpus=0.35, ray_cpus=0.1)).measured() is not None

    def refuse() -> None:
        raise TargetFailed("The Docker engine does not answer.")

    monkeypatch.setattr(engine, "connect", refuse)
    assert Machine(cpus=0.35, ray_cpus=0.1).measured() is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("usage_usec 2500000\nuser_usec 1\n", 2.5), ("2500000000\n", 2.5), ("nr_periods 4\n", None)]
)
def test_cpu_time_is_read_of_either_kind_of_control_groups(text: str, seconds: float | None) -> None:
    if seconds is None:
        with pytest.raises(TargetFailed):
            seconds_of(text)
    else:
        assert seconds_of(text) == seconds
