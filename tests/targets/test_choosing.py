"""Which target it is, and with which options."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from builders import a_topology

from bench import targets
from bench.targets import Cluster, Options, Standing, choose

A_CLUSTER = Cluster(topology=a_topology(), dashboard_url="", exporter_url="", token="", nodes=(), link="")


@dataclass
class Stub:
    """A target of which only its state matters."""

    name: str
    options: Options
    standing: Standing

    def status(self) -> Standing:
        return self.standing


@pytest.fixture
def up(monkeypatch: pytest.MonkeyPatch) -> dict[str, Options]:
    """What is up: names of targets and the options that they were stood up with."""
    standing: dict[str, Options] = {}

    def create(name: str, options: Options) -> Stub:
        had = standing.get(name)
        return Stub(name, options, Standing(cluster=A_CLUSTER if had else None, options=had))

    monkeypatch.setattr(targets, "create", create)
    return standing


def test_nothing_is_up_and_it_is_local(up: dict[str, Options]) -> None:
    choice = choose("auto", Options())
    assert (choice.target.name, choice.why) == ("local", "nothing is up")


def test_what_is_up_is_used_as_it_was_stood_up(up: dict[str, Options]) -> None:
    up["local"] = Options(link_rate="100mbit", isolation="namespace")
    choice = choose("auto", Options())
    assert (choice.why, choice.options.link_rate) == ("it is up", "100mbit")
    assert choice.target.options.link_rate == "100mbit"  # type: ignore[attr-defined]


def test_what_is_said_anew_counts_more(up: dict[str, Options]) -> None:
    up["local"] = Options(link_rate="100mbit")
    assert choose("local", Options(link_rate="1gbit")).options.link_rate == "1gbit"


def test_a_named_target_is_that_one_whatever_is_up(up: dict[str, Options]) -> None:
    up["local"] = Options()
    choice = choose("docker", Options())
    assert (choice.target.name, choice.why) == ("docker", "it was named")
