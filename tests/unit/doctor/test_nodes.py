"""What the doctor says of the nodes of a cluster: each that is missing or not as it should be, and what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from builders import a_topology

from bench.doctor.nodes import LOOK, Look, findings, of_node
from bench.identity import code_hash
from bench.machine.effective_cpus import EffectiveCpus
from bench.model import from_json

MULTI = a_topology("multi", nodes=2)
GOOD: dict[str, Any] = {
    "time": 0.0,
    "clock": "tsc",
    "shared_memory_bytes": 2**30,
    "periods": 1000,
    "throttled_periods": 2,
    "code_hash": code_hash(),
    "cpus_effective": 1.0,
    "versions": {"python": "3.11.9", "ray": "2.60.0"},
}


@dataclass
class Nodes:
    """A target whose nodes say what they are given to say; the time is added when they are asked."""

    say: dict[str, dict[str, Any] | str]
    name: str = "k8s"
    befell: str = ""
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def trouble(self) -> str:
        return self.befell

    def cpu_seconds(self) -> None:
        pass

    def idle_load(self) -> None:
        """Not measured."""

    def ask_nodes(self, words: Sequence[str]) -> Mapping[str, str]:
        self.asked.append(tuple(words))
        return {
            node: said if isinstance(said, str) else json.dumps({**said, "time": time.time() + said["time"]})
            for node, said in self.say.items()
        }


def found(nodes: Nodes) -> list[tuple[str, str, str]]:
    return [(each.about, each.level, each.seen) for each in findings(nodes, MULTI)]  # type: ignore[arg-type]


def test_good_nodes_are_a_line_each_with_their_numbers() -> None:
    assert found(Nodes({"head": GOOD, "worker-1": GOOD})) == [
        ("node head", "good", "/dev/shm has 1024 MiB, clock tsc, throttled in 0.2% of its periods"),
        ("node worker-1", "good", "/dev/shm has 1024 MiB, clock tsc, throttled in 0.2% of its periods"),
        ("nodes' versions", "good", "python 3.11.9, ray 2.60.0"),
    ]


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({"shared_memory_bytes": 64 * 2**20}, "bad", "/dev/shm has 64 MiB, and the object store 512 MiB"),
        ({"cpus_effective": 0.5}, "bad", "Ray was started with 1 CPU, and 0.5 can be used"),
        ({"code_hash": "0123"}, "bad", f"it has the code 0123, and this checkout has {code_hash()}"),
        ({"time": -60.0}, "bad", "the clock of worker-1 is 60.0 s behind this machine's"),
        ({"time": 60.0}, "bad", "s ahead of this machine's"),
        ({"time": -1.5}, "bad", "the clock of worker-1 is 1.5 s behind this machine's"),
        ({"clock": "hpet"}, "note", "its clock is hpet"),
        ({"throttled_periods": 100}, "note", "throttled in 10.0% of its periods"),
    ],
)
def test_what_is_wrong_with_a_node_is_said_with_what_to_do(changes: dict[str, Any], level: str, words: str) -> None:
    nodes = Nodes({"head": GOOD, "worker-1": {**GOOD, **changes}})
    (wrong,) = [each for each in findings(nodes, MULTI) if each.level != "good"]  # type: ignore[arg-type]
    assert (wrong.about, wrong.level) == ("node worker-1", level)
    assert words in wrong.seen
    assert wrong.to_do


def test_a_node_that_does_not_answer_is_named_and_so_is_one_of_other_code() -> None:
    assert ("node worker-1", "bad", "it does not answer") in found(Nodes({"head": GOOD}))
    (_, level, seen) = found(Nodes({"head": GOOD, "worker-1": "{}"}))[1]
    assert level == "bad"
    assert "other code" in seen


def test_nodes_of_different_versions_are_told_apart() -> None:
    other = {**GOOD, "versions": {"python": "3.11.2", "ray": "2.60.0"}}
    (last,) = found(Nodes({"head": GOOD, "worker-1": other}))[2:]
    assert last == ("nodes' versions", "bad", "they differ: python 3.11.2, python 3.11.9")


def test_what_befell_the_nodes_comes_first() -> None:
    nodes = Nodes({"head": GOOD, "worker-1": GOOD}, befell="worker-1 was ended on w1: Evicted")
    assert found(nodes)[0] == ("nodes", "bad", "worker-1 was ended on w1: Evicted")


def test_processes_of_this_machine_are_not_asked_twice() -> None:
    assert [level for _, level, _ in found(Nodes({}, name="local"))] == ["good"]


def test_processes_that_were_told_more_cpus_than_there_are_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    few = EffectiveCpus(allowed=(0, 1), quota=1.0)
    monkeypatch.setattr("bench.doctor.nodes.effective_cpus", lambda: few)
    ((about, level, seen),) = found(Nodes({}, name="local"))
    assert (about, level) == ("nodes", "bad")
    assert seen == "Ray was started with 2 CPUs, and 1 (affinity 2, CPU quota 1) can be used"


def test_a_real_look_is_understood_and_this_machine_is_well() -> None:
    before = time.time()
    said = subprocess.run([sys.executable, *LOOK[1:]], capture_output=True, timeout=60, check=True).stdout
    look = from_json(said, Look)
    assert look.code_hash == code_hash()
    assert look.versions["ray"].startswith("2.")
    levels = [each.level for each in of_node("head", look, a_topology(), asked=(before, time.time()))]
    assert "bad" not in levels
