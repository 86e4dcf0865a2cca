"""Which target it is, and with which options."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from builders import a_topology

from bench import targets
from bench.errors import BadInput
from bench.targets import Cluster, Options, TargetStatus, choose, docker, local

A_CLUSTER = Cluster(topology=a_topology(), dashboard_url="", exporter_url="", token="", nodes=(), link="")


@dataclass
class Stub:
    """A target of which only its state matters."""

    name: str
    options: Options
    standing: TargetStatus

    def status(self) -> TargetStatus:
        return self.standing


@pytest.fixture
def up(monkeypatch: pytest.MonkeyPatch) -> dict[str, Options]:
    """What is up: names of targets and the options that they were stood up with."""
    standing: dict[str, Options] = {}

    def make(name: str, options: Options) -> Stub:
        had = standing.get(name)
        return Stub(name, options, TargetStatus(cluster=A_CLUSTER if had else None, options=had))

    monkeypatch.setattr(targets, "_make", make)
    return standing


def test_nothing_is_up_and_it_is_local(up: dict[str, Options]) -> None:
    choice = choose("auto", {})
    assert (choice.target.name, choice.reason) == ("local", "no deployment is up")


def test_what_is_up_is_used_as_it_was_stood_up(up: dict[str, Options]) -> None:
    up["local"] = local.Options(link_rate="100mbit", isolation="namespace")
    choice = choose("auto", {})
    assert (choice.reason, choice.options.given()["link_rate"]) == ("it is up", "100mbit")
    assert choice.target.options.link_rate == "100mbit"  # type: ignore[attr-defined]


def test_what_is_said_anew_counts_more(up: dict[str, Options]) -> None:
    up["local"] = local.Options(link_rate="100mbit")
    assert choose("local", {"link_rate": "1gbit"}).options.given() == {"link_rate": "1gbit"}


def test_a_named_target_is_that_one_whatever_is_up(up: dict[str, Options]) -> None:
    up["local"] = local.Options()
    choice = choose("docker", {})
    assert (choice.target.name, choice.reason) == ("docker", "")


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        (
            "docker",
            {"isolation": "namespace"},
            "The target docker does not take --isolation. Leave it out, or use --target local",
        ),
        (
            "k8s",
            {"isolation": "loopback"},
            "The target k8s does not take --isolation. Leave it out, or use --target local",
        ),
        (
            "local",
            {"dev": True, "image": "a"},
            "does not take --dev, --image. Leave it out, or use --target docker or k8s",
        ),
        ("auto", {"image": "a", "isolation": "loopback"}, "The target local does not take --image."),
    ],
)
def test_an_option_that_the_target_does_not_take_is_refused(  # type: ignore[no-untyped-def]
    up: dict[str, Options], name: str, given, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        choose(name, given)


def test_options_of_other_targets_do_not_keep_one_from_being_found(up: dict[str, Options]) -> None:
    up["docker"] = docker.Options(dev=True)
    choice = choose("auto", {"image": "a"})
    assert (choice.target.name, choice.options) == ("docker", docker.Options(dev=True, image="a"))
